import { join } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import type { FileVersion } from './file-version.js';
import type { FileOperations } from './files.js';
import { isWithin } from './path-safety.js';

/** Calls of the file system that looking for files needs. */
export type LookFiles = Pick<FileOperations, 'lstat' | 'realpath' | 'readdir'>;

/** A regular file that may be sent, and its version. */
export interface SendableFile extends FileVersion {
  /** Its name in the directory. */
  readonly name: string;
  /** Path that `FileStore.open` takes; on the local disk: absolute, links resolved. */
  readonly path: string;
  readonly modified: Date;
}

/** Hidden names are those of files that are not complete. */
export const isPlainName = (name: string) => name !== '' && !name.startsWith('.') && !/[/\0]/.test(name);

/** Without the code point order of `<` two nodes with different locales would take different files. */
export const byAge = (a: SendableFile, b: SendableFile): number => {
  if (a.mtimeNs !== b.mtimeNs) return a.mtimeNs < b.mtimeNs ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
};

/**
 * The file of this name in `root` (a real path), as it is now. Directories, devices, and links that lead out of the directory
 * or into a hidden one are not seen. A file that is moved away or forbidden meanwhile is as if it had not been there.
 */
export const sendableIn = async (files: LookFiles, root: string, name: string): Promise<SendableFile | undefined> => {
  try {
    return await sendableAt(files, root, name, join(root, name));
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return undefined;
  }
};

/** @throws errors of the file layer */
export const sendableAt = async (
  files: LookFiles,
  root: string,
  name: string,
  at: string,
): Promise<SendableFile | undefined> => {
  let path = at;
  let facts = await files.lstat(at);
  if (facts.kind === 'link') {
    path = await files.realpath(at);
    if (!isWithin(root, path) || path.slice(root.length).includes('/.')) return undefined;
    facts = await files.lstat(path);
  }
  const { kind, size, mtimeNs } = facts;
  if (kind !== 'file') return undefined;
  return { name, path, size, mtimeNs, modified: new Date(Number(mtimeNs / 1_000_000n)) };
};
