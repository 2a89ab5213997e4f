import { join } from 'node:path';
import { unlinkIfThere } from './files.js';
import type { FileOperations } from './files.js';
import { STAGING_DIRECTORY } from './path-safety.js';

const KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
const STAGED = '.part';
const JOURNAL = '.points';

/** Where the files of one key lie: `<root>/.pesit/<key>.part`, its journal `<key>.points`, its locks beside them. */
export interface StagingPlace {
  readonly files: FileOperations;
  readonly key: string;
  /** Real path of the receive directory. */
  readonly root: string;
  readonly staging: string;
  readonly stagedPath: string;
  readonly journalPath: string;
}

export const isKey = (key: string): boolean => KEY.test(key);

/** @throws TypeError for a key that cannot name a file: the caller's mistake, no peer chooses keys */
export const requireKey = (key: string): void => {
  if (!isKey(key)) throw new TypeError(`${JSON.stringify(key)} cannot name a staged file`);
};

export const placeIn = (files: FileOperations, root: string, key: string): StagingPlace => {
  const staging = join(root, STAGING_DIRECTORY);
  return {
    files,
    key,
    root,
    staging,
    stagedPath: join(staging, key + STAGED),
    journalPath: join(staging, key + JOURNAL),
  };
};

/** The key to which a staged file or a journal of this name belongs. */
export const keyOfName = (name: string): string | undefined => {
  const suffix = [STAGED, JOURNAL].find((end) => name.endsWith(end));
  return suffix === undefined ? undefined : name.slice(0, -suffix.length);
};

/** The journal first: alone it says nothing, beside another file it would lie. Marks of a delivery have gone before. */
export const removeStaged = async ({ files, stagedPath, journalPath }: StagingPlace): Promise<void> => {
  await unlinkIfThere(files, journalPath);
  await unlinkIfThere(files, stagedPath);
};
