/** Both apps on one machine with the faulty network between them, configured through REST, and what they say of a round. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { link, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Dialect } from '@pesit-node/protocol';
import type { Database } from './database.js';
import type { Victim } from './faults.js';
import type { Observation } from './judge.js';
import { SILENCE_MS, type RoundPlan } from './plan.js';
import { FaultProxy, type Traffic } from './proxy.js';
import { ADMIN, call, isReady, RestError, type Json } from './rest.js';
import { sha256 } from './source.js';
import { VictimProcess } from './victim.js';

const APPS = fileURLToPath(new URL('../../apps', import.meta.url));
const SERVER_ID = 'TORTURE';
const PARTNER_ID = 'PARTNER';
/** PI 5 holds eight characters. */
const PARTNER_PASSWORD = 'torture1';
const DIALECTS: readonly Dialect[] = ['length-prefixed', 'raw'];
/** Virtual files that partners write: the server app takes lengths from the sender, text or not from the virtual file. */
const INBOX = { binary: 'INB', text: 'INT' } as const;
/** The virtual file that partners read; it gets the format of each round. */
const OUTBOX = 'OUT';
const STAGING = '.pesit';
const RETRY_MS = 50;
/** A client app that has not begun again after so long does not mean to. */
const GIVEN_UP_MS = 8000;
/** How long a service may be away in a round: a restart on a machine that is busy. */
const START_AGAIN_MS = 60_000;

/** A port that is free on the loopback address at this moment. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** PI 31 and text of a format, as both apps take them. */
const recordFields = ({ file: { format, recordLength } }: RoundPlan): Json => ({
  recordLength,
  recordFormat: format.endsWith('F') ? 0 : 128,
  text: format.startsWith('T'),
});

/** The same question until there is an answer: the service or its database may be away. */
async function insist<T>(ask: () => Promise<T>, limitMs: number): Promise<T> {
  const limit = performance.now() + limitMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if ((error instanceof RestError && error.status < 500) || performance.now() > limit) throw error;
      await delay(RETRY_MS);
    }
  }
}

type AppName = 'server' | 'client';

interface App {
  readonly base: string;
  readonly process: VictimProcess;
}

export class Stage {
  readonly directory: string;
  readonly #apps: Readonly<Record<AppName, App>>;
  readonly #database: Database | undefined;
  readonly #proxies: ReadonlyMap<Dialect, FaultProxy>;
  /** What was killed and is coming back. */
  readonly #returning = new Map<Victim, Promise<void>>();
  readonly #lastServerRecord = { id: 0 };

  private constructor(
    directory: string,
    apps: Readonly<Record<AppName, App>>,
    database: Database | undefined,
    proxies: ReadonlyMap<Dialect, FaultProxy>,
  ) {
    this.directory = directory;
    this.#apps = apps;
    this.#database = database;
    this.#proxies = proxies;
  }

  /**
   * @param directory where all of it lives; must not exist
   * @param database undefined: each app has its embedded one
   */
  static async start(directory: string, database: Database | undefined, name: string): Promise<Stage> {
    mkdirSync(directory, { recursive: true });
    const shared =
      database === undefined
        ? {}
        : { DATABASE_URL: await database.create(name), SECRETS_KEY: randomBytes(32).toString('base64') };
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
      await stage.#configure(port);
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
          TRANSFER_READ_TIMEOUT: String(SILENCE_MS),
          TRANSFER_CONNECTION_TIMEOUT: String(SILENCE_MS),
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

  get #server(): string {
    return this.#apps.server.base;
  }

