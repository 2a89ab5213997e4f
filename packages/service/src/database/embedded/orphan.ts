import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { codeOf } from '@pesit-node/ground';
import { EmbeddedDatabaseError } from './error.js';
import type { DatabaseFiles } from './files.js';

const POLL_MS = 10;
const STOP_WITHIN_MS = 30_000;

/** PostgreSQL's own note of its process: pid, …, and on line 8 what it does. Undefined when there is none. */
export const readPidFile = (data: string): { readonly pid: number; readonly status: string } | undefined => {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), status: (lines[7] ?? '').trim() };
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
};

/** Command line of a process; empty when there is none. */
const commandLine = (pid: number): string => {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return execFileSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
};

/** Whether this process is the PostgreSQL of this data directory, and not another program that got its number since. */
const isPostgresOf = (pid: number, data: string): boolean => pid > 1 && commandLine(pid).includes(` -D ${data} `);

/** Whether PostgreSQL runs on this data directory. */
export const runsOn = (data: string): boolean => isPostgresOf(readPidFile(data)?.pid ?? 0, data);

/** Waits until the PostgreSQL that runs now has ended. @returns whether it did in time */
export const hasEnded = async (data: string, withinMs: number): Promise<boolean> => {
  // Its note goes a moment before the process does.
  const pid = readPidFile(data)?.pid ?? 0;
  for (const until = performance.now() + withinMs; performance.now() < until;) {
    if (!isPostgresOf(pid, data)) return true;
    await delay(POLL_MS);
  }
  return false;
};

/**
 * Stops a PostgreSQL whose watcher was killed, and removes what one left that was killed itself: it would not start beside a
 * process that has got the same number since, which in a new container happens at once.
 * To be called under the lock of the directory, when no watcher runs.
 * @returns whether one was running
 */
export const endOrphan = async ({ data, socket, root }: DatabaseFiles): Promise<boolean> => {
  const running = runsOn(data);
  if (running) {
    process.kill(readPidFile(data)?.pid ?? 0, 'SIGINT');
    if (!(await hasEnded(data, STOP_WITHIN_MS))) {
      throw new EmbeddedDatabaseError(
        `PostgreSQL of an earlier start still runs in ${root} (process ${readPidFile(data)?.pid ?? ''}) and does not stop: stop it with kill -INT`,
      );
    }
  }
  rmSync(join(data, 'postmaster.pid'), { force: true });
  const left = readdirSync(socket).filter((name) => name.startsWith('.s.PGSQL.'));
  for (const name of left) rmSync(join(socket, name), { force: true });
  return running;
};
