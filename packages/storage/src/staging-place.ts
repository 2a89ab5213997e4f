import { join } from 'node:path';
import { unlinkIfThere } from './files.js';
import type { FileOperations } from './files.js';
import { STAGING_DIRECTORY } from './path-safety.js';

const KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
/** `part` is the staged file, `points` its journal, `copy` a copy of either that is not whole yet. */
const KINDS = ['part', 'points', 'copy'] as const;
type Kind = (typeof KINDS)[number];

/** The fence of who works without one, and of a first attempt: its files bear the key alone. */
export const FIRST_FENCE = 1;

/** Where the files of one claim of a key lie: `<root>/.pesit/<key>.part`, or `<key>~<fence>.part`, its journal and lock beside it. */
export interface StagingPlace {
  readonly files: FileOperations;
  readonly key: string;
  /** Number of the claim. */
  readonly fence: number;
  /** Key and fence, as names begin. */
  readonly name: string;
  /** Real path of the receive directory. */
  readonly root: string;
  readonly staging: string;
  readonly stagedPath: string;
  readonly journalPath: string;
  readonly copyPath: string;
}

/** A key and the claim under which it bears a name. */
export interface ClaimedKey {
  readonly key: string;
  readonly fence: number;
}

export interface StagedName extends ClaimedKey {
  readonly kind: Kind;
}

export const isKey = (key: string): boolean => KEY.test(key);

/** @throws TypeError for a key that cannot name a file: the caller's mistake, no peer chooses keys */
export const requireKey = (key: string): void => {
  if (!isKey(key)) throw new TypeError(`${JSON.stringify(key)} cannot name a staged file`);
};

/** How the names of a claim begin: no key contains `~`. */
export const claimedName = ({ key, fence }: ClaimedKey): string => (fence === FIRST_FENCE ? key : `${key}~${fence}`);

/** The reverse of `claimedName`. */
export const readClaimedName = (name: string): ClaimedKey => {
  const [, key = name, fence = FIRST_FENCE] = /^(.*)~(\d{1,15})$/.exec(name) ?? [];
  return { key, fence: Number(fence) };
};

export const placeIn = (files: FileOperations, root: string, key: string, fence = FIRST_FENCE): StagingPlace => {
  const staging = join(root, STAGING_DIRECTORY);
  const name = claimedName({ key, fence });
  const [stagedPath, journalPath, copyPath] = KINDS.map((kind) => join(staging, `${name}.${kind}`)) as [
    string,
    string,
    string,
  ];
  return { files, key, fence, name, root, staging, stagedPath, journalPath, copyPath };
};

/** The key, claim and kind in the name of a staged file, a journal, or a copy; undefined for any other name. */
export const readStagedName = (name: string): StagedName | undefined => {
  const kind = KINDS.find((one) => name.endsWith(`.${one}`));
  return kind && { ...readClaimedName(name.slice(0, -kind.length - 1)), kind };
};

/** The journal first: alone it says nothing, beside another file it would lie. Marks of a delivery have gone before. */
export const removeStaged = async ({ files, stagedPath, journalPath, copyPath }: StagingPlace): Promise<void> => {
  for (const path of [copyPath, journalPath, stagedPath]) await unlinkIfThere(files, path);
};
