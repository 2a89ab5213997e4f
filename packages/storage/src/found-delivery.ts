/** Finds out from the file system how the delivery of a process that has died ended. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { dirname } from 'node:path';
import { storageError } from './errors.js';
import { flushDirectories, readFully, unlinkIfThere } from './files.js';
import type { FileFacts, FileOperations } from './files.js';
import { nodeFiles } from './node-files.js';
import { peekStaged } from './leftovers.js';

/** The file that was about to be delivered. */
export interface IntendedDelivery {
  /** Where it may have gone, in the order of trial; absolute. */
  readonly paths: readonly string[];
  /** Bytes. */
  readonly size: number;
  /** `sha256:` and hex; undefined when none is computed. */
  readonly checksum?: string | undefined;
}

const BLOCK = 1_048_576;

/**
 * `sha256:` and hex of a whole file, read anew.
 * @param signal looked at between two blocks of 1 MB; its reason is thrown
 * @throws StorageError
 */
export const hashOfFile = async (
  path: string,
  signal?: AbortSignal,
  files: FileOperations = nodeFiles,
): Promise<string> => {
  const hash = createHash('sha256');
  try {
    const file = await files.open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const block = Buffer.allocUnsafe(BLOCK);
      for (let position = 0; ;) {
        signal?.throwIfAborted();
        const read = await readFully(file, [block], position, BLOCK);
        hash.update(block.subarray(0, read));
        position += read;
        if (read < BLOCK) break;
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw storageError(error, 'read', path, 'the received file');
  }
  return `sha256:${hash.digest('hex')}`;
};

/**
 * Where a file was delivered; the first of its paths when it was fetched from wherever it was.
 * @returns undefined when it was not: it is still staged, or gone
 */
export const findDelivered = async (
  receiveDirectory: string,
  key: string,
  { paths, size, checksum }: IntendedDelivery,
  signal?: AbortSignal,
  files: FileOperations = nodeFiles,
): Promise<string | undefined> => {
  const staged = await peekStaged(receiveDirectory, key, files);
  if (staged?.path !== undefined && !staged.delivered) return undefined;
  const ours = staged?.path === undefined ? undefined : await factsOf(files, staged.path);
  for (const path of paths) {
    const found = await factsOf(files, path);
    if (found?.kind !== 'file' || found.size !== size) continue;
    if (ours !== undefined && (ours.inode !== found.inode || ours.device !== found.device)) continue;
    if (ours === undefined && checksum !== undefined && (await hashOfFile(path, signal, files)) !== checksum) continue;
    return path;
  }
  return staged?.delivered === true ? paths[0] : undefined;
};

/**
 * Frees a final name that was taken for a delivery and never filled: where there are no hard links an empty file keeps the name
 * until the staged one is moved onto it.
 * @returns false when the file of that name is not empty, or gone
 */
export const freeEmptyName = async (path: string, files: FileOperations = nodeFiles): Promise<boolean> => {
  const facts = await factsOf(files, path);
  return facts?.kind === 'file' && facts.size === 0 && unlinkIfThere(files, path);
};

/**
 * Ends a taking back that its process did not: removes the file of that name when it is the one whose delivery was withdrawn.
 * @returns whether it was there
 */
export const finishTakingBack = async (
  receiveDirectory: string,
  key: string,
  path: string,
  files: FileOperations = nodeFiles,
): Promise<boolean> => {
  const staged = await peekStaged(receiveDirectory, key, files);
  if (staged?.withdrawn !== true || staged.path === undefined) return false;
  const [ours, found] = await Promise.all([factsOf(files, staged.path), factsOf(files, path)]);
  if (ours === undefined || found?.inode !== ours.inode || found.device !== ours.device) return false;
  const isGone = await unlinkIfThere(files, path);
  await flushDirectories(files, [dirname(path)]);
  return isGone;
};

const factsOf = (files: FileOperations, path: string): Promise<FileFacts | undefined> =>
  files.lstat(path).catch(() => undefined);
