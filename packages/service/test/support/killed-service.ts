/** A service as it is built, as a process of its own, to be killed at a step of a transfer, or to be stopped. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { freePort } from '../../src/testing/index.js';

const KILL_AT = fileURLToPath(new URL('./kill-at.mjs', import.meta.url));
const LOGIN = `Basic ${Buffer.from('admin:admin').toString('base64')}`;
const KEY = randomBytes(32).toString('base64');

export type Json = Readonly<Record<string, unknown>>;

export interface KilledServiceOptions {
  /** The built entry of the app. */
  readonly main: URL;
  readonly directory: string;
  readonly databaseUrl: string;
  /** Configuration keys of this test. */
  readonly settings?: Json;
  /** Name of the pod. Default: that of the machine. */
  readonly pod?: string;
  /** SIGSTOP: it stands still at its step, and continues with `goOn`. Default SIGKILL. */
  readonly signal?: 'SIGKILL' | 'SIGSTOP';
  /** Of an answer to `GET /api/v1/servers` that was 200; default: all are. */
  readonly isReady?: (servers: unknown) => boolean;
}

/** A process starts slowly beside others: it is asked now and then, for a minute at most unless told otherwise. */
export const patiently = async (ask: () => Promise<boolean>, limitMs = 60_000): Promise<void> => {
  const limit = performance.now() + limitMs;
  while (!(await ask())) {
    if (performance.now() > limit) throw new Error('it did not happen in time');
    await delay(30);
  }
};

export class KilledService {
  readonly #options: KilledServiceOptions;
  #child: ChildProcess | undefined;
  #http = 0;

  constructor(options: KilledServiceOptions) {
    this.#options = options;
  }

  /**
   * @param killAt as `kill-at.mjs` has it; default: it is not killed
   * @param killFile PI 12 of the transfer at which it dies; default: the first
   * @returns what this process has written so far
   */
  async start(killAt = '', killFile = ''): Promise<() => string> {
    const { main, directory, databaseUrl, settings, pod, signal = 'SIGKILL', isReady = () => true } = this.#options;
    const log: string[] = [];
    this.#http = await freePort();
    const flags = Object.entries({
      'server.port': this.#http,
      'server.host': '127.0.0.1',
      'data.directory': directory,
      'database.url': databaseUrl,
      'secrets.key': KEY,
      ...settings,
    }).map(([name, value]) => `--${name}=${String(value)}`);
    const child = spawn(process.execPath, ['--import', KILL_AT, fileURLToPath(main), ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...{ PATH: '/usr/bin:/bin', KILL_AT: killAt, KILL_FILE: killFile, KILL_SIGNAL: signal },
        ...(pod === undefined ? {} : { POD_NAME: pod }),
      },
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => log.push(String(text)));
    await patiently(async () => {
      if (child.exitCode !== null) throw new Error(`the service ended: ${log.join('')}`);
      const response = await this.#ask('GET', '/api/v1/servers').catch(() => undefined);
      return response?.ok === true && isReady(await response.json());
    });
    return () => log.join('');
  }

  /** Port of the REST interface of the process that runs, and the login of an admin. */
  get port(): number {
    return this.#http;
  }

  readonly authorization = LOGIN;

  async call(method: string, path: string, body?: Json): Promise<Json> {
    const response = await this.#ask(method, path, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Json;
  }

  /** Resolves when the process is dead, however it died. */
  async dead(): Promise<NodeJS.Signals | null> {
    const child = this.#child;
    if (child === undefined) return null;
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child.signalCode;
  }

  /** Stands still from now on, with all that it has open, until `goOn`. */
  async freeze(): Promise<void> {
    this.#child?.kill('SIGSTOP');
    await this.stands();
  }

  /** Resolves when the process stands still, at its step or by `freeze`. */
  async stands(): Promise<void> {
    const stat = `/proc/${String(this.#child?.pid)}/stat`;
    await patiently(async () => /^.*\) T /s.test(await readFile(stat, 'latin1')));
  }

  goOn(): void {
    this.#child?.kill('SIGCONT');
  }

  /** SIGTERM. @returns the exit code, null when a signal ended it */
  async terminate(): Promise<number | null> {
    this.#child?.kill('SIGTERM');
    await this.dead();
    return this.#child?.exitCode ?? null;
  }

  /** HTTP status of the readiness probe. */
  async readiness(): Promise<number> {
    return (await this.#ask('GET', '/actuator/health/readiness')).status;
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.dead();
  }

  #ask(method: string, path: string, body?: Json): Promise<Response> {
    const headers = { authorization: LOGIN, connection: 'close', ...(body && { 'content-type': 'application/json' }) };
    return fetch(`http://127.0.0.1:${this.#http}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }
}
