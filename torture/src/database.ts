/** A private PostgreSQL that can be killed; scripts/torture.mjs has made its files and says how it is started. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from './app-process.js';
import { VictimProcess } from './victim.js';

/** How to start it, and where it is then. */
export interface Cluster {
  readonly command: string;
  readonly args: readonly string[];
  readonly uid?: number;
  readonly gid?: number;
  readonly cwd: string;
  readonly url: string;
}

/** @param directory for its log */
const processOf = ({ command, args, url, ...options }: Cluster, directory: string): VictimProcess =>
  new VictimProcess({
    name: 'PostgreSQL',
    command,
    args,
    options,
    log: join(directory, 'postgres.log'),
    ready: () => query(url, 'select 1').then(...asBoolean),
    // After a SIGKILL its children need a moment to see it, and their shared memory keeps a new one from starting.
    stubborn: true,
  });

export class Database {
  readonly #directory: string;
  #cluster: Cluster;
  #process: VictimProcess;
  #moves = 0;

  private constructor(cluster: Cluster, directory: string) {
    this.#cluster = cluster;
    this.#directory = directory;
    this.#process = processOf(cluster, directory);
  }

  /** @param directory for its log */
  static async start(cluster: Cluster, directory: string): Promise<Database> {
    const database = new Database(cluster, directory);
    await database.process.start();
    return database;
  }

  get process(): VictimProcess {
    return this.#process;
  }

  get #url(): string {
    return this.#cluster.url;
  }

  /** Where it is now. */
  get address(): { readonly host: string; readonly port: number } {
    const { hostname: host, port } = new URL(this.#url);
    return { host, port: Number(port) };
  }

  /** @returns the URL of a new, empty database */
  async create(name: string): Promise<string> {
    await query(this.#url, `create database ${name}`);
    const url = new URL(this.#url);
    url.pathname = `/${name}`;
    return url.href;
  }

  /** The same for a role of its own that owns it, and has none of the places that are kept for the superuser. */
  async createOwned(name: string): Promise<string> {
    const password = randomBytes(12).toString('hex');
    await query(this.#url, `create role ${name} login password '${password}'`);
    await query(this.#url, `create database ${name} owner ${name}`);
    const url = new URL(this.#url);
    return Object.assign(url, { pathname: `/${name}`, username: name, password }).href;
  }

  /** Every connection to a database is ended, and new ones are one too many (53300), or not. */
  async setFull(name: string, full: boolean): Promise<void> {
    await query(this.#url, `alter database ${name} connection limit ${full ? 0 : -1}`);
    if (full)
      await query(this.#url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
  }

  /** It ends, and a copy of what it had committed is there at another port. */
  async move(): Promise<void> {
    await this.#process.stop('SIGINT');
    const { args, url } = this.#cluster;
    const from = args[args.indexOf('-D') + 1] as string;
    const to = `${from.replace(/-\d+$/, '')}-${(this.#moves += 1)}`;
    // With the owner of each file: PostgreSQL is not run by root.
    execFileSync('cp', ['-a', from, to]);
    await rm(from, { recursive: true });
    const port = await freePort();
    const there = Object.assign(new URL(url), { port: String(port) }).href;
    const moved = args.map((arg) => (arg === from ? to : arg.startsWith('port=') ? `port=${port}` : arg));
    this.#cluster = { ...this.#cluster, args: moved, url: there };
    this.#process = processOf(this.#cluster, this.#directory);
    await this.#process.start();
  }

  /** As after a failover to a standby, or back: every connection is ended, and new ones are read-only, or not. */
  async setReadOnly(readOnly: boolean): Promise<void> {
    await query(this.#url, `alter system set default_transaction_read_only = ${readOnly ? 'on' : 'off'}`);
    await query(this.#url, 'select pg_reload_conf()');
    await query(
      this.#url,
      `select pg_terminate_backend(pid) from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
  }
}

const asBoolean = [() => true, () => false] as const;

const query = async (url: string, sql: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  // A connection that is lost while it is idle says so by this event alone.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(sql);
  } finally {
    await client.end().catch(() => undefined);
  }
};
