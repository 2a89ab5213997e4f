import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import { StorageError } from './errors.js';

import type { FileOperations } from './files.js';
import { nodeFiles } from './node-files.js';

/** Holds staged files inside each receive directory; nothing may be delivered into it. */
export const STAGING_DIRECTORY = '.pesit';

export const isWithin = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

const refusal = (text: string, path: string) =>
  new StorageError(`${text}: ${JSON.stringify(path)}`, {
    fault: 'local',
    diagnostic: '2-226',
    peerText: text,
    got: path,
  });

/**
 * The segments of a path below a directory, checked one by one.
 * @throws StorageError 2-226 for NUL, an absolute path, `.`, `..`, an empty segment, or the staging directory
 */
export const relativeSegments = (relative: string): readonly string[] => {
  if (relative.includes('\0')) throw refusal('a path must not contain NUL', relative);
  if (isAbsolute(relative)) throw refusal('a path below a directory must be relative', relative);
  const segments = relative.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw refusal('a path must not contain empty segments, "." or ".."', relative);
  }
  if (segments[0]?.toLowerCase() === STAGING_DIRECTORY) {
    throw refusal(`${STAGING_DIRECTORY} is reserved for staged files`, relative);
  }
  return segments;
};

/** The real path of `path` (absolute), of which the end need not exist. A part that cannot be resolved stays as it is. */
export const realPathOf = (path: string, files: FileOperations = nodeFiles): Promise<string> =>
  realpathOfExisting(path, files).catch(() => path);

/** The real path of what exists, with what does not exist yet appended. A dangling link counts as outside: it throws. */
const realpathOfExisting = async (path: string, files: FileOperations): Promise<string> => {
  try {
    return await files.realpath(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' || dirname(path) === path) throw error;
  }
  const dangling = await files.lstat(path).then(
    () => true,
    () => false,
  );
  if (dangling) throw refusal('a link that leads nowhere cannot be used', path);
  return join(await realpathOfExisting(dirname(path), files), basename(path));
};

/**
 * The real path of `relative` below `root`, links resolved; it need not exist. An absolute path is taken when it lies inside.
 * @param known the real path of `root`, where the caller has just asked for it
 * @throws StorageError 2-226 when it leads outside, by `..` or by a link, contains NUL, or cannot be resolved
 */
export const resolveInside = async (
  root: string,
  relative: string,
  files: FileOperations = nodeFiles,
  known?: string,
): Promise<string> => {
  if (relative.includes('\0')) throw refusal('a path must not contain NUL', relative);
  const lexicalRoot = resolve(root);
  const lexical = resolve(lexicalRoot, relative);
  if (!isWithin(lexicalRoot, lexical)) throw refusal('the path leads outside its directory', relative);
  const realRoot = known ?? (await resolvable(lexicalRoot, relative, files));
  // Each resolution is a call for every directory on the way, which every transfer would make once more.
  if (lexical === lexicalRoot) return realRoot;
  const real = await resolvable(lexical, relative, files);
  if (!isWithin(realRoot, real)) throw refusal('a link on the path leads outside its directory', relative);
  return real;
};

const resolvable = async (path: string, relative: string, files: FileOperations): Promise<string> => {
  try {
    return await realpathOfExisting(path, files);
  } catch (error) {
    if (error instanceof StorageError) throw error;
    throw refusal(`the path cannot be resolved (${codeOf(error) ?? 'unknown error'})`, relative);
  }
};

/** Whether `path` (absolute) lies inside one of `roots`, links resolved on both sides. Neither needs to exist yet. */
export const isInsideRoots = async (
  path: string,
  roots: readonly string[],
  files: FileOperations = nodeFiles,
): Promise<boolean> => {
  if (!isAbsolute(path) || path.includes('\0')) return false;
  for (const root of roots) {
    try {
      const realRoot = await realpathOfExisting(resolve(root), files);
      if (isWithin(realRoot, await realpathOfExisting(resolve(path), files))) return true;
    } catch {
      // A path that cannot be resolved is not inside.
    }
  }
  return false;
};
