import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { dirname, join } from 'node:path';

import { codeOf } from '@pesit-node/ground';

import { StorageError } from './errors.js';
import { flushDirectories, readFully, writeFully } from './files.js';
import type { FileOperations } from './files.js';
import { urgentFiles } from './node-files.js';

/** The mark that the pods of a cluster expect in a directory. */
export interface KnownMark {
  readonly id: string;
  /** The pod that placed it, and when. */
  readonly node: string;
  readonly at: Date;
}

/** Marks that the pods of a cluster have agreed on. */
export interface VolumeMarks {
  readonly cluster: string;
  /** @returns undefined: no pod has placed one. @throws when the database cannot be asked */
  find(directory: string): Promise<KnownMark | undefined>;
  /** The mark of `id` is there. @returns the one that counts: the first. @throws as `find` */
  settle(directory: string, id: string): Promise<KnownMark>;
}

const SIZE = 1024;

/** File in the root of a shared directory that says which cluster's it is. @param app pods of both apps may share a volume */
export const markName = (app: string): string => `.pesit-${app}-volume`;

interface Mark {
  readonly cluster: string;
  readonly id: string;
}

/**
 * Makes sure that a directory is the one that the pods of the cluster share, by a file in it with an id that the database has,
 * too. The first pod that looks places it. A directory without it, where it was placed before, is another one: most likely the
 * volume is not mounted. An administrator who has replaced the volume on purpose makes an empty file of that name, which gets the id.
 */
export const markChecker = (
  marks: VolumeMarks,
  app: string,
  files: FileOperations = urgentFiles,
): ((directory: string) => Promise<void>) => {
  const known = new Map<string, string>();
  return async (directory) => {
    const path = join(directory, markName(app));
    const found = await readMark(files, path);
    const id = found === undefined || found === 'empty' ? undefined : found.id;
    // Nothing is asked of the database as long as all is well.
    if (id !== undefined && known.get(directory) === id) return;
    if (id !== undefined) {
      if (found !== 'empty' && found?.cluster !== marks.cluster) {
        throw foreign(path, `the cluster ${found?.cluster ?? ''}`, marks.cluster);
      }
      const expected = await marks.settle(directory, id);
      if (expected.id !== id) throw foreign(path, 'another database', marks.cluster);
      known.set(directory, id);
      return;
    }
    const expected = await marks.find(directory);
    if (found === undefined && expected !== undefined) throw missing(path, expected);
    if (found === undefined) {
      const own = randomUUID();
      // Where another pod was faster, the next look reads what it has placed.
      if (!(await place(files, path, { cluster: marks.cluster, id: own }))) return;
      const first = await marks.settle(directory, own);
      if (first.id === own) return;
      await files.unlink(path);
      throw missing(path, first);
    }
    const { id: agreed } = expected ?? (await marks.settle(directory, randomUUID()));
    await replace(files, path, { cluster: marks.cluster, id: agreed });
  };
};

const readMark = async (files: FileOperations, path: string): Promise<Mark | 'empty' | undefined> => {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await files.open(path, flags).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const bytes = Buffer.alloc(SIZE);
    const text = bytes
      .subarray(0, await readFully(file, [bytes], 0, SIZE))
      .toString('utf8')
      .trim();
    if (text === '') return 'empty';
    const [cluster = '', id = ''] = text.split('\n');
    return { cluster, id };
  } finally {
    await file.close();
  }
};

/** Whole or not at all. @returns false when one is there. */
const place = async (files: FileOperations, path: string, mark: Mark): Promise<boolean> => {
  const draft = await writeDraft(files, path, mark);
  try {
    await files.link(draft, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    return false;
  } finally {
    await files.unlink(draft);
  }
  await flushDirectories(files, [dirname(path)]);
  return true;
};

const replace = async (files: FileOperations, path: string, mark: Mark): Promise<void> => {
  await files.rename(await writeDraft(files, path, mark), path);
  await flushDirectories(files, [dirname(path)]);
};

const writeDraft = async (files: FileOperations, path: string, { cluster, id }: Mark): Promise<string> => {
  const draft = `${path}.${randomUUID()}`;
  const file = await files.open(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o640);
  try {
    const bytes = Buffer.from(`${cluster}\n${id}\n`);
    await writeFully(file, [bytes], 0, bytes.length);
    await file.sync();
  } finally {
    await file.close();
  }
  return draft;
};

const refused = (message: string): StorageError =>
  new StorageError(message, {
    fault: 'local',
    diagnostic: '2-201',
    condition: 'not shared',
    peerText: 'the storage of this node is not available for now: try again later',
  });

const foreign = (path: string, whose: string, cluster: string): StorageError =>
  refused(
    `${path} says that the volume is of ${whose}, and this pod is of the cluster ${cluster}: mount the volume of this cluster, or empty that file to give it this one`,
  );

const missing = (path: string, { node, at }: KnownMark): StorageError =>
  refused(
    `${path} is missing, which ${node} placed on ${at.toISOString()}: the volume that the pods share is not mounted here; if it ` +
      'was replaced on purpose, create that file, empty; if the pods share none, set storage.shared to false',
  );
