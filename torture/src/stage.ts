/** Both apps on one machine with the faulty network between them: started, killed, started again. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Dialect } from '@pesit-node/protocol';
import type { Database } from './database.js';
import { Exchange } from './exchange.js';
import type { Victim } from './faults.js';
import { SILENCE_MS, type RoundPlan } from './plan.js';
import { FaultProxy, type Traffic } from './proxy.js';
import { ADMIN, isReady } from './rest.js';
import { VictimProcess } from './victim.js';

const APPS = fileURLToPath(new URL('../../apps', import.meta.url));
const DIALECTS: readonly Dialect[] = ['length-prefixed', 'raw'];

/** A port that is free on the loopback address at this moment. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

type AppName = 'server' | 'client';

interface App {
  readonly base: string;
  readonly process: VictimProcess;
}

export class Stage {
  readonly directory: string;
  readonly exchange: Exchange;
  readonly #apps: Readonly<Record<AppName, App>>;
  readonly #database: Database | undefined;
  readonly #proxies: ReadonlyMap<Dialect, FaultProxy>;
  /** What was killed and is coming back. */
  readonly #returning = new Map<Victim, Promise<void>>();

  private constructor(
    directory: string,
    apps: Readonly<Record<AppName, App>>,
    database: Database | undefined,
    proxies: ReadonlyMap<Dialect, FaultProxy>,
  ) {
    this.directory = directory;
    this.exchange = new Exchange(directory, { server: apps.server.base, client: apps.client.base });
    this.#apps = apps;
    this.#database = database;
    this.#proxies = proxies;
  }

  /**
   * @param directory where all of it lives; must not exist
   * @param database undefined: each app has its embedded one
   * @param name of the database in it
   * @param silenceMs how long either app waits for the other
   */
  static async start(
    directory: string,
    database: Database | undefined,
    name: string,
    silenceMs = SILENCE_MS,
  ): Promise<Stage> {
    mkdirSync(directory, { recursive: true });
    const shared = {
      TRANSFER_READ_TIMEOUT: String(silenceMs),
      TRANSFER_CONNECTION_TIMEOUT: String(silenceMs),
      ...(database && {
        DATABASE_URL: await database.create(name),
        SECRETS_KEY: randomBytes(32).toString('base64'),
      }),
    };
    const apps = {
      server: await Stage.#app('server', directory, shared),
      client: await Stage.#app('client', directory, shared),
    };
    const port = await freePort();
    const proxies = new Map<Dialect, FaultProxy>();
    for (const dialect of DIALECTS) proxies.set(dialect, await FaultProxy.listen(port, dialect));
    const stage = new Stage(directory, apps, database, proxies);
    try {
      await Promise.all([apps.server.process.start(), apps.client.process.start()]);
      await stage.exchange.configure(port, proxies, silenceMs);
    } catch (error) {
      stage.abandon();
      throw error;
    }
    return stage;
  }

  static async #app(name: AppName, directory: string, shared: Readonly<Record<string, string>>) {
    const port = await freePort();
    const base = `http://127.0.0.1:${port}`;
    const process_ = new VictimProcess({
      name: `the ${name} app`,
      command: process.execPath,
      args: [join(APPS, name, 'dist/main.js')],
      options: {
        env: {
          PATH: process.env['PATH'],
          NODE_OPTIONS: process.env['NODE_OPTIONS'],
          SERVER_HOST: '127.0.0.1',
          SERVER_PORT: String(port),
          DATA_DIRECTORY: join(directory, name),
          ADMIN_USERNAME: ADMIN.username,
          ADMIN_PASSWORD: ADMIN.password,
          LOG_LEVEL: 'info',
          // The partner's wish counts: the smaller of both (pesit-e.md §3).
          TRANSFER_MAX_ENTITY_SIZE: '65535',
          TRANSFER_SYNC_POINT_INTERVAL: '65534',
          TRANSFER_SYNC_WINDOW: '255',
          TRANSFER_RETRY_ATTEMPTS: '1000',
          TRANSFER_RETRY_INITIAL_DELAY: '100',
          TRANSFER_RETRY_MAX_DELAY: '500',
          ...shared,
        },
      },
      log: join(directory, `${name}.log`),
      ready: () => isReady(base),
    });
    return { base, process: process_ };
  }

  /** The faults strike from now on. */
  arm(plan: RoundPlan): void {
    (this.#proxies.get(plan.session.dialect) as FaultProxy).arm({
      faults: plan.faults,
      latencyMs: plan.latencyMs,
      kill: (victim) => this.#kill(victim, plan.absenceMs),
    });
  }

  /** No fault strikes any more, once those that have struck are through. */
  async disarm(plan: RoundPlan): Promise<Traffic> {
    const proxy = this.#proxies.get(plan.session.dialect) as FaultProxy;
    await proxy.quiet();
    return proxy.disarm();
  }

  /** The most memory that each app has had so far, MB. */
  peakMemory(): Readonly<Record<AppName, number>> {
    const peak = (name: AppName): number => {
      const status = readFileSync(`/proc/${String(this.#apps[name].process.pid)}/status`, 'utf8');
      return Math.round((Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024) / 1e6);
    };
    return { server: peak('server'), client: peak('client') };
  }

  /** Everything that was killed is back. */
  async whole(): Promise<void> {
    while (this.#returning.size > 0) await Promise.all(this.#returning.values());
  }

  #process(victim: Victim): VictimProcess | undefined {
    return victim === 'database' ? this.#database?.process : this.#apps[victim].process;
  }

  #kill(victim: Victim, absenceMs: number): void {
    const process = this.#process(victim);
    if (process === undefined) return;
    process.kill();
    // Killed while it comes back: whoever starts it does so again.
    if (this.#returning.has(victim)) return;
    const back = async (): Promise<void> => {
      await process.ended();
      await delay(absenceMs);
      await process.start();
      this.#returning.delete(victim);
    };
    const returning = back();
    // Whoever waits for it in `whole` meets the failure.
    returning.catch(() => undefined);
    this.#returning.set(victim, returning);
  }

  /** Ends the apps in peace. */
  async stop(): Promise<void> {
    await this.whole();
    await Promise.all(Object.values(this.#apps).map(({ process }) => process.stop()));
    for (const proxy of this.#proxies.values()) await proxy.close();
  }

  /** Ends the apps at once and for good. */
  abandon(): void {
    for (const { process } of Object.values(this.#apps)) process.retire();
  }

  /** The same, and leaves nothing behind but their files: the database is back, if it was killed. */
  async leave(): Promise<void> {
    this.abandon();
    for (const proxy of this.#proxies.values()) await proxy.close();
    await this.#returning.get('database');
  }
}
