import { constants } from 'node:fs';
import { join } from 'node:path';
import { makePrivateDirectory } from './directories.js';
import { codeOf } from '@pesit-node/ground';
import { StorageError, storageError } from './errors.js';
import { findMarks, isDelivered, removeMarks } from './delivery-mark.js';
import { factsIfThere, flushDirectories, unlinkIfThere } from './files.js';
import type { OpenFile } from './files.js';
import { nodeFiles } from './node-files.js';
import { START, pointOf } from './group-commit.js';
import type { StoredPoint } from './group-commit.js';
import { MAX_MEMO } from './journal-format.js';
import { PointJournal, appending, findJournal, newestPoint } from './point-journal.js';
import type { FoundJournal, FoundPoint } from './point-journal.js';
import { hashUpTo } from './prefix-hash.js';
import { findUsablePoint } from './usable-point.js';
import { RunningHash } from './running-hash.js';
import type { StagedFileOptions } from './staged-options.js';
import { keptHash } from './staged-hashes.js';
import { claimNames, copyApart } from './staging-claim.js';
import { StagingLock } from './staging-lock.js';
import { placeIn, removeStaged, requireKey } from './staging-place.js';
import type { StagingPlace } from './staging-place.js';

/** A staged file that is open, locked, and as long as its point says. */
export interface OpenedStaging {
  readonly place: StagingPlace;
  readonly lock: StagingLock;
  readonly file: OpenFile;
  readonly journal: PointJournal;
  readonly point: StoredPoint;
  /** Hash of the bytes before the point. */
  readonly hash: RunningHash | undefined;
  /** Why less than all that is staged could be used; undefined when nothing was lost, or nothing was there. */
  readonly reason: string | undefined;
}

const RECEIVED_FILE = 'a file in the receive directory';
const EXCLUSIVE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

const placeFor = async ({ receiveDirectory, key, fence, memo = '', files = nodeFiles }: StagedFileOptions) => {
  requireKey(key);
  const length = Buffer.byteLength(memo);
  if (length > MAX_MEMO) throw new TypeError(`a memo has at most ${MAX_MEMO} bytes, not ${length}`);
  try {
    const place = placeIn(files, await files.realpath(receiveDirectory), key, fence);
    await makePrivateDirectory(files, place.staging);
    return place;
  } catch (error) {
    throw storageError(error, 'create', join(receiveDirectory, '…'), RECEIVED_FILE);
  }
};

/** Runs `open` under the lock; when it fails the lock is given back. */
const locked = async <T>(
  place: StagingPlace,
  lock: () => Promise<StagingLock>,
  open: (lock: StagingLock) => Promise<T>,
) => {
  try {
    const taken = await lock();
    return await open(taken).catch(async (error: unknown) => {
      await taken.release();
      throw error;
    });
  } catch (error) {
    throw storageError(error, 'create', place.stagedPath, RECEIVED_FILE);
  }
};

/** A new staged file; nothing is left behind when it cannot be made. */
export const openNew = async (options: StagedFileOptions): Promise<OpenedStaging> => {
  const place = await placeFor(options);
  return locked(
    place,
    () => StagingLock.announce(place),
    (lock) => create(options, place, lock),
  );
};