  get #client(): string {
    return this.#apps.client.base;
  }

  async #configure(port: number): Promise<void> {
    const server = this.#server;
    await call('POST', `${server}/api/v1/config/partners`, {
      partnerId: PARTNER_ID,
      password: PARTNER_PASSWORD,
      allowedOperations: ['READ', 'WRITE'],
    });
    for (const fileId of Object.values(INBOX)) {
      await call('POST', `${server}/api/v1/config/files`, {
        fileId,
        direction: 'RECEIVE',
        receiveDirectory: 'inbox',
        // A second delivery gets another name: it must be seen, not refused.
        receiveFilenamePattern: '${virtualFile}_${uuid}',
        text: fileId === INBOX.text,
      });
    }
    await call('POST', `${server}/api/v1/config/files`, { fileId: OUTBOX, direction: 'SEND', sendDirectory: 'outbox' });
    await call('POST', `${server}/api/v1/servers`, { serverId: SERVER_ID, port, readTimeout: SILENCE_MS });
    await call('POST', `${server}/api/v1/servers/${SERVER_ID}/start`);
    for (const [dialect, proxy] of this.#proxies) {
      await call('POST', `${this.#client}/api/v1/servers`, {
        name: dialect,
        host: '127.0.0.1',
        port: proxy.port,
        serverId: SERVER_ID,
        clientId: PARTNER_ID,
        password: PARTNER_PASSWORD,
        tcpipHeader: dialect,
      });
    }
    await mkdir(this.#sendTree, { recursive: true });
    await mkdir(this.#outbox, { recursive: true });
  }

  get #sendTree(): string {
    return join(this.directory, 'client', 'send');
  }

  get #outbox(): string {
    return join(this.directory, 'server', 'outbox');
  }

  #arrivals(plan: RoundPlan): string {
    return plan.direction === 'push'
      ? join(this.directory, 'server', 'inbox')
      : join(this.directory, 'client', 'received');
  }

  /** Puts the source where the sender of this round finds it, and prepares the server app. */
  async prepare(plan: RoundPlan, source: string, name: string): Promise<void> {
    if (plan.direction === 'push') {
      await link(source, join(this.#sendTree, name));
    } else {
      await link(source, join(this.#outbox, name));
      await call('PUT', `${this.#server}/api/v1/config/files/${OUTBOX}`, recordFields(plan));
    }
    const [last] = await this.#serverRecords(1);
    this.#lastServerRecord.id = Number(last?.['id'] ?? 0);
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

  /** Asks the client app for the transfer. @returns its id */
  async request(plan: RoundPlan, name: string): Promise<string> {
    const { direction, session, file } = plan;
    const body = {
      server: session.dialect,
      remoteFilename: name,
      maxEntitySize: session.entity,
      syncPointsEnabled: session.interval > 0,
      syncInterval: session.interval,
      syncWindow: session.window,
      ...(direction === 'push'
        ? {
            filename: name,
            virtualFile: INBOX[file.format.startsWith('T') ? 'text' : 'binary'],
            ...recordFields(plan),
          }
        : { virtualFile: OUTBOX, text: file.format.startsWith('T'), localName: name }),
    };
    return insist(async () => {
      // The client app may have been killed by this very transfer, before it answered the request for it.
      const known = await this.clientRecords(name);
      const record =
        known[0] ??
        (await call('POST', `${this.#client}/api/v1/transfers/${direction === 'push' ? 'send' : 'receive'}`, body));
      return String(record['id']);
    }, START_AGAIN_MS);
  }

  /** The record of the client app as it is when it has ended, also FAILED for good, or at the limit. */
  async finalRecord(id: string, limitMs: number): Promise<Json> {
    const limit = performance.now() + limitMs;
    let record: Json = {};
    let changed = performance.now();
    for (;;) {
      try {
        const before = record;
        record = await call('GET', `${this.#client}/api/v1/transfers/${id}`);
        if (record['status'] !== before['status'] || record['attempts'] !== before['attempts']) {
          changed = performance.now();
        }
      } catch (error) {
        if (error instanceof RestError && error.status < 500) throw error;
        changed = performance.now();
      }
      const status = String(record['status']);
      if (status === 'COMPLETED' || status === 'CANCELLED') return record;
      if (status === 'FAILED' && performance.now() - changed > GIVEN_UP_MS) return record;
      if (performance.now() > limit) return record;
      await delay(20);
    }
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

  async clientRecords(name: string): Promise<readonly Json[]> {
    const page = await call('GET', `${this.#client}/api/v1/transfers/history?size=10&sort=createdTime,desc`);
    return (page['content'] as readonly Json[]).filter((record) => record['remoteFilename'] === name);
  }

  async #serverRecords(size: number): Promise<readonly Json[]> {
    const page = await insist(
      () => call('GET', `${this.#server}/api/v1/transfers?size=${size}&sort=id,desc`),
      START_AGAIN_MS,
    );
    return page['content'] as readonly Json[];
  }

  async #filesIn(directory: string): Promise<Observation['delivered']> {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const own = paths.filter((path) => !path.split('/').includes(STAGING));
    return Promise.all(own.map(async (path) => ({ path, size: (await stat(path)).size, hash: await sha256(path) })));
  }

  /** All there is to see of a round. */
  async observe(plan: RoundPlan, name: string, hash: string, traffic: Traffic): Promise<Observation> {
    const arrivals = this.#arrivals(plan);
    const staged = await readdir(join(arrivals, STAGING)).catch(() => []);
    const serverRecords = await this.#serverRecords(50);
    return {
      hash,
      delivered: await this.#filesIn(arrivals),
      leftovers: staged,
      clientRecords: await insist(() => this.clientRecords(name), START_AGAIN_MS),
      serverRecords: serverRecords.filter(({ id }) => Number(id) > this.#lastServerRecord.id),
      dataBytes: traffic.dataBytes[plan.direction === 'push' ? 'request' : 'answer'],
      attempts: traffic.attempts,
    };
  }

  /** Removes what the round has left on purpose: its source and the delivered file. */
  async tidy(plan: RoundPlan, name: string, { delivered }: Observation): Promise<void> {
    const sender = plan.direction === 'push' ? this.#sendTree : this.#outbox;
    for (const path of [join(sender, name), ...delivered.map((one) => one.path)]) await rm(path, { force: true });
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
