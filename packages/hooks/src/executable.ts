import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';

import { codeOf, settledWithin } from '@pesit-node/ground';

import type { Attempted, Notice } from './attempt.js';
import { KEPT_BYTES, tailOf } from './tail.js';

/** Between SIGTERM and SIGKILL. */
export const KILL_GRACE_MS = 5000;
/** How long the last output is waited for after the end: a process that has left the group may hold the pipe. */
const LAST_OUTPUT_MS = 500;

/** Nothing of the node's environment: it may hold secrets. */
const ENVIRONMENT = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8' };

const GROUP_OR_OTHERS = 0o022;

const isReadOnly = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.W_OK);
    return false;
  } catch (error) {
    return codeOf(error) === 'EROFS';
  }
};

/** @throws when another user could put something else in its place */
const requireOwn = async (path: string, what: string): Promise<void> => {
  const { uid, mode } = await stat(path);
  if (uid !== 0 && uid !== process.getuid?.()) {
    throw new Error(`${what} belongs to user ${uid}: expected root, or the user of the service`);
  }
  // A directory of a mounted ConfigMap is open to all, and read-only.
  if ((mode & GROUP_OR_OTHERS) !== 0 && !(await isReadOnly(path))) {
    throw new Error(`${what} can be written by its group or by others: take these rights away`);
  }
};

/**
 * The file of an executable, links resolved.
 * @throws in words, when it is not there, leads out of the directory, or others than root and this user could change it
 */
export const findExecutable = async (directory: string, name: string): Promise<string> => {
  try {
    const root = await realpath(directory);
    await requireOwn(root, 'hooks.directory');
    const path = await realpath(join(root, name));
    if (!path.startsWith(root + sep)) throw new Error('it is a link to a file outside hooks.directory');
    // A link may lead into a directory below.
    if (dirname(path) !== root) await requireOwn(dirname(path), 'its directory');
    if (!(await stat(path)).isFile()) throw new Error('it is no file');
    await requireOwn(path, 'it');
    await access(path, constants.X_OK);
    return path;
  } catch (error) {
    const code = codeOf(error);
    const reason =
      code === 'ENOENT' ? 'there is none' : code === 'EACCES' ? 'the service may not run it' : (error as Error).message;
    throw new Error(`executable ${name} of hooks.directory cannot be run: ${reason}`, { cause: error });
  }
};

/** The group has the number of its first process, which it keeps as long as a process of it lives. */
const killGroup = ({ pid }: ChildProcess, signal: NodeJS.Signals): void => {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // All of it has ended.
  }
};

interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const endOf = (child: ChildProcess): Promise<Ended> =>
  new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      // Processes that it left running are bounded with it.
      killGroup(child, 'SIGKILL');
      resolve({ code, signal });
    });
  });

export interface RunLimits {
  readonly timeoutMs: number;
  /** Default 5000. */
  readonly killGraceMs?: number | undefined;
}

/**
 * Runs an executable with a notice on its standard input, in a process group of its own. Delivered is what ended with 0. Never rejects.
 * @param path as `findExecutable` gives it
 */
export const runExecutable = async (
  path: string,
  { id, attempt, body }: Notice,
  { timeoutMs, killGraceMs = KILL_GRACE_MS }: RunLimits,
  stopped: AbortSignal,
): Promise<Attempted> => {
  const child = spawn(path, [], {
    cwd: dirname(path),
    env: { ...ENVIRONMENT, PESIT_HOOK_DELIVERY: id, PESIT_HOOK_ATTEMPT: String(attempt) },
    detached: true,
    stdio: 'pipe',
  });
  let tail = Buffer.alloc(0);
  const keep = (piece: Buffer): void => {
    tail = Buffer.concat([tail, piece.subarray(-KEPT_BYTES)]).subarray(-KEPT_BYTES);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  // It may end without having read all.
  child.stdin.on('error', () => undefined);
  child.stdin.end(body);
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));

  const told = { toEnd: false, late: false };
  const timers: NodeJS.Timeout[] = [];
  const end = (): void => {
    told.toEnd = true;
    killGroup(child, 'SIGTERM');
    timers.push(setTimeout(() => killGroup(child, 'SIGKILL'), killGraceMs));
  };
  timers.push(
    setTimeout(() => {
      told.late = true;
      end();
    }, timeoutMs),
  );
  stopped.addEventListener('abort', end, { once: true });
  if (stopped.aborted) end();
  try {
    const { code, signal } = await endOf(child);
    for (const timer of timers) clearTimeout(timer);
    stopped.removeEventListener('abort', end);
    await settledWithin(closed, LAST_OUTPUT_MS);
    const output = tail.length === 0 ? undefined : tailOf(tail);
    // One that answers SIGTERM with 0 may have left its work undone.
    if (code === 0 && !told.toEnd) return { outcome: 'delivered', exitCode: 0, output };
    const seen = { exitCode: code ?? undefined, output };
    if (told.toEnd && !told.late)
      return { outcome: 'interrupted', reason: 'the service stopped while it ran', ...seen };
    const how = signal === null ? `ended with ${code}` : `was ended by ${signal}`;
    const reason = told.late
      ? `the executable did not end within ${timeoutMs / 1000} s and was ended`
      : `the executable ${how}: expected 0`;
    return { outcome: 'failed', reason, ...seen };
  } catch (error) {
    return { outcome: 'failed', reason: `the executable cannot be started: ${(error as Error).message}` };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    stopped.removeEventListener('abort', end);
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
  }
};
