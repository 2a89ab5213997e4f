/**
 * Taking staged files from an attempt that may still be at work: its process stood still for longer than its lease, and may continue
 * at any moment, between any two calls. The record of the transfer has a new fence by then, which ends what it does in the database;
 * this is what ends it on the disk.
 *
 * - Names: the files bear the fence of their claim. A later one moves them to names of its own first, each in one step, and looks
 *   what they say then. From that moment whatever the former owner does by name (deliver, mark, remove) finds nothing.
 * - Open files: the former owner writes on into those that it has open. So who continues a file does so in a copy, unless nobody else
 *   can have it open: its lock is gone, or its process is.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { makePrivateDirectory } from './directories.js';
import { codeOf } from '@pesit-node/ground';
import { claimMarks } from './delivery-mark.js';
import { StorageError, storageError } from './errors.js';
import { readFully, unlinkIfThere, writeFully } from './files.js';
import type { FileOperations } from './files.js';
import { nodeFiles } from './node-files.js';
import { placeIn, readStagedName, requireKey } from './staging-place.js';
import type { StagedName, StagingPlace } from './staging-place.js';

/** Bytes copied at once. */
const BLOCK = 1_048_576;

/** Which claims the files of one key bear: of those that belong together, the newest. */
export interface NewestNames {
  readonly staged: number | undefined;
  /** A journal says nothing of a file that a later claim has taken. */
  readonly journal: number | undefined;
  readonly newest: number;
}

export const newestNames = (names: readonly StagedName[]): NewestNames => {
  const newest = (kind: StagedName['kind'], from: number): number | undefined => {
    const fences = names.filter((name) => name.kind === kind && name.fence >= from).map(({ fence }) => fence);
    return fences.length === 0 ? undefined : Math.max(...fences);
  };
  const staged = newest('part', 0);
  return { staged, journal: newest('points', staged ?? 0), newest: Math.max(0, ...names.map(({ fence }) => fence)) };
};

/**
 * Moves what earlier claims of the key have staged to the names of this one, and removes what is older still.
 * @throws StorageError 2-207 when a later claim has it
 */
export const claimNames = async (place: StagingPlace): Promise<void> => {
  const { files, staging, key, fence, root, journalPath, stagedPath } = place;
  const names = (await files.readdir(staging)).flatMap((name) => readStagedName(name) ?? []);
  const found = names.filter((name) => name.key === key);
  const { staged, journal, newest } = newestNames(found);
  if (newest > fence) throw taken(place, newest);
  // The journal goes first: it may be beside an older file for a moment, never an older one beside this file.
  if (journal !== undefined && journal < fence)
    await move(files, placeIn(files, root, key, journal).journalPath, journalPath);
  if (staged !== undefined && staged < fence)
    await move(files, placeIn(files, root, key, staged).stagedPath, stagedPath);
  for (const { fence: other, kind } of found) {
    if (other < fence) await unlinkIfThere(files, join(staging, `${placeIn(files, root, key, other).name}.${kind}`));
  }
};

/** Another claim, or the owner, was faster: then it is not there. */
const move = async (files: FileOperations, from: string, to: string): Promise<void> => {
  await files.rename(from, to).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
  });
};

/**
 * Claims what is staged under a key: whoever worked on it under a lower fence can deliver it no more, nor take a delivery back. To be called when the record
 * has the fence, and before anybody looks whether the file was delivered.
 * @throws StorageError 2-207 when a later claim has it; 2-211, 2-213
 */
export const claimStaged = async (
  receiveDirectory: string,
  key: string,
  fence: number,
  files: FileOperations = nodeFiles,
): Promise<void> => {
  requireKey(key);
  try {
    const place = placeIn(files, await files.realpath(receiveDirectory), key, fence);
    await makePrivateDirectory(files, place.staging);
    await claimNames(place);
    await claimMarks(place);
  } catch (error) {
    throw storageError(error, 'create', join(receiveDirectory, '…'), 'the staged file');
  }
};

/**
 * Gives the claim a staged file and a journal of its own, of the same bytes. The journal first: each of its points was on
 * stable storage before it was written, and so is in the copy of the file.
 * @param signal looked at between two blocks
 * @throws errors of the file layer; the files are as they were then, or copied
 */
export const copyApart = async (place: StagingPlace, signal?: AbortSignal): Promise<void> => {
  for (const path of [place.journalPath, place.stagedPath]) await copyOne(place, path, signal);
};

const copyOne = async ({ files, copyPath }: StagingPlace, path: string, signal?: AbortSignal): Promise<void> => {
  const from = await files
    .open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    .catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
      return undefined;
    });
  if (from === undefined) return;
  try {
    await unlinkIfThere(files, copyPath);
    const to = await files.open(copyPath, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      const block = Buffer.allocUnsafe(BLOCK);
      for (let position = 0; ;) {
        signal?.throwIfAborted();
        const read = await readFully(from, [block], position, BLOCK);
        if (read > 0) await writeFully(to, [block.subarray(0, read)], position, read);
        position += read;
        if (read < BLOCK) break;
      }
      await to.datasync();
    } finally {
      await to.close();
    }
    await files.rename(copyPath, path);
  } catch (error) {
    await unlinkIfThere(files, copyPath).catch(() => false);
    throw error;
  } finally {
    await from.close();
  }
};

export const taken = ({ key, fence }: StagingPlace, newer: number) =>
  new StorageError(
    `the staged file ${key} was taken by a later attempt (fence ${newer}, this one has ${fence}): this attempt has lost it`,
    {
      fault: 'local',
      diagnostic: '2-207',
      condition: 'staged file in use',
      peerText: 'another session has taken over this transfer',
    },
  );
