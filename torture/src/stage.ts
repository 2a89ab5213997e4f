/** Both apps on one machine with the faulty network between them: started, killed, started again. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dialect } from '@pesit-node/protocol';
import type { Database } from './database.js';
import { appProcess, freePort, type App, type AppName } from './app-process.js';
import { Exchange } from './exchange.js';
import type { Victim } from './faults.js';
import { SILENCE_MS, type RoundPlan } from './plan.js';
import { issuePapers } from './papers.js';
import { FaultProxy, type Traffic } from './proxy.js';
import type { VictimProcess } from './victim.js';

/** Each pod listens on one of them: they cannot share a port otherwise. */
const HOSTS = ['127.0.0.1', '127.0.0.2'] as const;
const DIALECTS: readonly Dialect[] = ['length-prefixed', 'raw'];

interface Apps {
  readonly client: App;
  /** The pods of the server app. */
  readonly servers: readonly [App, ...App[]];
}

export interface StageOptions {
  /** How long either app waits for the other. */
  readonly silenceMs?: number;
  /** Pods of the server app; default 1. */
  readonly pods?: number;
  /** Every connection is TLS, and everybody shows a certificate. Default false. */
  readonly tls?: boolean;
}

export class Stage {
  readonly directory: string;
  readonly exchange: Exchange;
  readonly #apps: Apps;
  readonly #database: Database | undefined;
  readonly #proxies: ReadonlyMap<Dialect, FaultProxy>;
  /** Killed processes that are coming back. */
  readonly #returning = new Map<VictimProcess, Promise<void>>();

  private constructor(
    directory: string,
    apps: Apps,
    database: Database | undefined,
    proxies: ReadonlyMap<Dialect, FaultProxy>,
  ) {
    this.directory = directory;
    this.exchange = new Exchange(directory, { server: apps.servers[0].base, client: apps.client.base });
    this.#apps = apps;
    this.#database = database;
    this.#proxies = proxies;
  }

  /**
   * @param directory where all of it lives; must not exist
   * @param database undefined: each app has its embedded one
   * @param name of the database in it
   */
  static async start(
    directory: string,
    database: Database | undefined,
    name: string,
    { silenceMs = SILENCE_MS, pods = 1, tls = false }: StageOptions = {},
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
    const [first, second] = HOSTS;
    const others = pods > 1 ? [await appProcess('server', directory, shared, second, `server-${second}`)] : [];
    const apps: Apps = {
      servers: [await appProcess('server', directory, shared, first), ...others],
      client: await appProcess('client', directory, shared, first),
    };
    const port = await freePort();
    const papers = tls ? await issuePapers() : undefined;
    const proxies = new Map<Dialect, FaultProxy>();
    for (const dialect of DIALECTS) {
      proxies.set(dialect, await FaultProxy.listen(port, dialect, HOSTS.slice(0, pods), papers?.proxy));
    }
    const stage = new Stage(directory, apps, database, proxies);
    try {
      await Promise.all([apps.servers[0].process.start(), apps.client.process.start()]);
      await stage.exchange.configure(port, proxies, silenceMs, papers);
      // With the listener that is there now.
      for (const { process } of others) await process.start();
    } catch (error) {
      stage.abandon();
      throw error;
    }
    return stage;
  }

  /** The faults strike from now on. */
  arm(plan: RoundPlan): void {
    const proxy = this.#proxies.get(plan.session.dialect) as FaultProxy;
    proxy.arm({
      faults: plan.faults,
      latencyMs: plan.latencyMs,
      kill: (victim) => this.#kill(this.#process(victim, proxy.target), plan.absenceMs),
    });
  }

  /** No fault strikes from now on, once those that have struck are through. */
  async disarm(plan: RoundPlan): Promise<Traffic> {
    const proxy = this.#proxies.get(plan.session.dialect) as FaultProxy;
    await proxy.quiet();
    return proxy.disarm();
  }

  /** The most memory that each app has had so far, MB. */
  peakMemory(): Readonly<Record<AppName, number>> {
    const peak = ({ process }: App): number => {
      const status = readFileSync(`/proc/${String(process.pid)}/status`, 'utf8');
      return Math.round((Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024) / 1e6);
    };
    return { server: peak(this.#apps.servers[0]), client: peak(this.#apps.client) };
  }

  /** Everything that was killed is back. */
  async whole(): Promise<void> {
    while (this.#returning.size > 0) await Promise.all(this.#returning.values());
  }

  get #all(): readonly VictimProcess[] {
    return [...this.#apps.servers, this.#apps.client].map((app) => app.process);
  }

  /** @param pod of the server app */
  #process(victim: Victim, pod: number): VictimProcess | undefined {
    if (victim === 'database') return this.#database?.process;
    return (victim === 'client' ? this.#apps.client : this.#apps.servers[pod])?.process;
  }

  #kill(process: VictimProcess | undefined, absenceMs: number): void {
    if (process === undefined) return;
    process.kill();
    // Killed while it comes back: whoever starts it does so again.
    if (this.#returning.has(process)) return;
    const back = async (): Promise<void> => {
      await process.ended();
      await delay(absenceMs);
      await process.start();
      this.#returning.delete(process);
    };
    const returning = back();
    // A caller that waits for it in `whole` meets the failure.
    returning.catch(() => undefined);
    this.#returning.set(process, returning);
  }

  /** Ends the apps in peace. */
  async stop(): Promise<void> {
    await this.whole();
    await Promise.all(this.#all.map((process) => process.stop()));
    for (const proxy of this.#proxies.values()) await proxy.close();
  }

  /** Ends the apps at once and for good. */
  abandon(): void {
    for (const process of this.#all) process.retire();
  }

  /** The same, and leaves nothing behind but their files: the database is back, if it was killed. */
  async leave(): Promise<void> {
    this.abandon();
    for (const proxy of this.#proxies.values()) await proxy.close();
    if (this.#database !== undefined) await this.#returning.get(this.#database.process);
  }
}
