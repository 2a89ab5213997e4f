/** One of the two apps as a process, and its figures from /proc. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ProcessFigures } from './figures.js';
import { ADMIN, isReady, text } from './rest.js';

const APPS = fileURLToPath(new URL('../../apps', import.meta.url));
/** Kernel clock ticks a second, as /proc counts CPU time (USER_HZ: 100 on every Linux). */
const TICKS_PER_SECOND = 100;
const START_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 20_000;

/** As the image and `npm start` have it. */
const NODE_FLAGS = ['--max-semi-space-size=16', '--heap-growing-percent=100'];

/** A port that is free on the loopback address at this moment. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

export class Service {
  readonly base: string;
  readonly dataDirectory: string;
  readonly #name: string;
  readonly #child: ChildProcess;
  readonly #log: string;
  #idleRssMb = 0;
  #cpuSeconds = 0;

  private constructor(name: string, child: ChildProcess, port: number, dataDirectory: string, log: string) {
    this.#name = name;
    this.#child = child;
    this.#log = log;
    this.base = `http://127.0.0.1:${port}`;
    this.dataDirectory = dataDirectory;
  }

  /** Starts `apps/<name>` with its data in `directory` and waits until it is ready. */
  static async start(
    name: 'server' | 'client',
    directory: string,
    settings: Readonly<Record<string, string>>,
  ): Promise<Service> {
    const port = await freePort();
    const dataDirectory = join(directory, name);
    const log = join(directory, `${name}.log`);
    mkdirSync(dataDirectory, { recursive: true });
    const output = openSync(log, 'a');
    const child = spawn(process.execPath, [...NODE_FLAGS, join(APPS, name, 'dist/main.js')], {
      stdio: ['ignore', output, output],
      env: {
        PATH: process.env['PATH'],
        NODE_OPTIONS: process.env['NODE_OPTIONS'],
        SERVER_HOST: '127.0.0.1',
        SERVER_PORT: String(port),
        DATA_DIRECTORY: dataDirectory,
        ADMIN_USERNAME: ADMIN.username,
        ADMIN_PASSWORD: ADMIN.password,
        LOG_LEVEL: 'warn',
        ...settings,
      },
    });
    const service = new Service(name, child, port, dataDirectory, log);
    const limit = Date.now() + START_LIMIT_MS;
    while (!(await isReady(service.base))) {
      if (child.exitCode !== null || child.signalCode !== null) throw service.failure('ended while starting');
      if (Date.now() > limit) {
        await service.stop();
        throw service.failure(`was not ready after ${START_LIMIT_MS / 1000} s`);
      }
      await delay(50);
    }
    return service;
  }

  /** An error with the end of the service's log. */
  failure(what: string): Error {
    const lines = readFileSync(this.#log, 'utf8').trimEnd().split('\n').slice(-15);
    return new Error(`the ${this.#name} app ${what}; the end of its log:\n${lines.join('\n')}`);
  }

  #proc(file: string): string {
    return readFileSync(`/proc/${String(this.#child.pid)}/${file}`, 'utf8');
  }

  #memoryMb(field: 'VmRSS' | 'VmHWM'): number {
    return (Number(new RegExp(`${field}:\\s+(\\d+)`).exec(this.#proc('status'))?.[1]) * 1024) / 1e6;
  }

  #cpu(): number {
    // The second field, the command, may contain blanks: count from its closing bracket. utime is field 14, stime 15.
    const stat = this.#proc('stat');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  }

  async #loopDelayMs(): Promise<number | undefined> {
    const metrics = await text(`${this.base}/metrics`);
    const [, seconds] = /^nodejs_eventloop_lag_p99_seconds(?:\{[^}]*\})? (\S+)/m.exec(metrics) ?? [];
    return seconds === undefined ? undefined : Number(seconds) * 1000;
  }

  /** Takes the present memory as the idle figure. */
  markIdle(): void {
    this.#idleRssMb = this.#memoryMb('VmRSS');
  }

  /**
   * Begins a measurement: CPU from here, the kernel's peak of resident memory starts again (proc(5), clear_refs 5), and so does what
   * the service has seen of its event loop, which a scrape of its metrics resets.
   */
  async begin(): Promise<void> {
    await this.#loopDelayMs();
    writeFileSync(`/proc/${String(this.#child.pid)}/clear_refs`, '5');
    this.#cpuSeconds = this.#cpu();
  }

  /** The figures since `begin`. */
  async end(): Promise<ProcessFigures> {
    const cpuSeconds = this.#cpu() - this.#cpuSeconds;
    const loopDelayMs = await this.#loopDelayMs();
    return {
      name: this.#name,
      cpuSeconds,
      ...(loopDelayMs === undefined ? {} : { loopDelayMs }),
      peakRssMb: this.#memoryMb('VmHWM'),
      idleRssMb: this.#idleRssMb,
    };
  }

  /** SIGTERM, and SIGKILL when that does not end it in time. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_LIMIT_MS);
    await ended;
    clearTimeout(timer);
  }

  /** For the end of the benchmark's own process, where nothing can be waited for. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
