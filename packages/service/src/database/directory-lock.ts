import { randomBytes } from 'node:crypto';
import { link, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { THIS_BOOT, THIS_PROCESS, codeOf, isRunning, makeDirectories } from '@pesit-node/ground';

/** The directory is in use by a process that lives. */
export class DirectoryLockedError extends Error {
  override readonly name = 'DirectoryLockedError';
}

export interface DirectoryLock {
  /** Gives the directory back. Idempotent. */
  release(): Promise<void>;
}

/** Who holds the lock. `namespace` and `started` tell a process apart from a later one with the same pid. */
interface Owner {
  readonly pid: number;
  readonly host: string;
  /** Host, process namespace and boot: pids mean something within the same one only. */
  readonly namespace: string;
  /** Start time of the process in clock ticks since boot; `0` where /proc does not tell. */
  readonly started: string;
  readonly id: string;
}

const BEAT_MS = 2000;
/** An owner whose pid means nothing here (another container) is dead when its lock was not touched for this long. */
const SILENCE_MS = 10_000;
/** Removing a stale lock takes two calls; a claim older than this belongs to a process that died between them. */
const CLAIM_MS = 5000;
const CLAIM_POLL_MS = 20;

/** Processes that have this in common know each other's pids. */
const NAMESPACE = `${hostname()} ${THIS_PROCESS.machine} ${THIS_BOOT}`;

/** Two containers of one machine have this in common. */
const bootOf = (namespace: string): string => namespace.split(' ').at(-1) ?? '';

const parseOwner = (text: string): Owner | undefined => {
  try {
    const value = JSON.parse(text) as Partial<Owner>;
    return typeof value.pid === 'number' && /^\w+$/.test(value.id ?? '') ? (value as Owner) : undefined;
  } catch {
    return undefined;
  }
};

const modified = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );

/** Whether the lock's owner still touches it. Compares the file with itself, so that clocks of two hosts do not matter. */
const stillBeats = async (path: string, silenceMs: number): Promise<boolean> => {
  const before = await modified(path);
  for (let waited = 0; waited < silenceMs; waited += silenceMs / 10) {
    await delay(silenceMs / 10);
    if ((await modified(path)) !== before) return true;
  }
  return false;
};

/** Waits for another process to remove the stale lock; one that died between its two calls is not waited for for ever. */
const claimEnds = async (claim: string): Promise<void> => {
  for (let tries = 0; tries < CLAIM_MS / CLAIM_POLL_MS; tries++) {
    if ((await modified(claim)) === undefined) return;
    await delay(CLAIM_POLL_MS);
  }
  await rm(claim, { force: true });
};

/**
 * Takes a stale lock away. Several may want to: the one that can link the lock to a name made of its owner's id is the only
 * one to remove it, and only while it is that lock. A process that read it before, and comes late, links another lock, sees that
 * it is, and leaves it.
 */
const removeStale = async (path: string, text: string, id: string): Promise<void> => {
  const claim = `${path}.stale-${id}`;
  try {
    await link(path, claim);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    if (codeOf(error) !== 'EEXIST') throw error;
    await claimEnds(claim);
    return;
  }
  try {
    if ((await readFile(claim, 'utf8')) === text) await rm(path);
  } finally {
    await rm(claim, { force: true });
  }
};

/** Writes the whole lock under another name first: a lock that can be seen can be read. */
const tryCreate = async (path: string, owner: Owner): Promise<boolean> => {
  const draft = `${path}.${owner.id}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(JSON.stringify(owner));
  } finally {
    await file.close();
  }
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
};

/**
 * Whether a living process of another machine has this lock: one that another kernel runs, and that still touches it.
 * @returns the name of that machine
 */
export const heldOnAnotherMachine = async (
  path: string,
  { silenceMs = SILENCE_MS }: LockOptions = {},
): Promise<string | undefined> => {
  const owner = parseOwner(await readFile(path, 'utf8').catch(() => ''));
  if (owner === undefined || bootOf(owner.namespace) === THIS_BOOT) return undefined;
  return (await stillBeats(path, silenceMs)) ? owner.host : undefined;
};

export interface LockOptions {
  /** How long the lock of another container must be silent before it counts as dead. Default 10 s. */
  readonly silenceMs?: number;
}

/**
 * Takes `path` as the lock of what lies beside it, for this process. A lock whose process is dead (crash, kill -9, reboot) is
 * taken over; one of another container or machine, when it has been silent for a time.
 * @throws {DirectoryLockedError} naming the process that holds it.
 */
export const lockDirectory = async (
  path: string,
  { silenceMs = SILENCE_MS }: LockOptions = {},
): Promise<DirectoryLock> => {
  await makeDirectories(dirname(path), 0o700);
  const own: Owner = {
    pid: process.pid,
    host: hostname(),
    namespace: NAMESPACE,
    started: THIS_PROCESS.started,
    id: randomBytes(8).toString('hex'),
  };
  while (!(await tryCreate(path, own))) {
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) continue;
    const owner = parseOwner(text);
    if (owner !== undefined) {
      const live = owner.namespace === own.namespace ? isRunning(owner) : await stillBeats(path, silenceMs);
      if (live) {
        throw new DirectoryLockedError(
          `${path} is held by process ${owner.pid} on ${owner.host}: another service runs on this data directory. ` +
            'Stop it, or start this one with another --data.directory',
        );
      }
    }
    await removeStale(path, text, owner?.id ?? 'unreadable');
  }
  // Not a task of PeriodicWork: the lock is held before there is a logger or a node, by each process that opens the directory,
  // and until after the last runner has stopped. A beat that fails is seen by those who wait for silence, and by nobody here.
  // eslint-disable-next-line no-restricted-syntax -- see above
  const beat = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, BEAT_MS);
  beat.unref();
  return {
    release: async () => {
      clearInterval(beat);
      const text = await readFile(path, 'utf8').catch(() => '');
      if (parseOwner(text)?.id === own.id) await rm(path, { force: true });
    },
  };
};
