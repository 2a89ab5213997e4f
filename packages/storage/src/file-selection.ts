import { basename } from 'node:path';
import { breathe } from './at-once.js';
import { DirectoryIndex } from './directory-index.js';
import { storageError } from './errors.js';
import { globOf, matchesGlob } from './glob.js';
import { isSameVersion } from './file-version.js';
import { isPlainName, sendableAt, sendableIn } from './sendable-file.js';
import type { SendableFile } from './sendable-file.js';

export interface SelectionRequest {
  /** PI 12: a file of exactly this name is taken first, whatever the rest says. */
  readonly exactName?: string;
  /** filenamePattern; default `*`. */
  readonly pattern?: string;
  /** Asked about files in batches, from the oldest on: those that are wanted (not yet sent to this partner …). Default: all. */
  readonly wanted?: (files: readonly SendableFile[]) => Promise<ReadonlySet<SendableFile>>;
  /** Asked about those, as they are now, from the oldest on, until it says yes: what it takes is chosen. Default: yes. */
  readonly take?: (file: SendableFile) => boolean;
}

/** Files in the first batch: most often the oldest is wanted. Each of the next is four times as large, to the last size. */
const FIRST_BATCH = 64;
const LARGEST_BATCH = 1024;
/** Names that are gone through before others have the event loop. */
const SLICE = 1000;

/**
 * The file that answers a SELECT (design §4): the one named exactly PI 12, else the oldest (then the first by name)
 * that matches the pattern and is wanted. Names that begin with a dot, directories, devices and links that lead out
 * of the directory are not seen. A `directory` that is itself a regular file is that file.
 *
 * Ages are those of at most ten seconds ago; that there is none (2-205) is said of the directory as it is now.
 * @param index keeps what is in the directory from one call to the next; default: nothing is kept
 * @returns undefined when there is none (answer 2-205)
 * @throws StorageError 2-205 the directory is missing, 2-211 it cannot be read; whatever `wanted` throws
 */
export const findFileToSend = async (
  directory: string,
  request: SelectionRequest = {},
  index = new DirectoryIndex(),
): Promise<SendableFile | undefined> => {
  const { exactName } = request;
  const named = await inDirectory(directory, async () => {
    const root = await index.files.realpath(directory);
    const { kind } = await index.files.lstat(root);
    if (kind === 'file') return { only: await sendableAt(index.files, root, basename(root), root) };
    if (exactName === undefined || !isPlainName(exactName)) return { root };
    return { root, only: await sendableIn(index.files, root, exactName) };
  });
  const { root, only } = named;
  if (root === undefined || only !== undefined) return only;
  const look = async (fresh: boolean) => {
    const { files, isFresh } = await inDirectory(directory, () => index.look(root, fresh));
    const again = ({ name }: SendableFile) => sendableIn(index.files, root, name);
    return { isFresh, found: await chooseOldest(files, request, again, isFresh) };
  };
  const first = await look(false);
  const { found } = first.found !== undefined || first.isFresh ? first : await look(true);
  return found;
};

/**
 * The file of exactly this name, if it matches the pattern; what `findFileToSend` does not see is not there. A `directory`
 * that is itself a regular file answers to its own name.
 * @throws StorageError as `findFileToSend`
 */
export const findNamedFile = (
  directory: string,
  name: string,
  pattern = '*',
  { files } = new DirectoryIndex(),
): Promise<SendableFile | undefined> =>
  inDirectory(directory, async () => {
    const root = await files.realpath(directory);
    if (!isPlainName(name) || !matchesGlob(pattern, name)) return undefined;
    if ((await files.lstat(root)).kind !== 'file') return sendableIn(files, root, name);
    return name === basename(root) ? sendableAt(files, root, name, root) : undefined;
  });

/**
 * The oldest of what is listed that matches, is wanted, and can be taken as it is now.
 * @param again looks at one file again
 * @param isFresh the list was just made: a file that is not as listed is judged as it is now
 * @returns undefined when there is none, or when one is not as it was listed, so that others may be older
 */
export const chooseOldest = async (
  listed: readonly SendableFile[],
  { pattern = '*', wanted = (files) => Promise.resolve(new Set(files)), take = () => true }: SelectionRequest,
  again: (file: SendableFile) => Promise<SendableFile | undefined>,
  isFresh: boolean,
): Promise<SendableFile | undefined> => {
  for await (const batch of batchesOf(listed, globOf(pattern))) {
    const those = await wanted(batch);
    for (const file of batch) {
      if (!those.has(file)) continue;
      const now = await again(file);
      if (now === undefined) continue;
      if (now.path !== file.path || !isSameVersion(now, file)) {
        if (!isFresh) return undefined;
        if (!(await wanted([now])).has(now)) continue;
      }
      if (take(now)) return now;
    }
  }
  return undefined;
};

/** Those that match, in order. */
async function* batchesOf(
  files: readonly SendableFile[],
  matches: (name: string) => boolean,
): AsyncGenerator<readonly SendableFile[]> {
  let batch: SendableFile[] = [];
  let size = FIRST_BATCH;
  for (const [i, file] of files.entries()) {
    if (i % SLICE === SLICE - 1) await breathe();
    if (matches(file.name)) batch.push(file);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
    size = Math.min(4 * size, LARGEST_BATCH);
  }
  if (batch.length > 0) yield batch;
}

const inDirectory = async <T>(directory: string, look: () => Promise<T>): Promise<T> =>
  look().catch((error: unknown) => {
    throw storageError(error, 'open', directory, 'the send directory');
  });
