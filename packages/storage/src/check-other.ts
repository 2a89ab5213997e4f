/** The other process of `checkStorage`: it does what it is asked with names that both see, and tells what it saw. */
import { constants } from 'node:fs';

import { codeOf } from '@pesit-node/ground';
import { readFully, writeFully } from './files.js';
import type { FileFacts, FileOperations } from './files.js';

/** One thing to do or to look at; it can be sent to another process. */
export type StorageQuestion =
  | { readonly verb: 'create' | 'read'; readonly path: string }
  | { readonly verb: 'link'; readonly path: string; readonly existing: string }
  | { readonly verb: 'list'; readonly path: string }
  /** Reads `path` again and again until `until` exists. */
  | { readonly verb: 'watch'; readonly path: string; readonly until: string };

export interface StorageAnswer {
  /** `create`, `link`: whether this process made the name; `read`: whether it was there. */
  readonly done: boolean;
  readonly text?: string;
  readonly facts?: FileFacts;
  readonly names?: readonly string[];
  /** `watch`: how often it was read, not there, and neither of the contents that were ever written. */
  readonly reads?: number;
  readonly missing?: number;
  readonly torn?: number;
}

/** Bytes of a content to watch: more than one page and one block, so that halves can be told. */
const CONTENT_BYTES = 64 * 1024;
const MOST_READS = 1_000_000;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;

/** The `index`-th content: one letter all the way, so that a mixture is seen. */
export const contentOf = (index: number): string => String.fromCharCode(97 + (index % 26)).repeat(CONTENT_BYTES);

/** Makes a new file, and flushes it. @throws when the name exists */
export const putFile = async (files: FileOperations, path: string, text: string): Promise<FileFacts> => {
  const bytes = Buffer.from(text);
  const file = await files.open(path, CREATE, 0o600);
  try {
    if (bytes.length > 0) await writeFully(file, [bytes], 0, bytes.length);
    await file.datasync();
    return await file.stat();
  } finally {
    await file.close();
  }
};

/** Text and facts of a file; undefined when the name is not there. */
export const readFile = async (
  files: FileOperations,
  path: string,
): Promise<{ readonly text: string; readonly facts: FileFacts } | undefined> => {
  const file = await files.open(path, constants.O_RDONLY).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (file === undefined) return undefined;
  try {
    const facts = await file.stat();
    // One byte more: a file that grows is seen.
    const room = Buffer.alloc(facts.size + 1);
    const read = await readFully(file, [room], 0, room.length);
    return { text: room.toString('latin1', 0, read), facts };
  } finally {
    await file.close();
  }
};

/** Whether this process was the one that made the name. */
export const isMaker = (making: Promise<unknown>): Promise<boolean> =>
  making.then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    },
  );

const exists = async (files: FileOperations, path: string): Promise<boolean> =>
  files.lstat(path).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    },
  );

const watch = async (files: FileOperations, path: string, until: string): Promise<StorageAnswer> => {
  let [reads, missing, torn] = [0, 0, 0];
  for (; reads < MOST_READS && !(await exists(files, until)); reads++) {
    const text = (await readFile(files, path))?.text;
    if (text === undefined) missing++;
    else if (text.length !== CONTENT_BYTES || text !== text.charAt(0).repeat(CONTENT_BYTES)) torn++;
  }
  return { done: true, reads, missing, torn };
};

/** Does what is asked. Errors are those of `files`. */
export const answerQuestion = async (files: FileOperations, question: StorageQuestion): Promise<StorageAnswer> => {
  const { verb, path } = question;
  switch (verb) {
    case 'create':
      return { done: await isMaker(putFile(files, path, '')) };
    case 'link':
      return { done: await isMaker(files.link(question.existing, path)) };
    case 'read': {
      const found = await readFile(files, path);
      return { done: found !== undefined, ...found };
    }
    case 'list':
      return { done: true, names: await files.readdir(path) };
    case 'watch':
      return watch(files, path, question.until);
  }
};
