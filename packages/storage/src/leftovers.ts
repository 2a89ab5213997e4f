import { constants } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import { StorageError, storageError } from './errors.js';
import { factsIfThere } from './files.js';
import type { FileFacts, FileOperations } from './files.js';
import { nodeFiles } from './node-files.js';
import { START, pointOf } from './group-commit.js';
import type { StoredPoint } from './group-commit.js';
import { isDelivered, isWithdrawn, readMarkName, removeMarks } from './delivery-mark.js';
import type { DeliveryMark } from './delivery-mark.js';
import { findJournal, newestPoint } from './point-journal.js';
import type { FoundJournal } from './point-journal.js';
import { StagingLock, isHeld, readLockName } from './staging-lock.js';
import { newestNames } from './staging-claim.js';
import { FIRST_FENCE, isKey, placeIn, readStagedName, removeStaged, requireKey } from './staging-place.js';
import type { StagedName } from './staging-place.js';
import { noPointWithin } from './usable-point.js';

/** State left of a transfer that may be restarted. */
export interface Leftover {
  readonly key: string;
  /** The newest claim that any of its files bears. */
  readonly fence: number;
  /** A name of its bytes, the staged one or a mark of its delivery; undefined when only a journal or a lock is left. */
  readonly path: string | undefined;
  /** Bytes of the staged file; 0 when only a journal or a lock is left. */
  readonly size: number;
  /** The newest point of the journal within the file; number 0 when there is none. `resume` may have to go back further. */
  readonly point: StoredPoint;
  /** When the file or its journal was last written. */
  readonly modified: Date;
  /** As given to `create`; undefined without a journal, which begins with the first point. */
  readonly memo: string | undefined;
  /** It has got its final name, whether or not that is there still: only its record is missing. Not to be resumed or redone. */
  readonly delivered: boolean;
  /** Its delivery was taken back, or is about to be: a record that says COMPLETED does so wrongly. */
  readonly withdrawn: boolean;
  /** Why there is no point to continue from, in words. */
  readonly problem: string | undefined;
}

export interface StagedFacts extends Leftover {
  /** A process of this machine works on it. */
  readonly inUse: boolean;
}

const lookAt = async (files: FileOperations, root: string, key: string, entry: Found): Promise<Leftover> => {
  const { marks } = entry;
  const names = newestNames(entry.names);
  const { stagedPath } = placeIn(files, root, key, names.staged);
  const { journalPath } = placeIn(files, root, key, names.journal ?? names.staged);
  const staged = await factsIfThere(files, stagedPath);
  const marked = marks[0] && (await factsIfThere(files, marks[0].path));
  const journalFacts = await factsIfThere(files, journalPath);
  const size = (staged ?? marked)?.size ?? 0;
  const journal = await findJournal(files, journalPath, constants.O_RDONLY).catch(
    (error: unknown) => `its journal of points cannot be read: ${codeOf(error) ?? String(error)}`,
  );
  const found = typeof journal === 'string' ? undefined : journal;
  try {
    const newest = found && (await newestPoint(found, ({ fileOffset }) => fileOffset <= size));
    const mtimeNs = [staged, marked, journalFacts].reduce(
      (last, facts) => (facts && facts.mtimeNs > last ? facts.mtimeNs : last),
      0n,
    );
    return {
      key,
      fence: entry.fence,
      path: staged ? stagedPath : marked && marks[0]?.path,
      size,
      point: pointOf(newest?.point ?? START),
      modified: new Date(Number(mtimeNs / 1_000_000n)),
      memo: found?.header.memo,
      delivered: isDelivered(staged, marks),
      withdrawn: isWithdrawn(marks),
      problem: newest && staged ? undefined : problemOf(journal, staged),
    };
  } finally {
    await found?.file.close();
  }
};

const problemOf = (journal: FoundJournal | string, staged: FileFacts | undefined): string => {
  if (staged === undefined) return 'there is no staged file';
  return typeof journal === 'string' ? journal : noPointWithin(staged.size);
};

