/**
 * One owner a key, also between processes. Node offers no lock that dies with its process, so each process announces
 * itself first, by a file whose name says who it is (`<key>.<pid>-<start time>-<machine>.lock`), and looks for others then. When
 * two come at once, the later one to look sees the other; both may give way, never both continue.
 *
 * A name is never used by another process again (`ProcessName`). So a lock whose process is gone (exit, kill, reboot) is
 * known for what it is and may be removed by anybody at any time.
 *
 * A process on another machine or in another container cannot be looked at from here: its lock does not count. There the
 * lease in the database decides who works on a transfer, and gives up before it ends.
 */
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { StorageError, errorCode } from './errors.js';
import { unlinkIfThere } from './files.js';
import type { FileOperations } from './files.js';
import { THIS_PROCESS as SELF, isRunning } from './processes.js';
import type { ProcessName } from './processes.js';
import type { StagingPlace } from './staging-place.js';

interface OwnedName {
  readonly key: string;
  readonly owner: ProcessName;
}

const LOCK_NAME = /^(.+)\.(\d+)-(\d+)-([0-9a-f]{12})\.lock$/;

/** Full paths of the locks that this process holds: what is not here and bears our name was left by a failed removal. */
const held = new Set<string>();
/** Those of them whose file is there for certain. */
const standing = new Set<string>();

const nameOf = (key: string, { pid, started, machine }: ProcessName) => `${key}.${pid}-${started}-${machine}.lock`;

/** The key and the owner in the name of a lock; undefined for any other name. */
export const readLockName = (name: string): OwnedName | undefined => {
  const [, key, pid, started, machine] = LOCK_NAME.exec(name) ?? [];
  if (key === undefined || pid === undefined || started === undefined || machine === undefined) return undefined;
  return { key, owner: { pid: Number(pid), started, machine } };
};

/** Whether a process of this machine that still runs holds the lock `name` in `staging`. */
export const isHeld = (staging: string, name: string, owner: ProcessName): boolean => {
  if (owner.machine !== SELF.machine) return false;
  if (owner.pid === SELF.pid && owner.started === SELF.started) return held.has(join(staging, name));
  return isRunning(owner);
};

export class StagingLock {
  readonly #files: FileOperations;
  readonly #path: string;
  /** Nobody waits for this before the release: the name is what counts. */
  readonly #closed: Promise<void>;
  #released: Promise<void> | undefined;

  private constructor(files: FileOperations, path: string, closed: Promise<void>) {
    this.#files = files;
    this.#path = path;
    this.#closed = closed.catch(() => undefined);
    standing.add(path);
  }

  /**
   * Says that this process works on the key, without asking whether another does: enough for who creates the staged file
   * exclusively afterwards.
   * @throws StorageError 2-207 when this process does already
   */
  static async announce({ files, staging, key }: StagingPlace): Promise<StagingLock> {
    const path = join(staging, nameOf(key, SELF));
    if (held.has(path)) throw inUse(key, SELF.pid);
    held.add(path);
    try {
      if (await isLinked(files, staging, path)) return new StagingLock(files, path, Promise.resolve());
      const file = await files.open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
      return new StagingLock(files, path, file.close());
    } catch (error) {
      held.delete(path);
      throw error;
    }
  }

  /**
   * Takes what may exist already: nobody else of this machine works on it once this has resolved.
   * @throws StorageError 2-207 when somebody does
   */
  static async take(place: StagingPlace): Promise<StagingLock> {
    const { files, staging, key } = place;
    const lock = await StagingLock.announce(place);
    try {
      for (const name of await files.readdir(staging)) {
        const other = readLockName(name);
        if (other?.key !== key || name === nameOf(key, SELF)) continue;
        if (isHeld(staging, name, other.owner)) throw inUse(key, other.owner.pid);
        await unlinkIfThere(files, join(staging, name));
      }
    } catch (error) {
      await lock.release();
      throw error;
    }
    return lock;
  }

  /** May be called again. A lock file that cannot be removed is in nobody's way: see `isHeld`. */
  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release(): Promise<void> {
    standing.delete(this.#path);
    await Promise.all([this.#closed, this.#files.unlink(this.#path).catch(() => undefined)]);
    held.delete(this.#path);
  }
}

/**
 * Makes a lock a further name of another that stands in the directory: only names count, and a file of its own for each would
 * be created and deleted with every transfer (measured on ext4, which passes over the inodes of the last seconds one by one:
 * a sixth of the receiver's CPU at 100 small files a second).
 * @returns false where it cannot be: there is no other, it has too many names, the file system knows no links
 */
const isLinked = async (files: FileOperations, staging: string, path: string): Promise<boolean> => {
  let other: string | undefined;
  for (const name of standing) {
    if (dirname(name) === staging) {
      other = name;
      break;
    }
  }
  if (other === undefined) return false;
  try {
    await files.link(other, path);
    return true;
  } catch (error) {
    // A name of ours that could not be removed is ours again.
    return errorCode(error) === 'EEXIST';
  }
};

const inUse = (key: string, pid: number) =>
  new StorageError(
    `the staged file ${key} is in use by process ${pid}${pid === SELF.pid ? ' (this one)' : ''}: let that attempt end`,
    {
      fault: 'local',
      diagnostic: '2-207',
      condition: 'staged file in use',
      peerText: 'this transfer is in progress already',
    },
  );
