/**
 * Who has staged files open, between processes. Node offers no lock that dies with its process, so each process announces
 * itself first, by a file whose name says who it is (`<key>.<pid>-<start time>-<machine>.lock`, the key with its fence), and looks for
 * others then. When two come at once, the later one to look sees the other; both may give way, never both continue.
 *
 * A name is never used by another process again (`ProcessName`). So a lock whose process is gone (exit, kill, reboot) is
 * known for what it is and may be removed by anybody at any time.
 *
 * A lock keeps nobody from a transfer whose record has a higher fence: a process that exists may stand still, and one on another
 * machine or in another container cannot be looked at from here. It says that its process may have the files open, so that who takes
 * them continues in a copy (`staging-claim.ts`). Among those without a fence, or with the same, a lock of a process of this machine that
 * runs decides.
 */
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import { StorageError } from './errors.js';
import { unlinkIfThere } from './files.js';
import type { FileOperations } from './files.js';
import { THIS_PROCESS as SELF, isRunning } from '@pesit-node/ground';
import type { ProcessName } from '@pesit-node/ground';
import { readClaimedName } from './staging-place.js';
import type { ClaimedKey, StagingPlace } from './staging-place.js';
import { taken } from './staging-claim.js';

interface OwnedName extends ClaimedKey {
  readonly owner: ProcessName;
}

const LOCK_NAME = /^(.+)\.(\d+)-(\d+)-([0-9a-f]{12})\.lock$/;

/** Full paths of the locks that this process holds: what is not here and bears our name was left by a failed removal. */
const held = new Set<string>();
/** Those of them whose file is there for certain. */
const standing = new Set<string>();

const nameOf = (claimed: string, { pid, started, machine }: ProcessName) =>
  `${claimed}.${pid}-${started}-${machine}.lock`;

/** The key, the claim and the owner in the name of a lock; undefined for any other name. */
export const readLockName = (name: string): OwnedName | undefined => {
  const [, claimed, pid, started, machine] = LOCK_NAME.exec(name) ?? [];
  if (claimed === undefined || pid === undefined || started === undefined || machine === undefined) return undefined;
  return { ...readClaimedName(claimed), owner: { pid: Number(pid), started, machine } };
};

/** Whether a process of this machine that still runs holds the lock `name` in `staging`. */
export const isHeld = (staging: string, name: string, owner: ProcessName): boolean => {
  if (owner.machine !== SELF.machine) return false;
  if (owner.pid === SELF.pid && owner.started === SELF.started) return held.has(join(staging, name));
  return isRunning(owner);
};

/** Whether its process has ended for sure: one of another machine may run. */
const isGone = (staging: string, name: string, owner: ProcessName): boolean =>
  owner.machine === SELF.machine && !isHeld(staging, name, owner);

export class StagingLock {
  readonly #files: FileOperations;
  readonly #path: string;
  /** Nobody waits for this before the release: the name is what counts. */
  readonly #closed: Promise<void>;
  /** Locks of earlier claims whose processes may still have the files open; full paths. */
  readonly #others: string[] = [];
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
  static async announce({ files, staging, key, name }: StagingPlace): Promise<StagingLock> {
    const path = join(staging, nameOf(name, SELF));
    if (held.has(path)) throw inUse(key, SELF.pid);
    held.add(path);
    try {
      if (await isLinked(files, staging, path)) return new StagingLock(files, path, Promise.resolve());
      const file = await files.open(
        path,
        constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK,
        0o600,
      );
      return new StagingLock(files, path, file.close());
    } catch (error) {
      held.delete(path);
      throw error;
    }
  }

  /**
   * Takes what may exist already: when this has resolved nobody else of this machine works on it under the same fence, and
   * `isShared` says whether somebody does under a lower one.
   * @throws StorageError 2-207 when somebody does under the same fence, or under a higher one
   */
  static async take(place: StagingPlace): Promise<StagingLock> {
    const { files, staging, key, fence } = place;
    const lock = await StagingLock.announce(place);
    try {
      for (const name of await files.readdir(staging)) {
        const other = readLockName(name);
        const path = join(staging, name);
        if (other?.key !== key || path === lock.#path) continue;
        if (other.fence === fence && isHeld(staging, name, other.owner)) throw inUse(key, other.owner.pid);
        if (other.fence > fence && !isGone(staging, name, other.owner)) throw taken(place, other.fence);
        if (other.fence < fence && !isGone(staging, name, other.owner)) lock.#others.push(path);
        else await unlinkIfThere(files, path);
      }
    } catch (error) {
      await lock.release();
      throw error;
    }
    return lock;
  }

  /** A process that may still run, under a lower fence, may have what is staged open. */
  get isShared(): boolean {
    return this.#others.length > 0;
  }

  /** To be called when the staged files are copies: those processes have others open. */
  async apart(): Promise<void> {
    for (const path of this.#others.splice(0)) await unlinkIfThere(this.#files, path);
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
    return codeOf(error) === 'EEXIST';
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
