/** Three server and two client processes over one PostgreSQL and, where there is one, a Redis; a balancer in front. */
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { appProcess, freePort, type App, type AppName } from '../app-process.js';
import type { Database } from '../database.js';
import { call, type Json } from '../rest.js';
import { Gateway } from './gateway.js';

export const PARTNER = 'PARTNER';
export const REMOTE = 'pods';
/** Virtual files: partners write the one, and read the other. */
export const INBOX = 'IN';
export const OUTBOX = 'OUT';
const LISTENER = 'PODS';
/** Name of the database of the pods, and of the role that owns it. */
export const DATABASE = 'pods';
const SERVER_HOSTS = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
const CLIENTS = 2;
/** PI 5 holds eight characters. */
const PASSWORD = 'torture1';
const LISTENING_WITHIN_MS = 60_000;

export interface Pod extends App {
  readonly app: AppName;
  readonly name: string;
}

/** A row of `pesit_common.cluster_leaders`. */
export interface Epoch {
  readonly app: string;
  readonly epoch: number;
  readonly instance: string;
}

export interface PodStageOptions {
  /** Undefined: the pods have none. */
  readonly redisUrl: string | undefined;
  /** `cluster.listeners`. Default `all`. */
  readonly listeners?: 'all' | 'leader' | undefined;
  /** Pods of the server app, 1 to 3. Default 3. */
  readonly servers?: number;
  /** Name of a database that is not there yet. Default `pods`. */
  readonly databaseName?: string;
}

interface Gateways {
  readonly postgres: Gateway;
  readonly balancer: Gateway;
  readonly redis: Gateway | undefined;
}

export class PodStage {
  readonly directory: string;
  readonly pods: readonly Pod[];
  readonly database: Database;
  /** Between the pods and PostgreSQL. */
  readonly postgres: Gateway;
  /** Between the pods and Redis. */
  readonly redis: Gateway | undefined;
  readonly #balancer: Gateway;
  readonly #url: string;

  private constructor(
    directory: string,
    database: Database,
    pods: readonly Pod[],
    url: string,
    { postgres, balancer, redis }: Gateways,
  ) {
    this.directory = directory;
    this.database = database;
    this.pods = pods;
    this.postgres = postgres;
    this.redis = redis;
    this.#balancer = balancer;
    this.#url = url;
  }

  /** @param redisUrl undefined: the pods have none */
  static async start(
    directory: string,
    database: Database,
    { redisUrl, listeners = 'all', servers = SERVER_HOSTS.length, databaseName = DATABASE }: PodStageOptions,
  ): Promise<PodStage> {
    for (const path of ['client/send', 'server/outbox', 'server/inbox'])
      await mkdir(join(directory, path), { recursive: true });
    const hosts = SERVER_HOSTS.slice(0, servers);
    const url = await database.createOwned(databaseName);
    const postgres = new Gateway([database.address]);
    await postgres.open();
    const throughPostgres = Object.assign(new URL(url), { host: `127.0.0.1:${postgres.port}` }).href;
    let redis: Gateway | undefined;
    let throughGateway = '';
    if (redisUrl !== undefined) {
      const whole = new URL(redisUrl);
      redis = new Gateway([{ host: whole.hostname, port: Number(whole.port) }]);
      await redis.open();
      whole.port = String(redis.port);
      throughGateway = whole.href;
    }
    const shared = {
      ...{ DATABASE_URL: throughPostgres, SECRETS_KEY: randomBytes(32).toString('base64'), REDIS_URL: throughGateway },
      ...{ CLUSTER_ENABLED: 'true', CLUSTER_NAME: `torture-${randomBytes(4).toString('hex')}` },
      CLUSTER_LISTENERS: listeners,
      ...{ TRANSFER_EXECUTOR_QUEUE_CAPACITY: '10000', SHUTDOWN_DRAIN_TIMEOUT: '20000' },
    };
    const pod = async (app: AppName, host: string, k: number): Promise<Pod> => {
      const name = `${app}-${k + 1}`;
      const { CLUSTER_LISTENERS, ...both } = shared;
      const settings = { ...both, POD_NAME: name, ...(app === 'server' ? { CLUSTER_LISTENERS } : {}) };
      return { app, name, ...(await appProcess(app, directory, settings, host, name)) };
    };
    const pods = [
      ...(await Promise.all(hosts.map((host, k) => pod('server', host, k)))),
      ...(await Promise.all(Array.from({ length: CLIENTS }, (_, k) => pod('client', '127.0.0.1', k)))),
    ];
    const port = await freePort();
    const balancer = new Gateway(hosts.map((host) => ({ host, port })));
    const stage = new PodStage(directory, database, pods, throughPostgres, { postgres, balancer, redis });
    try {
      await Promise.all(pods.map(({ process }) => process.start()));
      await balancer.open();
      await stage.#configure(port);
    } catch (error) {
      stage.abandon();
      throw error;
    }
    return stage;
  }