/** Names of the staging directory; none when there is no such directory. */
const namesIn = async (files: FileOperations, staging: string): Promise<readonly string[]> => {
  try {
    return await files.readdir(staging);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
};

interface Found {
  /** Somebody of this machine works on it. */
  readonly inUse: boolean;
  readonly fence: number;
  readonly marks: readonly DeliveryMark[];
  readonly names: readonly StagedName[];
}

/** All keys that the names speak of. */
const keysIn = (files: FileOperations, staging: string, all: readonly string[]): ReadonlyMap<string, Found> => {
  const keys = new Map<string, Found>();
  for (const name of all) {
    const lock = readLockName(name);
    const mark = readMarkName(files, staging, name);
    const staged = readStagedName(name);
    const claimed = lock ?? mark ?? staged;
    if (claimed === undefined || !isKey(claimed.key)) continue;
    const { inUse = false, fence = 0, marks = [], names = [] } = keys.get(claimed.key) ?? {};
    const isLive = lock !== undefined && isHeld(staging, name, lock.owner);
    keys.set(claimed.key, {
      inUse: isLive || inUse,
      fence: Math.max(fence, claimed.fence),
      marks: mark === undefined ? marks : [...marks, mark],
      names: claimed === staged ? [...names, staged] : names,
    });
  }
  return keys;
};

/** See `StagedFile.peek`. */
export const peekStaged = async (
  receiveDirectory: string,
  key: string,
  files: FileOperations = nodeFiles,
): Promise<StagedFacts | undefined> => {
  requireKey(key);
  try {
    const { root, staging } = placeIn(files, await files.realpath(receiveDirectory), key);
    const found = keysIn(files, staging, await namesIn(files, staging)).get(key);
    return found === undefined ? undefined : { ...(await lookAt(files, root, key, found)), inUse: found.inUse };
  } catch (error) {
    throw storageError(error, 'read', join(receiveDirectory, '…'), 'the staged file');
  }
};

/**
 * Lists what earlier attempts left in a receive directory, in the order of the keys; a staged file that a process of this machine works on is
 * not among them. Ask the database for those of other machines before removing anything.
 * @throws StorageError 2-213 when the directory cannot be read
 */
export const listLeftovers = async (
  receiveDirectory: string,
  files: FileOperations = nodeFiles,
): Promise<readonly Leftover[]> => {
  try {
    const root = await files.realpath(receiveDirectory);
    const { staging } = placeIn(files, root, '');
    const leftovers: Leftover[] = [];
    for (const [key, found] of keysIn(files, staging, await namesIn(files, staging))) {
      if (!found.inUse) leftovers.push(await lookAt(files, root, key, found));
    }
    return leftovers.sort((a, b) => (a.key < b.key ? -1 : 1));
  } catch (error) {
    throw storageError(error, 'read', join(receiveDirectory, '…'), 'the staged files');
  }
};

export interface RemoveOptions {
  /**
   * The caller's claim of the transfer: what bears it, or an earlier one, goes, whoever works with it still. Without one nothing goes
   * while a process of this machine works on it.
   */
  readonly claim?: number | undefined;
  /** `fence` of the leftover that was judged: what a later claim has meanwhile stays. Default: all goes. */
  readonly upTo?: number | undefined;
  /** Default: the real file system. */
  readonly files?: FileOperations;
}

/**
 * Removes what is left under a key: marks of a delivery, staged file, journal, locks of dead processes.
 * @returns false, and removes nothing, while somebody else works on it
 * @throws StorageError 2-211, 2-213
 */
export const removeLeftover = async (
  receiveDirectory: string,
  key: string,
  { claim, upTo, files = nodeFiles }: RemoveOptions = {},
): Promise<boolean> => {
  requireKey(key);
  try {
    const root = await files.realpath(receiveDirectory);
    const { staging } = placeIn(files, root, key);
    const found = keysIn(files, staging, await files.readdir(staging)).get(key);
    if (claim === undefined && (found?.inUse === true || (found?.fence ?? 0) > (upTo ?? Infinity))) return false;
    const fence = claim ?? Math.max(FIRST_FENCE, found?.fence ?? 0);
    const lock = await StagingLock.take(placeIn(files, root, key, fence));
    try {
      const isOurs = (claimed: { readonly fence: number }): boolean => claimed.fence <= fence;
      await removeMarks(files, found?.marks.filter(isOurs) ?? []);
      for (const name of new Set(found?.names.filter(isOurs).map((one) => one.fence))) {
        await removeStaged(placeIn(files, root, key, name));
      }
    } finally {
      await lock.release();
    }
    return true;
  } catch (error) {
    if (error instanceof StorageError && error.condition === 'staged file in use') return false;
    // Nothing was ever staged here.
    if (codeOf(error) === 'ENOENT') return true;
    throw storageError(error, 'deliver', join(receiveDirectory, '…'), 'the staged file');
  }
};
