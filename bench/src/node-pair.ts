/** The node under test: a server app and a client app, configured through REST, and the transfers between them. */
import { link, mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ClientApp, filesIn, type AppOptions, type Direction, type Ended } from './client-app.js';
import { freshDatabase } from './database.js';
import { DatabaseProcesses } from './database-processes.js';
import { sha256 } from './files.js';
import type { Measurement } from './figures.js';
import type { Options } from './options.js';
import type { Papers } from './papers.js';
import {
  CROWD_ID,
  OUTBOX,
  PARTNER_ID,
  PARTNER_PASSWORD,
  PLAIN,
  PairSetup,
  SERVER_ID,
  type Target,
} from './pair-setup.js';
import { Service } from './service.js';
import { Asking, openIdle, release } from './crowd.js';
import { openSessions } from './tls-sessions.js';

/** Requests to REST beside a crowd, at least: a p99 of fewer is the slowest of all. */
const CROWD_REQUESTS = 500;
/** Pages that an administrator looks at. */
const PAGES = [
  '/api/v1/transfers?size=20',
  '/api/v1/config/partners',
  `/api/v1/servers/${CROWD_ID}/status`,
  `/api/v1/servers/${CROWD_ID}/sessions`,
];
export const LARGE_FILE = 'large.bin';
const SMALL_FILE = 'small.bin';

/** How a pair differs from one of the defaults. */
export interface PairOptions extends AppOptions {
  /** Everything is over TLS, with certificates on both sides. Default: plain TCP. */
  readonly tls?: boolean;
}

/** Files and papers that a pair starts with. */
interface Provisions {
  /** Files to move, on the file system of the pair. */
  readonly large?: string | undefined;
  readonly small?: string | undefined;
  /** With them sessions are over TLS alone. */
  readonly papers?: Papers | undefined;
}

export class NodePair {
  readonly #server: Service;
  readonly #client: ClientApp;
  readonly #database: DatabaseProcesses | undefined;
  /** Tells the apps what a row needs. */
  readonly setup: PairSetup;

  private constructor(server: Service, client: ClientApp, database: DatabaseProcesses | undefined) {
    this.#server = server;
    this.#client = client;
    this.#database = database;
    this.setup = new PairSetup(server.base, client);
  }

  /** The folder whose files the client can send. */
  get sendDirectory(): string {
    return this.#client.sendDirectory;
  }

  /** Starts both apps with their data in `directory`; `large` and `small` are the files to move, on the same file system. */
  static async start(
    directory: string,
    how: PairOptions,
    options: Options,
    { large, small, papers }: Provisions,
  ): Promise<NodePair> {
    const server = await Service.start('server', directory, {
      ...(await freshDatabase(options.database, 'server')),
      ...how.settings,
    });
    const client = await ClientApp.start(directory, options.database, how);
    const pair = new NodePair(server, client, await DatabaseProcesses.find(options.database));
    await pair.setup.start(options, papers);
    await mkdir(join(server.dataDirectory, 'outbox'), { recursive: true });
    if (large !== undefined) {
      await link(large, join(client.sendDirectory, LARGE_FILE));
      await link(large, join(server.dataDirectory, 'outbox', OUTBOX));
    }
    if (small !== undefined) await link(small, join(client.sendDirectory, SMALL_FILE));
    server.markIdle();
    client.service.markIdle();
    return pair;
  }

