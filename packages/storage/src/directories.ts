import { join } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import { StorageError, storageError } from './errors.js';
import type { FileOperations } from './files.js';
import { directoryLooks } from './node-files.js';
import { STAGING_DIRECTORY, isWithin } from './path-safety.js';

const PRIVATE_DIRECTORY = 0o700;
const RECEIVE_DIRECTORY = 'the receive directory';

/** Bytes that this process may still write on the volume of `directory`. */
export const freeSpace = async (directory: string): Promise<number> => {
  try {
    return await directoryLooks.free(directory);
  } catch (error) {
    throw storageError(error, 'create', join(directory, '…'), `a file in ${RECEIVE_DIRECTORY}`);
  }
};

/**
 * Checks that a file can be received into `directory`; creates nothing.
 * @throws StorageError 2-211 (local) when it is missing, not a directory, or not writable
 */
export const ensureReceiveDirectory = async (directory: string): Promise<void> => {
  try {
    if (!(await directoryLooks.isDirectory(directory))) {
      throw new StorageError(`${directory} is not a directory: correct the receiveDirectory`, {
        fault: 'local',
        diagnostic: '2-211',
        peerText: `${RECEIVE_DIRECTORY} cannot be used`,
      });
    }
    await directoryLooks.writable(directory);
  } catch (error) {
    throw storageError(error, 'create', join(directory, '…'), `a file in ${RECEIVE_DIRECTORY}`);
  }
};

/** Creates a directory for this service alone, unless it is there. A link in its place is refused. */
export const makePrivateDirectory = async (files: FileOperations, path: string): Promise<void> => {
  if (await isPrivateDirectory(files, path)) return;
  try {
    await files.mkdir(path, PRIVATE_DIRECTORY);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    await isPrivateDirectory(files, path);
  }
};

/** @returns false when there is nothing. @throws StorageError 2-211 when there is something else */
const isPrivateDirectory = async (files: FileOperations, path: string): Promise<boolean> => {
  const facts = await files.lstat(path).catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  });
  if (facts === undefined) return false;
  if (facts.kind === 'directory') return true;
  throw new StorageError(`${path} is a ${facts.kind}, expected a directory: remove it, it is where files are staged`, {
    fault: 'local',
    diagnostic: '2-211',
    peerText: `${RECEIVE_DIRECTORY} cannot be used`,
    expected: 'directory',
    got: facts.kind,
  });
};

/**
 * Creates the directories of `segments` below `root` where they are missing, one by one, so that each is known to be
 * inside before the next is made in it. Links are followed only where they stay inside, and not into the staging directory.
 * @param root real path
 * @returns real paths from `root` to the last
 * @throws StorageError 2-226 when a link leads elsewhere
 */
export const makeDirectoriesInside = async (
  files: FileOperations,
  root: string,
  segments: readonly string[],
): Promise<readonly string[]> => {
  const chain = [root];
  let current = root;
  for (const segment of segments) {
    const next = join(current, segment);
    try {
      await files.mkdir(next, PRIVATE_DIRECTORY);
      current = next;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
      current = await files.realpath(next);
      if (!isWithin(root, current) || isWithin(join(root, STAGING_DIRECTORY), current)) {
        throw new StorageError(`${next} is a link to ${current}, where nothing may be delivered: remove it`, {
          fault: 'local',
          diagnostic: '2-226',
          peerText: 'the name leads outside the receive directory',
          expected: `inside ${root}`,
          got: current,
        });
      }
    }
    chain.push(current);
  }
  return chain;
};
