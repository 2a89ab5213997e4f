import { constants } from 'node:fs';
import { join } from 'node:path';
import { StorageError, errorCode, storageError } from './errors.js';
import { nodeFiles } from './files.js';
import type { FileFacts, FileOperations } from './files.js';
import { START, pointOf } from './group-commit.js';
import type { StoredPoint } from './group-commit.js';
import { findMarks, isDelivered, readMarkName, removeMarks } from './delivery-mark.js';
import type { DeliveryMark } from './delivery-mark.js';
import { findJournal, newestPoint } from './point-journal.js';
import type { FoundJournal } from './point-journal.js';
import { StagingLock, isHeld, readLockName } from './staging-lock.js';
import { isKey, keyOfName, placeIn, removeStaged, requireKey } from './staging-place.js';
import type { StagingPlace } from './staging-place.js';
import { noPointWithin } from './usable-point.js';

/** State left of a transfer that may be restarted. */
export interface Leftover {
  readonly key: string;
  /** A name of its bytes, the staged one or a mark of its delivery; undefined when only a journal or a lock is left. */
  readonly path: string | undefined;
  /** Bytes of the staged file; 0 when only a journal or a lock is left. */
  readonly size: number;
  /** The newest point of the journal within the file; number 0 when there is none. `resume` may have to go back further. */
  readonly point: StoredPoint;
  /** When the file or its journal was last written. */
  readonly modified: Date;
  /** As given to `create`; undefined without a journal, which begins with the first point. */
  readonly context: string | undefined;
  /** It has got its final name, whether or not that is there still: only its record is missing. Not to be resumed or redone. */
  readonly delivered: boolean;
  /** Why there is no point to continue from, in words. */
  readonly problem: string | undefined;
}

export interface StagedFacts extends Leftover {
  /** A process of this machine works on it. */
  readonly inUse: boolean;
}

const factsOf = async (files: FileOperations, path: string): Promise<FileFacts | undefined> => {
  try {
    return await files.lstat(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
};

const lookAt = async (place: StagingPlace, marks: readonly DeliveryMark[]): Promise<Leftover> => {
  const { files, key, stagedPath, journalPath } = place;
  const staged = await factsOf(files, stagedPath);
  const marked = marks[0] && (await factsOf(files, marks[0].path));
  const journalFacts = await factsOf(files, journalPath);
  const size = (staged ?? marked)?.size ?? 0;
  const journal = await findJournal(files, journalPath, constants.O_RDONLY).catch(
    (error: unknown) => `its journal of points cannot be read: ${errorCode(error) ?? String(error)}`,
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
      path: staged ? stagedPath : marked && marks[0]?.path,
      size,
      point: pointOf(newest?.point ?? START),
      modified: new Date(Number(mtimeNs / 1_000_000n)),
      context: found?.header.context,
      delivered: isDelivered(staged, marks),
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
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
};

interface Found {
  /** Somebody of this machine works on it. */
  readonly inUse: boolean;
  readonly marks: readonly DeliveryMark[];
}

/** All keys that the names speak of. */
const keysIn = (files: FileOperations, staging: string, names: readonly string[]): ReadonlyMap<string, Found> => {
  const keys = new Map<string, Found>();
  for (const name of names) {
    const lock = readLockName(name);
    const found = readMarkName(files, staging, name);
    const key = lock?.key ?? found?.key ?? keyOfName(name);
    if (key === undefined || !isKey(key)) continue;
    const { inUse = false, marks = [] } = keys.get(key) ?? {};
    const isLive = lock !== undefined && isHeld(staging, name, lock.owner);
    keys.set(key, { inUse: isLive || inUse, marks: found === undefined ? marks : [...marks, found] });
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
    const place = placeIn(files, await files.realpath(receiveDirectory), key);
    const found = keysIn(files, place.staging, await namesIn(files, place.staging)).get(key);
    return found === undefined ? undefined : { ...(await lookAt(place, found.marks)), inUse: found.inUse };
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
    for (const [key, { inUse, marks }] of keysIn(files, staging, await namesIn(files, staging))) {
      if (!inUse) leftovers.push(await lookAt(placeIn(files, root, key), marks));
    }
    return leftovers.sort((a, b) => (a.key < b.key ? -1 : 1));
  } catch (error) {
    throw storageError(error, 'read', join(receiveDirectory, '…'), 'the staged files');
  }
};

/**
 * Removes what is left under a key: marks of a delivery, staged file, journal, locks of dead processes.
 * @returns false, and removes nothing, while a process of this machine works on it
 * @throws StorageError 2-211, 2-213
 */
export const removeLeftover = async (
  receiveDirectory: string,
  key: string,
  files: FileOperations = nodeFiles,
): Promise<boolean> => {
  requireKey(key);
  try {
    const place = placeIn(files, await files.realpath(receiveDirectory), key);
    const lock = await StagingLock.take(place);
    try {
      await removeMarks(files, await findMarks(place));
      await removeStaged(place);
    } finally {
      await lock.release();
    }
    return true;
  } catch (error) {
    if (error instanceof StorageError && error.condition === 'staged file in use') return false;
    // Nothing was ever staged here.
    if (errorCode(error) === 'ENOENT') return true;
    throw storageError(error, 'deliver', join(receiveDirectory, '…'), 'the staged file');
  }
};
