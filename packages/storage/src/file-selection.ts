import { opendir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorCode, storageError } from './errors.js';
import { nodeFiles } from './files.js';
import { matchesGlob } from './glob.js';
import { isWithin } from './path-safety.js';

/** A regular file that may be sent. */
export interface SendableFile {
  /** Its name in the directory. */
  readonly name: string;
  /** Absolute, links resolved: what `FileSource.open` takes. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly modified: Date;
  /** Modification time in nanoseconds since the epoch: size and this say whether it is the same file. */
  readonly mtimeNs: bigint;
}

export interface SelectionRequest {
  /** PI 12: a file of exactly this name is taken first, whatever `pattern` and `accept` say. */
  readonly exactName?: string;
  /** filenamePattern; default `*`. */
  readonly pattern?: string;
  /** Asked from the oldest on, until it says yes (not yet sent to this partner …). Default: yes. */
  readonly accept?: (file: SendableFile) => boolean | Promise<boolean>;
}

/**
 * The file that answers a SELECT (design §4): the one named exactly PI 12, else the oldest (then the first by name)
 * that matches the pattern and is accepted. Names that begin with a dot, directories, devices and links that lead out
 * of the directory are not seen. A `directory` that is itself a regular file is that file.
 * @returns undefined when there is none (answer 2-205)
 * @throws StorageError 2-205 the directory is missing, 2-211 it cannot be read
 */
export async function findFileToSend(
  directory: string,
  { exactName, pattern = '*', accept = () => true }: SelectionRequest = {},
): Promise<SendableFile | undefined> {
  const { only, candidates } = await lookInto(directory, exactName, pattern).catch((error: unknown) => {
    throw storageError(error, 'open', directory, 'the send directory');
  });
  if (only) return only;
  for (const file of candidates) if (await accept(file)) return file;
  return undefined;
}

/**
 * The file of exactly this name, if it matches the pattern; what `findFileToSend` does not see is not there. A `directory`
 * that is itself a regular file answers to its own name.
 * @throws StorageError as `findFileToSend`
 */
export async function findNamedFile(directory: string, name: string, pattern = '*'): Promise<SendableFile | undefined> {
  try {
    const root = await nodeFiles.realpath(directory);
    if (!isPlainName(name) || !matchesGlob(pattern, name)) return undefined;
    if ((await stat(root)).isFile()) return name === basename(root) ? await sendable(root, name, root) : undefined;
    return await sendableOrNothing(root, name);
  } catch (error) {
    throw storageError(error, 'open', directory, 'the send directory');
  }
}

/** The file that needs no asking, or those that match, oldest first. */
async function lookInto(
  directory: string,
  exactName: string | undefined,
  pattern: string,
): Promise<{ only?: SendableFile | undefined; candidates: readonly SendableFile[] }> {
  const root = await nodeFiles.realpath(directory);
  if ((await stat(root)).isFile()) return { only: await sendable(root, basename(root), root), candidates: [] };
  if (exactName !== undefined && isPlainName(exactName)) {
    const only = await sendableOrNothing(root, exactName);
    if (only) return { only, candidates: [] };
  }
  const candidates: SendableFile[] = [];
  for await (const { name } of await opendir(root)) {
    if (!isPlainName(name) || !matchesGlob(pattern, name)) continue;
    const file = await sendableOrNothing(root, name);
    if (file) candidates.push(file);
  }
  return { candidates: candidates.sort(byAge) };
}

const isPlainName = (name: string) => name !== '' && !name.startsWith('.') && !/[/\0]/.test(name);

/** Without the code point order of `<` two nodes with different locales would take different files. */
function byAge(a: SendableFile, b: SendableFile): number {
  if (a.mtimeNs !== b.mtimeNs) return a.mtimeNs < b.mtimeNs ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** A file that is moved away or forbidden while the directory is read is as if it had not been there. */
async function sendableOrNothing(root: string, name: string): Promise<SendableFile | undefined> {
  try {
    return await sendable(root, name, join(root, name));
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return undefined;
  }
}

async function sendable(root: string, name: string, at: string): Promise<SendableFile | undefined> {
  const path = await nodeFiles.realpath(at);
  if (!isWithin(root, path) || path.slice(root.length).includes('/.')) return undefined;
  const { kind, size, mtimeNs } = await nodeFiles.lstat(path);
  if (kind !== 'file') return undefined;
  return { name, path, size, mtimeNs, modified: new Date(Number(mtimeNs / 1_000_000n)) };
}
