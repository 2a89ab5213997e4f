import { access, constants, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

import { codeOf, reasonOf } from '../thrown.js';

/** `data.directory` cannot be used; the message says why and what to do. */
export class DataDirectoryError extends Error {
  override readonly name = 'DataDirectoryError';
}

const explain = (error: unknown): string => {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
      return `user ${process.getuid?.() ?? 'of this process'} may not write there`;
    case 'EROFS':
      return 'the file system is read-only';
    case 'EEXIST':
    case 'ENOTDIR':
      return 'it, or a part of its path, is a file';
    case 'ENOSPC':
      return 'no space is left';
    default:
      return reasonOf(error);
  }
};

/** `recursive` of Node's own mkdir never ends where a directory that is there takes no new one (/proc). */
const makeAll = async (path: string): Promise<void> => {
  if (!(await isThere(dirname(path)))) await makeAll(dirname(path));
  try {
    await mkdir(path, { mode: 0o750 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error;
  }
};

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/**
 * Makes `data.directory`, and sees that it can be written, before anything is opened in it.
 * @throws {DataDirectoryError}
 */
export const prepareDataDirectory = async (path: string): Promise<void> => {
  try {
    await makeAll(path);
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new DataDirectoryError(
      `data.directory ${path} cannot be used: ${explain(error)}. Expected a directory that the service may read and write: ` +
        'give it the rights, or choose another with --data.directory',
      { cause: error },
    );
  }
};