  /** Asks the client for a transfer and waits for its end. */
  async #transfer(
    direction: Direction,
    filename: string,
    { remote, inbox, request: settings }: Target = PLAIN,
  ): Promise<Ended> {
    const request = { server: remote, partnerId: PARTNER_ID, ...settings };
    return this.#client.transfer(
      direction,
      direction === 'push'
        ? { ...request, filename, virtualFile: inbox, remoteFilename: filename }
        : { ...request, virtualFile: OUTBOX, remoteFilename: OUTBOX },
    );
  }

  async #measured(transfers: number, bytes: number, work: () => Promise<unknown>): Promise<Measurement> {
    // The cost of a single file there is lost in the noise.
    const database = transfers > 1 ? this.#database : undefined;
    await Promise.all([this.#server.begin(), this.#client.service.begin()]);
    database?.begin();
    const began = performance.now();
    await work();
    const seconds = (performance.now() - began) / 1000;
    const stored = database === undefined ? [] : [database.end()];
    const apps = await Promise.all([this.#server.end(), this.#client.service.end()]);
    return { seconds, bytes, transfers, processes: [...apps, ...stored] };
  }

  /** The files received and not yet removed. */
  async #received(direction: Direction): Promise<string[]> {
    return filesIn(direction === 'push' ? join(this.#server.dataDirectory, 'inbox') : this.#client.receivedDirectory);
  }

  async #removeReceived(direction: Direction): Promise<void> {
    for (const path of await this.#received(direction)) await rm(path);
  }

  /** Moves the large file once; the received file is checked and removed. `hash`: compare its SHA-256 too. */
  async large(direction: Direction, hash: string | undefined): Promise<Measurement> {
    const { size } = await stat(join(this.sendDirectory, LARGE_FILE));
    const measurement = await this.#measured(1, size, () => this.#transfer(direction, LARGE_FILE));
    const [path, ...more] = await this.#received(direction);
    if (path === undefined || more.length > 0) throw new Error(`${direction}: expected one received file`);
    const arrived = (await stat(path)).size;
    if (arrived !== size) throw new Error(`${direction}: sent ${size} bytes, ${arrived} arrived`);
    if (hash !== undefined && (await sha256(path)) !== hash) throw new Error(`${direction}: the file arrived damaged`);
    await this.#removeReceived(direction);
    return measurement;
  }

  /** Sends one file of the send folder; what arrived is checked and removed. `hash`: compare its SHA-256 too. */
  async push(
    filename: string,
    target: Target,
    hash?: string,
  ): Promise<Measurement & Required<Pick<Measurement, 'records' | 'wireBytes'>>> {
    const { size } = await stat(join(this.sendDirectory, filename));
    let ended: Ended = {};
    const measurement = await this.#measured(1, size, async () => {
      ended = await this.#transfer('push', filename, target);
    });
    const received = await this.#received('push');
    const arrived = await Promise.all(received.map(async (path) => (await stat(path)).size));
    if (arrived.length !== 1 || arrived[0] !== size) {
      throw new Error(
        `${filename} to ${target.remote}: sent ${size} bytes, arrived: ${arrived.join(', ') || 'nothing'}`,
      );
    }
    if (hash !== undefined && (await sha256(received[0]!)) !== hash) throw new Error(`${filename} arrived damaged`);
    await this.#removeReceived('push');
    return { ...measurement, records: Number(ended['articles']), wireBytes: Number(ended['bytesTransferred']) };
  }

  /**
   * Holds `idle` sessions, and sends the small file `count` times or more beside them, in `sending` sessions at a time; latencies are those
   * of REST meanwhile. Without any its transfers are the sessions. This process holds them, on the same processors as the apps: its share is shown.
   */
  async crowd(target: Target, idle: number, sending: number, count: number): Promise<Measurement> {
    const who = { requester: CROWD_ID, server: CROWD_ID, password: PARTNER_PASSWORD, port: this.setup.crowdPort };
    let sessions: Awaited<ReturnType<typeof openIdle>> = [];
    let latenciesMs: readonly number[] = [];
    let sent = 0;
    const before = process.cpuUsage();
    try {
      const measurement = await this.#measured(idle, 0, async () => {
        sessions = await openIdle(who, idle);
        const asking = new Asking(this.#server.base, PAGES, CROWD_REQUESTS);
        const worker = async (): Promise<void> => {
          while (sent < count || !asking.isEnough) {
            sent++;
            await this.#transfer('push', SMALL_FILE, target);
          }
        };
        await Promise.all(sending === 0 ? [asking.enough] : Array.from({ length: sending }, worker));
        latenciesMs = await asking.stop();
      });
      const arrived = (await this.#received('push')).length;
      if (arrived !== sent) throw new Error(`many sessions: sent ${sent}, ${arrived} arrived`);
      const { user, system } = process.cpuUsage(before);
      const requester = { name: 'requester', cpuSeconds: (user + system) / 1e6 };
      const transfers = sending === 0 ? idle : sent;
      return { ...measurement, transfers, processes: [...measurement.processes, requester], latenciesMs };
    } finally {
      await release(sessions);
      await this.#removeReceived('push');
    }
  }

  /** Sends one file of the send folder so many times at once; latencies are those of REST meanwhile. Files that arrived are removed. */
  async atOnce(filename: string, target: Target, count: number): Promise<Measurement> {
    const { size } = await stat(join(this.sendDirectory, filename));
    const asking = new Asking(this.#server.base, PAGES, 1);
    const measurement = await this.#measured(count, count * size, () =>
      Promise.all(Array.from({ length: count }, () => this.#transfer('push', filename, target))),
    );
    const latenciesMs = await asking.stop();
    const sizes = await Promise.all((await this.#received('push')).map(async (path) => (await stat(path)).size));
    const whole = sizes.filter((arrived) => arrived === size).length;
    if (whole !== count) throw new Error(`${count} files at once: ${whole} arrived whole`);
    await this.#removeReceived('push');
    return { ...measurement, latenciesMs };
  }

  /**
   * Sends the small file `count` times, `concurrency` transfers at a time, to each target in turn.
   * @param beside while the large file is sent, again and again
   */
  async small(
    count: number,
    concurrency: number,
    { beside = false, targets = [PLAIN] }: { readonly beside?: boolean; readonly targets?: readonly Target[] } = {},
  ): Promise<Measurement> {
    const { size } = await stat(join(this.sendDirectory, SMALL_FILE));
    let left = count;
    const latenciesMs: number[] = [];
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left--;
        const began = performance.now();
        await this.#transfer('push', SMALL_FILE, targets[left % targets.length]);
        latenciesMs.push(performance.now() - began);
      }
    };
    let large = 0;
    const before = (await this.#received('push')).length;
    const load = async (): Promise<void> => {
      for (; beside && left > 0; large++) await this.#transfer('push', LARGE_FILE);
    };
    const measurement = await this.#measured(count, count * size, async () => {
      await Promise.all([...Array.from({ length: concurrency }, worker), load()]);
    });
    const arrived = (await this.#received('push')).length - before;
    if (arrived !== count + large) throw new Error(`small files: sent ${count + large}, ${arrived} arrived`);
    // Small ones stay: an ext4 without a journal passes over each inode that was freed in the last minutes whenever a file is made.
    if (beside) await this.#removeReceived('push');
    return { ...measurement, latenciesMs };
  }

  /**
   * Opens and releases TLS sessions with the listener: see `openSessions`. This process is the requester, on the same processors as the
   * listener: its share is shown, and that of the client app, which has nothing to do here, is not.
   */
  async tlsSessions(papers: Papers, count: number, resumes: boolean): Promise<Measurement> {
    const who = { requester: PARTNER_ID, server: SERVER_ID, password: PARTNER_PASSWORD };
    const before = process.cpuUsage();
    const measurement = await this.#measured(count, 0, () =>
      openSessions({ port: this.setup.port, papers, ...who }, count, resumes),
    );
    const { user, system } = process.cpuUsage(before);
    const others = measurement.processes.filter(({ name }) => name !== 'client');
    return { ...measurement, processes: [...others, { name: 'requester', cpuSeconds: (user + system) / 1e6 }] };
  }

  async stop(): Promise<void> {
    await Promise.all([this.#client.service.stop(), this.#server.stop()]);
  }

  kill(): void {
    this.#client.service.kill();
    this.#server.kill();
  }
}
