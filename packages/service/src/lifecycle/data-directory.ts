import { access, constants, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { codeOf, makeDirectories, reasonOf } from '@pesit-node/ground';

/** A file in each data directory, by which every service of ours knows one that is not its own: no partner is let into it. */
export const DATA_MARK = '.pesit-node';

const MARK_TEXT =
  'Data directory of a service of PeSIT Node: no other one lets partners in here. Remove this file once no service uses the directory.\n';

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

const mark = async (path: string): Promise<void> => {
  try {
    await writeFile(path, MARK_TEXT, { flag: 'wx', mode: 0o640 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
};

/**
 * Makes and marks `data.directory`, and sees that it can be written, before anything is opened in it.
 * @throws {DataDirectoryError}
 */
export const prepareDataDirectory = async (path: string): Promise<void> => {
  try {
    await makeDirectories(path, 0o750);
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    await mark(join(path, DATA_MARK));
  } catch (error) {
    throw new DataDirectoryError(
      `data.directory ${path} cannot be used: ${explain(error)}. Expected a directory that the service may read and write: ` +
        'give it the rights, or choose another with --data.directory',
      { cause: error },
    );
  }
};
