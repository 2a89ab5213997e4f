import { constants } from 'node:fs';
import { codeOf } from '@pesit-node/ground';

/** Facts of a name or an open file. */
export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'link' | 'other';
  /** Bytes. */
  readonly size: number;
  /** Nanoseconds since the epoch. */
  readonly mtimeNs: bigint;
  readonly device: bigint;
  readonly inode: bigint;
  /** Names of this file (hard links). */
  readonly links: number;
}

/** An open file. Positions are explicit: there is no hidden offset to lose. */
export interface OpenFile {
  /** @returns bytes written, possibly fewer than offered. */
  writev(buffers: readonly Buffer[], position: number): Promise<number>;
  /** @returns bytes read, possibly fewer than there is room for; 0 at the end of the file. */
  readv(buffers: readonly Buffer[], position: number): Promise<number>;
  /** Data, and what is needed to read them back (the size), to stable storage. */
  datasync(): Promise<void>;
  sync(): Promise<void>;
  truncate(size: number): Promise<void>;
  stat(): Promise<FileFacts>;
  close(): Promise<void>;
}

/**
 * The file layer: every call of this package that changes or flushes a file goes through here,
 * so that a test can record the order of flushes or fail any one of them. Errors are those of `node:fs`.
 */
export interface FileOperations {
  open(path: string, flags: number, mode?: number): Promise<OpenFile>;
  mkdir(path: string, mode: number): Promise<void>;
  link(existing: string, name: string): Promise<void>;
  unlink(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Facts of the name itself, a link not followed. */
  lstat(path: string): Promise<FileFacts>;
  realpath(path: string): Promise<string>;
  /** Names in a directory, in no order. */
  readdir(path: string): Promise<readonly string[]>;
  /** Twelve hex digits that name this run of the operating system: what it was told and did not flush is there as long as it runs. */
  readonly boot: string;
}

/** Facts of a name, a link not followed; undefined when there is none. */
export const factsIfThere = async (files: FileOperations, path: string): Promise<FileFacts | undefined> => {
  try {
    return await files.lstat(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
};

/** @returns false when there was no such file. */
export const unlinkIfThere = async (files: FileOperations, path: string): Promise<boolean> => {
  try {
    await files.unlink(path);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return false;
  }
};

/** Names created in or removed from these directories survive a power cut once this has resolved. The caller stops when it rejects. */
export const flushDirectories = async (files: FileOperations, paths: Iterable<string>): Promise<void> => {
  const flushes = await Promise.allSettled([...new Set(paths)].map((path) => flushTogether(files, path)));
  for (const flush of flushes) if (flush.status === 'rejected') throw flush.reason;
};

/** The flush of a directory that runs, and the one that begins when it has ended. */
interface DirectoryFlushes {
  running: Promise<void>;
  next: Promise<void> | undefined;
}

const directoryFlushes = new WeakMap<FileOperations, Map<string, DirectoryFlushes>>();

/**
 * One flush of a directory at a time: who comes meanwhile shares the next one, since only one that begins later is certain to hold
 * his names. Many small files that are delivered into one directory so cost it a few flushes.
 */
const flushTogether = (files: FileOperations, path: string): Promise<void> => {
  const known = directoryFlushes.get(files) ?? new Map<string, DirectoryFlushes>();
  directoryFlushes.set(files, known);
  const flush = async () => {
    const directory = await files.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    await directory.sync().finally(() => directory.close());
  };
  const begin = (): Promise<void> => {
    const flushes: DirectoryFlushes = { running: flush(), next: undefined };
    known.set(path, flushes);
    const over = () => {
      if (flushes.next === undefined) known.delete(path);
    };
    flushes.running.then(over, over);
    return flushes.running;
  };
  const under = known.get(path);
  if (under === undefined) return begin();
  under.next ??= under.running.then(begin, begin);
  return under.next;
};

/** The buffers that remain after the first `done` bytes: a short read or write continues from there. */
export const remainder = (buffers: readonly Buffer[], done: number): Buffer[] => {
  let index = 0;
  let left = done;
  for (; index < buffers.length; index++) {
    const length = buffers[index]?.length ?? 0;
    if (left < length) break;
    left -= length;
  }
  const rest = buffers.slice(index);
  if (left > 0 && rest[0]) rest[0] = rest[0].subarray(left);
  return rest;
};

/** Writes all of `bytes` at `position`, however often the operating system takes only a part. */
export const writeFully = async (
  file: OpenFile,
  buffers: readonly Buffer[],
  position: number,
  bytes: number,
): Promise<void> => {
  let done = await file.writev(buffers, position);
  while (done < bytes) {
    const more = await file.writev(remainder(buffers, done), position + done);
    if (more === 0) throw new Error(`the file system took ${done} of ${bytes} bytes and no more`);
    done += more;
  }
};

/** Reads until `bytes` are there or the file ends. @returns bytes read. */
export const readFully = async (
  file: Pick<OpenFile, 'readv'>,
  buffers: readonly Buffer[],
  position: number,
  bytes: number,
): Promise<number> => {
  let done = await file.readv(buffers, position);
  while (done > 0 && done < bytes) {
    const more = await file.readv(remainder(buffers, done), position + done);
    if (more === 0) break;
    done += more;
  }
  return done;
};