  /** Addresses of the pods of the server app. */
  get serverHosts(): readonly string[] {
    return SERVER_HOSTS.slice(0, this.of('server').length);
  }

  /** Whether the listener can be reached on one of the pods. */
  takesPartners(): Promise<boolean> {
    return this.#balancer.leadsSomewhere();
  }

  of(app: AppName): readonly Pod[] {
    return this.pods.filter((pod) => pod.app === app);
  }

  /** Asks the first pod of the app that answers. @throws what the last one said */
  async ask(app: AppName, path: string): Promise<Json> {
    let failure: unknown;
    for (const { base } of this.of(app)) {
      try {
        return await call('GET', `${base}${path}`);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  /** A remote server of the client app that leads to the balancer, without its name. */
  get remote(): Json & { readonly port: number } {
    const server = { host: '127.0.0.1', port: this.#balancer.port, serverId: LISTENER };
    return { ...server, clientId: PARTNER, password: PASSWORD };
  }

  /** Asks PostgreSQL. */
  async rows<Row extends object>(sql: string): Promise<readonly Row[]> {
    const client = new pg.Client({ connectionString: this.#url });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query<Row>(sql)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** The newest epoch of each app, as PostgreSQL has it. */
  async epochs(): Promise<readonly Epoch[]> {
    // The driver of the harness gives a bigint as text, whose order is another one: '9' comes after '10'.
    const rows = await this.rows<Omit<Epoch, 'epoch'> & { readonly epoch: string }>(
      'select app, epoch, instance from pesit_common.cluster_leaders',
    );
    return rows.map(({ epoch, ...row }) => ({ ...row, epoch: Number(epoch) }));
  }

  async #configure(port: number): Promise<void> {
    const server = (this.of('server')[0] as Pod).base;
    const client = (this.of('client')[0] as Pod).base;
    await call('POST', `${server}/api/v1/config/partners`, {
      ...{ partnerId: PARTNER, password: PASSWORD, allowedOperations: ['READ', 'WRITE'] },
    });
    await call('POST', `${server}/api/v1/config/files`, {
      ...{ fileId: INBOX, direction: 'RECEIVE', receiveDirectory: 'inbox' },
      // A second delivery gets another name: it must be seen, not refused.
      receiveFilenamePattern: '${virtualFile}_${uuid}',
    });
    await call('POST', `${server}/api/v1/config/files`, { fileId: OUTBOX, direction: 'SEND', sendDirectory: 'outbox' });
    await call('POST', `${server}/api/v1/servers`, { serverId: LISTENER, port });
    await call('POST', `${server}/api/v1/servers/${LISTENER}/start`);
    const until = performance.now() + LISTENING_WITHIN_MS;
    for (const { base } of this.of('server')) {
      while ((await call('GET', `${base}/api/v1/servers/${LISTENER}/status`))['status'] !== 'RUNNING') {
        if (performance.now() > until) throw new Error(`${base} does not start the listener`);
        await delay(100);
      }
    }
    await call('POST', `${client}/api/v1/servers`, { ...this.remote, name: REMOTE });
  }

  /** Ends all in peace. */
  async stop(): Promise<void> {
    await Promise.all(this.pods.map(({ process }) => process.stop()));
    await this.#balancer.cut();
    await this.redis?.cut();
    await this.postgres.cut();
  }

  /** Ends the processes at once and for good. */
  abandon(): void {
    for (const { process } of this.pods) process.retire();
    void this.#balancer.cut();
    void this.redis?.cut();
    void this.postgres.cut();
  }
}
