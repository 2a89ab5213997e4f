/**
 * The client app of this build against any PeSIT server: large and small files to it, and a file of it. This side knows of the other
 * end what the client sees, no more: CPU, memory and event loop are those of the client alone.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ClientApp, filesIn, type Direction } from './client-app.js';
import { summarize, type CaseResult, type Measurement } from './figures.js';
import { writeRandomFile } from './files.js';
import type { Options, Peer } from './options.js';

const LARGE = 'large.bin';
const SMALL = 'small.bin';
const SMALL_SIZE = 4096;
/** Small files at a time. */
const AT_ONCE = 8;

export class PeerBench {
  readonly #directory: string;
  readonly #options: Options;
  readonly #peer: Peer;
  #client: ClientApp | undefined;

  /** @param medium the folder under which the files of this side lie */
  constructor(medium: string, options: Options, peer: Peer) {
    this.#directory = mkdtempSync(join(medium, 'pesit-bench-'));
    this.#options = options;
    this.#peer = peer;
  }

  /** All rows, round by round. @param said hears each figure as it comes */
  async run(said: (text: string) => void): Promise<readonly CaseResult[]> {
    const client = await this.#start();
    const { smallCount, repetitions } = this.#options;
    const rows: readonly (readonly [name: string, run: () => Promise<Measurement>])[] = [
      ['peer-push', () => this.#large(client, 'push')],
      ...(this.#peer.pull === undefined ? [] : [['peer-pull', () => this.#large(client, 'pull')] as const]),
      ['peer-small-8', () => this.#small(client, smallCount)],
    ];
    const runs = rows.map((): Measurement[] => []);
    for (let round = 0; round <= repetitions; round++) {
      for (const [index, [name, run]] of rows.entries()) {
        const measurement = await run();
        const { bytes, seconds, transfers } = measurement;
        const figure =
          transfers > 1
            ? `${(transfers / seconds).toFixed(1)} transfers/s`
            : `${(bytes / 1e6 / seconds).toFixed(0)} MB/s`;
        said(`${name}: ${figure}${round === 0 ? ' (warm-up)' : ''}`);
        if (round > 0) runs[index]!.push(measurement);
      }
    }
    return rows.map(([name], index) => summarize(name, runs[index]!, []));
  }

  async close(): Promise<void> {
    await this.#client?.service.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Leaves nothing behind when the benchmark is interrupted. */
  abandon(): void {
    this.#client?.service.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #start(): Promise<ClientApp> {
    const { database, size, entity, interval, window, settings } = this.#options;
    const { host, port, server, partner, password } = this.#peer;
    const client = await ClientApp.start(this.#directory, database, { sessions: 'kept', settings });
    this.#client = client;
    await writeRandomFile(join(client.sendDirectory, LARGE), size);
    await writeRandomFile(join(client.sendDirectory, SMALL), SMALL_SIZE);
    await client.addRemote({
      ...{ name: 'peer', host, port, serverId: server, clientId: partner },
      ...(password === undefined ? {} : { password }),
      ...{ maxEntitySize: entity, syncInterval: interval, syncWindow: window },
    });
    client.service.markIdle();
    return client;
  }

  #transfer(client: ClientApp, direction: Direction, filename: string): Promise<unknown> {
    const { partner, push, pull } = this.#peer;
    const request = { server: 'peer', partnerId: partner };
    return client.transfer(
      direction,
      direction === 'push'
        ? { ...request, filename, virtualFile: push, remoteFilename: filename }
        : { ...request, virtualFile: pull },
    );
  }

  async #measured(client: ClientApp, transfers: number, work: () => Promise<unknown>): Promise<Measurement> {
    await client.service.begin();
    const began = performance.now();
    await work();
    const seconds = (performance.now() - began) / 1000;
    return { seconds, bytes: 0, transfers, processes: [await client.service.end()] };
  }

  async #large(client: ClientApp, direction: Direction): Promise<Measurement> {
    const measurement = await this.#measured(client, 1, () => this.#transfer(client, direction, LARGE));
    if (direction === 'push') return { ...measurement, bytes: this.#options.size };
    const [path, ...more] = await filesIn(client.receivedDirectory);
    if (path === undefined || more.length > 0) throw new Error('peer-pull: expected one received file');
    const { size } = await stat(path);
    await rm(path);
    return { ...measurement, bytes: size };
  }

  async #small(client: ClientApp, count: number): Promise<Measurement> {
    let left = count;
    const latenciesMs: number[] = [];
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left--;
        const began = performance.now();
        await this.#transfer(client, 'push', SMALL);
        latenciesMs.push(performance.now() - began);
      }
    };
    const measurement = await this.#measured(client, count, () => Promise.all(Array.from({ length: AT_ONCE }, worker)));
    return { ...measurement, bytes: count * SMALL_SIZE, latenciesMs };
  }
}
