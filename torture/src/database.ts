/** A private PostgreSQL that can be killed; scripts/torture.mjs has made its files and says how it is started. */
import { join } from 'node:path';
import pg from 'pg';
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

export class Database {
  readonly process: VictimProcess;
  readonly #url: string;

  private constructor(process: VictimProcess, url: string) {
    this.process = process;
    this.#url = url;
  }

  /** @param directory for its log */
  static async start({ command, args, url, ...options }: Cluster, directory: string): Promise<Database> {
    const process = new VictimProcess({
      name: 'PostgreSQL',
      command,
      args,
      options,
      log: join(directory, 'postgres.log'),
      ready: () => query(url, 'select 1').then(...asBoolean),
      // After a SIGKILL its children need a moment to see it, and their shared memory keeps a new one from starting.
      stubborn: true,
    });
    await process.start();
    return new Database(process, url);
  }

  /** @returns the URL of a new, empty database */
  async create(name: string): Promise<string> {
    await query(this.#url, `create database ${name}`);
    const url = new URL(this.#url);
    url.pathname = `/${name}`;
    return url.href;
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