/** The staged file that was left, cut back to its newest usable point; a new one when there is none. */
export const openAgain = async (options: StagedFileOptions): Promise<OpenedStaging> => {
  const place = await placeFor(options);
  return locked(
    place,
    () => StagingLock.take(place),
    async (lock) => {
      const { files, stagedPath } = place;
      await claimNames(place);
      const marks = await findMarks(place);
      const staged = await factsIfThere(files, stagedPath);
      if (staged !== undefined && staged.kind !== 'file') throw notRegular(stagedPath, staged.kind);
      if (isDelivered(staged, marks)) throw delivered(stagedPath);
      // Marks of a delivery that did not come to its end.
      await removeMarks(files, marks);
      if (staged === undefined) return create(options, place, lock);
      if (lock.isShared && !(await isApart(options, place, lock))) {
        return { ...(await create(options, place, lock)), reason: NO_ROOM_APART };
      }
      const file = await files.open(stagedPath, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      return closedOnFailure(file, () => goOn(options, place, lock, file));
    },
  );
};

const NO_ROOM_APART =
  'the attempt before may still have it open, and the disk has no room for a copy to continue in: from the start';

/** @returns false when there is no room for a copy: then nothing is staged, and the space is free again */
const isApart = async ({ signal }: StagedFileOptions, place: StagingPlace, lock: StagingLock): Promise<boolean> => {
  const isWhole = await copyApart(place, signal).then(
    () => true,
    async (error: unknown) => {
      if (storageError(error, 'write', place.copyPath, RECEIVED_FILE).condition !== 'disk full') throw error;
      await removeStaged(place);
      return false;
    },
  );
  await lock.apart();
  return isWhole;
};

const create = async (options: StagedFileOptions, place: StagingPlace, lock: StagingLock): Promise<OpenedStaging> => {
  const { files, stagedPath } = place;
  const file = await files.open(stagedPath, EXCLUSIVE, 0o600).catch((error: unknown) => {
    throw codeOf(error) === 'EEXIST' ? exists(stagedPath, error) : error;
  });
  return closedOnFailure(file, async () => {
    await removeJournal(place).catch(async (error: unknown) => {
      await files.unlink(stagedPath);
      throw error;
    });
    return newStaging(options, place, lock, file);
  });
};

const goOn = async (
  options: StagedFileOptions,
  place: StagingPlace,
  lock: StagingLock,
  file: OpenFile,
): Promise<OpenedStaging> => {
  const { size, kind } = await file.stat();
  if (kind !== 'file') throw notRegular(place.stagedPath, kind);
  const { format, checksum = 'sha256', signal } = options;
  const found = await findJournal(place.files, place.journalPath, appending(flushesPoints(options)));
  if (typeof found === 'string') return startOver(options, place, lock, file, size === 0 ? undefined : found);
  return closedOnFailure(found.file, async () => {
    const known = keptHash(place.stagedPath);
    const usable = await findUsablePoint(found, file, size, { format, hashed: checksum === 'sha256', known, signal });
    if (usable.found === undefined) {
      await found.file.close();
      return startOver(options, place, lock, file, usable.reason);
    }
    const { hash, reason } = usable;
    return { ...(await goOnFrom(options, place, lock, file, found, usable.found)), hash, reason };
  });
};

/**
 * Cuts a file that is being written, and whose journal is closed, back to point `number`; 0 is the start.
 * @param known the hash at the point, where it is: else what is before the point is read
 * @throws StorageError 2-218 when its journal does not have the point
 */
export const cutBack = async (
  options: StagedFileOptions,
  place: StagingPlace,
  lock: StagingLock,
  file: OpenFile,
  number: number,
  known: RunningHash | undefined,
): Promise<OpenedStaging> => {
  if (number === 0) return startOver(options, place, lock, file, undefined);
  const journal = await findJournal(place.files, place.journalPath, appending(flushesPoints(options)));
  if (typeof journal === 'string') throw noSuchPoint(place.stagedPath, number, journal);
  return closedOnFailure(journal.file, async () => {
    const found = await newestPoint(journal, (point) => point.number === number);
    if (found === undefined) throw noSuchPoint(place.stagedPath, number, 'its journal does not have it');
    const hash = options.checksum === 'none' ? undefined : (known ?? (await hashUpTo(file, found.point.fileOffset)));
    return { ...(await goOnFrom(options, place, lock, file, journal, found)), hash, reason: undefined };
  });
};

/** Cuts file and journal off behind a point. */
const goOnFrom = async (
  options: StagedFileOptions,
  place: StagingPlace,
  lock: StagingLock,
  file: OpenFile,
  found: FoundJournal,
  { index, point }: FoundPoint,
): Promise<Omit<OpenedStaging, 'hash' | 'reason'>> => {
  const flush = flushesPoints(options);
  const journal = await PointJournal.continued(place.files, found, index, flush);
  await file.truncate(point.fileOffset);
  if (flush) {
    // A process that was killed may not have come to flush all that leads to the point, which is told to the peer now.
    await file.datasync();
    await flushDirectories(place.files, [place.staging, place.root]);
  }
  return { place, lock, file, journal, point: pointOf(point) };
};

/** The journal goes first: it must not say anything about what is written from now on. */
const startOver = async (
  options: StagedFileOptions,
  place: StagingPlace,
  lock: StagingLock,
  file: OpenFile,
  reason: string | undefined,
): Promise<OpenedStaging> => {
  await removeJournal(place);
  await file.truncate(0);
  return { ...newStaging(options, place, lock, file), reason };
};

const newStaging = (
  options: StagedFileOptions,
  place: StagingPlace,
  lock: StagingLock,
  file: OpenFile,
): OpenedStaging => {
  const { format, memo = '', checksum = 'sha256' } = options;
  const journal = PointJournal.fresh(place.files, place.journalPath, { format, memo }, flushesPoints(options));
  const hash = checksum === 'sha256' ? new RunningHash() : undefined;
  return { place, lock, file, journal, point: START, hash, reason: undefined };
};

const flushesPoints = ({ durability = 'checkpoint' }: StagedFileOptions): boolean => durability === 'checkpoint';

/** Gone for good when this resolves: a journal that a power cut brings back beside another file would lie. */
const removeJournal = async ({ files, staging, journalPath }: StagingPlace): Promise<void> => {
  // There is none most often, and a look costs a twentieth of a change.
  if ((await factsIfThere(files, journalPath)) === undefined) return;
  if (await unlinkIfThere(files, journalPath)) await flushDirectories(files, [staging]);
};

const closedOnFailure = async <T>(file: OpenFile | undefined, use: () => Promise<T>): Promise<T> => {
  try {
    return await use();
  } catch (error) {
    await file?.close().catch(() => undefined);
    throw error;
  }
};

const exists = (path: string, cause: unknown) =>
  new StorageError(`${path} exists: another attempt of this transfer runs, or left it; let that one end or remove it`, {
    fault: 'local',
    diagnostic: '2-207',
    condition: 'staged file in use',
    peerText: 'this transfer is in progress already',
    cause,
  });

const delivered = (path: string) =>
  new StorageError(`${path} was delivered, or somebody linked it: complete its record, or remove it`, {
    fault: 'local',
    diagnostic: '2-204',
    peerText: 'this file is complete here already',
  });

const notRegular = (path: string, kind: string) =>
  new StorageError(`${path} is not a regular file (${kind}): remove it, it is where a file is staged`, {
    fault: 'local',
    diagnostic: '2-211',
    peerText: 'the receive directory cannot be used',
    expected: 'file',
    got: kind,
  });

const noSuchPoint = (path: string, number: number, why: string) =>
  new StorageError(`${path} cannot go back to sync point ${number}: ${why}; restart the transfer`, {
    fault: 'local',
    diagnostic: '2-218',
    peerText: `sync point ${number} cannot be gone back to: ${why}`,
  });
