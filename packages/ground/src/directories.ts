import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

import { codeOf } from './thrown.js';

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/**
 * Makes a directory, and those above it that are missing. `recursive` of Node's own mkdir never ends where a directory that is there
 * takes no new one (/proc), and keeps a thread of the pool busy meanwhile.
 * @param mode of each that is made
 * @returns the first one that was made; undefined when `path` was there
 * @throws the error of the operating system; EEXIST for something else than a directory
 */
export const makeDirectories = async (path: string, mode: number): Promise<string | undefined> => {
  const above = dirname(path);
  const made = (await isThere(above)) ? undefined : await makeDirectories(above, mode);
  try {
    await mkdir(path, { mode });
    return made ?? path;
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !(await stat(path)).isDirectory()) throw error;
    return made;
  }
};
