/** The processes of the PostgreSQL under test, and the processor time that they have spent, from /proc. */
import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import { DATABASE_URL, type DatabaseKind } from './database.js';
import type { ProcessFigures } from './figures.js';

const TICKS_PER_SECOND = 100;
const NS_PER_SECOND = 1e9;

const read = (pid: string, file: string): string | undefined => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined;
  }
};

/** Fields from the third on, `state`: the second, the command, may contain blanks. */
const statOf = (pid: string): readonly string[] | undefined => {
  const stat = read(pid, 'stat');
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
};

const parentOf = (pid: string): string | undefined => statOf(pid)?.[1];

/** PostgreSQL's processes have one thread. Counted to the nanosecond: ticks of dozens of processes lose more than a small file costs. */
const ranSeconds = (pid: string): number => Number(read(pid, 'schedstat')?.split(' ')[0] ?? 0) / NS_PER_SECOND;

/** The children that have ended. */
const reapedSeconds = (pid: string): number => {
  const stat = statOf(pid);
  return (Number(stat?.[13] ?? 0) + Number(stat?.[14] ?? 0)) / TICKS_PER_SECOND;
};

export class DatabaseProcesses {
  readonly #postmaster: string;
  #cpuSeconds = 0;

  private constructor(postmaster: string) {
    this.#postmaster = postmaster;
  }

  /** Those of the PostgreSQL of this run; undefined for embedded ones, and for one that does not run on this machine. */
  static async find(kind: DatabaseKind): Promise<DatabaseProcesses | undefined> {
    const url = process.env[DATABASE_URL];
    if (kind === 'embedded' || url === undefined) return undefined;
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      const pid = String(rows[0]?.pid);
      const postmaster = read(pid, 'comm')?.startsWith('postgres') === true ? parentOf(pid) : undefined;
      return postmaster === undefined ? undefined : new DatabaseProcesses(postmaster);
    } finally {
      await client.end();
    }
  }

  #cpu(): number {
    const children = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && parentOf(pid) === this.#postmaster);
    return [this.#postmaster, ...children].reduce((sum, pid) => sum + ranSeconds(pid), reapedSeconds(this.#postmaster));
  }

  begin(): void {
    this.#cpuSeconds = this.#cpu();
  }

  /** Since `begin`. */
  end(): ProcessFigures {
    return { name: 'database', cpuSeconds: this.#cpu() - this.#cpuSeconds };
  }
}
