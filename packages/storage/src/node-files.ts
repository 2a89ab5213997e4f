/**
 * The real file system behind `FileOperations`. `synchronous-calls.ts` says when a call is made at once and when through the
 * thread pool; this file says which calls may be, and makes them.
 *
 * Through the pool go, whatever is measured: flushes of a disk, and writes to a file that is opened to be flushed by each (O_DSYNC); directories
 * that are read and files that are cut, whose length nobody knows here; names whose removal frees a file of more than `FREED_AT_ONCE`;
 * an open that could wait for another process (a FIFO without O_NONBLOCK); and everything of a file that lies on another device than
 * its directory.
 */
import * as fs from 'node:fs';
import * as promises from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { THIS_BOOT } from '@pesit-node/ground';
import { fileLane } from './file-lane.js';
import type { FileFacts, FileOperations, OpenFile } from './files.js';
import { SynchronousCalls } from './synchronous-calls.js';
import type { CallKind, Directory, Ground, SynchronousMode } from './synchronous-calls.js';

/**
 * `f_type` of file systems that answer from this machine (statfs(2)): ext2/3/4, XFS, Btrfs, F2FS, ZFS, bcachefs, tmpfs, ramfs, and overlayfs,
 * whose writable layer is one of these.
 */
const LOCAL_TYPES: ReadonlySet<bigint> = new Set([
  0xef53n,
  0x58465342n,
  0x9123683en,
  0xf2f52010n,
  0x2fc12fc1n,
  0xca451a4en,
  0x01021994n,
  0x858458f6n,
  0x794c7630n,
]);

/** Those of them that have no disk: tmpfs, ramfs. */
const MEMORY_TYPES: ReadonlySet<bigint> = new Set([0x01021994n, 0x858458f6n]);

/** Bytes of a file whose blocks are freed in a moment. */
const FREED_AT_ONCE = 1_048_576;

const { O_CREAT, O_DIRECTORY, O_DSYNC, O_EXCL, O_NONBLOCK, O_RDWR, O_SYNC, O_TRUNC, O_WRONLY } = fs.constants;

interface BigStats {
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly dev: bigint;
  readonly ino: bigint;
  readonly nlink: bigint;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

const factsOf = (stats: BigStats): FileFacts => ({
  kind: stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'link' : 'other',
  size: Number(stats.size),
  mtimeNs: stats.mtimeNs,
  device: stats.dev,
  inode: stats.ino,
  links: Number(stats.nlink),
});

const BIG = { bigint: true } as const;

/**
 * Whether every call on a path in this directory is answered by this machine: no link is on the way to it, and neither it nor a
 * directory above it is on a file system of another kind. The numbers of `statfs` are those of Linux.
 */
const look = async (directory: string): Promise<Ground> => {
  const statOf = (path: string) => fileLane.run(() => promises.stat(path, BIG));
  const { dev: device } = await statOf(directory);
  let isLocal = process.platform === 'linux' && (await fileLane.run(() => promises.realpath(directory))) === directory;
  let isMemory: boolean | undefined;
  let below: bigint | undefined;
  for (let path = directory, above = ''; isLocal && path !== above; path = dirname(path)) {
    const { dev } = await statOf(path);
    if (dev !== below) {
      const { type } = await fileLane.run(() => promises.statfs(path, BIG));
      isLocal = LOCAL_TYPES.has(type);
      isMemory ??= MEMORY_TYPES.has(type);
    }
    below = dev;
    above = path;
  }
  return { device, isLocal, isMemory: isMemory === true };
};

const never = (): Promise<Ground> => Promise.resolve({ device: -1n, isLocal: false, isMemory: false });

const pool = {
  open: promisify(fs.open),
  close: promisify(fs.close),
  fdatasync: promisify(fs.fdatasync),
  fsync: promisify(fs.fsync),
  ftruncate: promisify(fs.ftruncate),
  fstat: promisify(fs.fstat) as (descriptor: number, options: typeof BIG) => Promise<fs.BigIntStats>,
  writev: (descriptor: number, buffers: readonly Buffer[], position: number): Promise<number> =>
    new Promise((resolve, reject) => {
      fs.writev(descriptor, buffers, position, (error, bytes) => {
        if (error === null) resolve(bytes);
        else reject(error);
      });
    }),
  readv: (descriptor: number, buffers: readonly Buffer[], position: number): Promise<number> =>
    new Promise((resolve, reject) => {
      fs.readv(descriptor, buffers, position, (error, bytes) => {
        if (error === null) resolve(bytes);
        else reject(error);
      });
    }),
};

const bytesOf = (buffers: readonly Buffer[]): number => {
  let bytes = 0;
  for (const { length } of buffers) bytes += length;
  return bytes;
};

/**
 * An open file by its descriptor, which no other file gets before the last call on it was answered.
 * @param flags those of the open
 */
const openFile = (calls: SynchronousCalls, directory: Directory, descriptor: number, flags: number): OpenFile => {
  const isFlushedByWrites = (flags & (O_DSYNC | O_SYNC)) !== 0;
  let isPlain: boolean | undefined;
  let unanswered = 0;
  let allAnswered: (() => void) | undefined;
  let isClosed = false;

  /** A regular file, or the directory itself, on the device that was looked at. */
  const looked = (): boolean => {
    const facts = fs.fstatSync(descriptor, BIG);
    return facts.dev === directory.device && (facts.isFile() || facts.isDirectory());
  };
  const call = async <T>(
    kind: CallKind | undefined,
    bytes: number,
    atOnce: (() => T) | undefined,
    pooled: () => Promise<T>,
  ): Promise<T> => {
    if (isClosed) throw Object.assign(new Error('EBADF: the file is closed'), { code: 'EBADF' });
    if (atOnce !== undefined && kind !== undefined && calls.allows(directory, kind, bytes)) {
      isPlain ??= looked();
      if (isPlain) return calls.atOnce(directory, kind, bytes, atOnce);
    }
    unanswered += 1;
    try {
      return await calls.pooled(directory, kind, pooled);
    } finally {
      unanswered -= 1;
      if (unanswered === 0) allAnswered?.();
    }
  };

  return {
    writev: (buffers, position) => {
      const atOnce = () => fs.writevSync(descriptor, buffers, position);
      const pooled = () => pool.writev(descriptor, buffers, position);
      return call(isFlushedByWrites ? 'flush' : 'write', bytesOf(buffers), atOnce, pooled);
    },
    readv: (buffers, position) => {
      const atOnce = () => fs.readvSync(descriptor, buffers, position);
      return call('read', bytesOf(buffers), atOnce, () => pool.readv(descriptor, buffers, position));
    },
    datasync: () => {
      const atOnce = () => {
        fs.fdatasyncSync(descriptor);
      };
      return call('flush', 0, atOnce, () => pool.fdatasync(descriptor));
    },
    sync: () => {
      const atOnce = () => {
        fs.fsyncSync(descriptor);
      };
      return call('flush', 0, atOnce, () => pool.fsync(descriptor));
    },
    truncate: (size) => call(undefined, 0, undefined, () => pool.ftruncate(descriptor, size)),
    stat: async () => {
      const atOnce = () => fs.fstatSync(descriptor, BIG);
      return factsOf(await call('look', 0, atOnce, () => pool.fstat(descriptor, BIG)));
    },
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      if (unanswered > 0) await new Promise<void>((resolve) => (allAnswered = resolve));
      const atOnce = () => {
        fs.closeSync(descriptor);
      };
      await made(calls, directory, kindOfOpen(flags), 0, atOnce, () => pool.close(descriptor));
    },
  };
};

const made = <T>(
  calls: SynchronousCalls,
  directory: Directory,
  kind: CallKind,
  bytes: number,
  atOnce: () => T,
  pooled: () => Promise<T>,
): Promise<T> =>
  calls.allows(directory, kind, bytes)
    ? calls.atOnce(directory, kind, bytes, atOnce)
    : calls.pooled(directory, kind, pooled);

/** A file that is opened to be read stays as it is; whoever writes may free blocks when it is closed. */
const kindOfOpen = (flags: number): CallKind => ((flags & (O_CREAT | O_WRONLY | O_RDWR)) === 0 ? 'look' : 'name');

/** Neither waits for another process nor frees blocks. */
const opensAtOnce = (flags: number): boolean =>
  (flags & O_TRUNC) === 0 &&
  ((flags & (O_NONBLOCK | O_DIRECTORY)) !== 0 || (flags & (O_CREAT | O_EXCL)) === (O_CREAT | O_EXCL));

/** Removing the name, or putting another file in its place, does not free many blocks. */
const isCheapToRemove = (path: string): boolean => {
  const facts = fs.lstatSync(path, { throwIfNoEntry: false });
  return facts === undefined || facts.nlink > 1 || facts.size <= FREED_AT_ONCE;
};

/** @param calls says when a call is made at once */
export const filesBy = (calls: SynchronousCalls): FileOperations => {
  const inDirectory = <T>(path: string, atOnce: () => T, pooled: () => Promise<T>): Promise<T> =>
    made(calls, calls.directory(dirname(path)), 'name', 0, atOnce, pooled);
  /** For calls by which a file may go for good. */
  const removing = (path: string, atOnce: () => void, pooled: () => Promise<void>): Promise<void> => {
    const directory = calls.directory(dirname(path));
    return calls.allows(directory, 'name') && isCheapToRemove(path)
      ? calls.atOnce(directory, 'name', 0, atOnce)
      : calls.pooled(directory, 'name', pooled);
  };
  return {
    open: async (path, flags, mode) => {
      const directory = calls.directory((flags & O_DIRECTORY) === 0 ? dirname(path) : path);
      const pooled = () => pool.open(path, flags, mode);
      const kind = kindOfOpen(flags);
      const descriptor = opensAtOnce(flags)
        ? await made(calls, directory, kind, 0, () => fs.openSync(path, flags, mode), pooled)
        : await calls.pooled(directory, kind, pooled);
      return openFile(calls, directory, descriptor, flags);
    },
    mkdir: (path, mode) =>
      inDirectory(
        path,
        () => {
          fs.mkdirSync(path, { mode });
        },
        async () => {
          await promises.mkdir(path, { mode });
        },
      ),
    link: (existing, name) =>
      inDirectory(
        name,
        () => {
          fs.linkSync(existing, name);
        },
        () => promises.link(existing, name),
      ),
    unlink: (path) =>
      removing(
        path,
        () => {
          fs.unlinkSync(path);
        },
        () => promises.unlink(path),
      ),
    rename: (from, to) =>
      removing(
        to,
        () => {
          fs.renameSync(from, to);
        },
        () => promises.rename(from, to),
      ),
    lstat: async (path) => {
      const directory = calls.directory(dirname(path));
      // Facts of a directory where a volume is mounted are those of the volume.
      const isAllowed = calls.allows(directory, 'look') && calls.allowsAt(path, 'look');
      const facts = isAllowed
        ? await calls.atOnce(directory, 'look', 0, () => fs.lstatSync(path, BIG))
        : await calls.pooled(directory, 'look', () => promises.lstat(path, BIG));
      return factsOf(facts);
    },
    realpath: async (path) => {
      if (calls.isKnown(path)) {
        const atOnce = () => fs.realpathSync.native(path);
        return made(calls, calls.directory(path), 'look', 0, atOnce, () => promises.realpath(path));
      }
      const real = await calls.pooled(undefined, undefined, () => promises.realpath(path));
      // Asked for once more it may be answered at once; by way of a link it never is.
      if (real === path) calls.directory(path);
      return real;
    },
    readdir: (path) => calls.pooled(calls.directory(path), undefined, () => promises.readdir(path)),
    // Without /proc every process has one of its own: nothing is believed that was not flushed.
    boot: THIS_BOOT,
  };
};

/** Looks at a directory itself, by a path that may lead there over links. Errors are those of `node:fs`. */
export interface DirectoryLooks {
  isDirectory(path: string): Promise<boolean>;
  /** @throws when this process may not make files in it */
  writable(path: string): Promise<void>;
  /** Bytes that this process may still write on its volume. */
  free(path: string): Promise<number>;
}

const MAKES_FILES = fs.constants.W_OK | fs.constants.X_OK;
const freeBytes = ({ bavail, bsize }: fs.BigIntStatsFs): number => Number(bavail * bsize);

/** @param calls says when a look is made at once */
export const directoryLooksBy = (calls: SynchronousCalls): DirectoryLooks => {
  const look = <T>(path: string, atOnce: () => T, pooled: () => Promise<T>): Promise<T> =>
    made(calls, calls.directory(path), 'look', 0, atOnce, pooled);
  return {
    isDirectory: (path) =>
      look(
        path,
        () => fs.statSync(path).isDirectory(),
        async () => (await promises.stat(path)).isDirectory(),
      ),
    writable: (path) =>
      look(
        path,
        () => {
          fs.accessSync(path, MAKES_FILES);
        },
        () => promises.access(path, MAKES_FILES),
      ),
    free: (path) =>
      look(
        path,
        () => freeBytes(fs.statfsSync(path, BIG)),
        async () => freeBytes(await promises.statfs(path, BIG)),
      ),
  };
};

const calls = new SynchronousCalls({ look, run: (call) => fileLane.run(call) });

/** The real file system; at most as many calls of the pool at a time as `fileLane` lets. */
export const nodeFiles: FileOperations = filesBy(calls);

/** As `nodeFiles`. */
export const directoryLooks: DirectoryLooks = directoryLooksBy(calls);

/** The same for looks at a volume: none is made at once, and they wait for no other call longer than for one that runs. */
export const urgentFiles: FileOperations = filesBy(
  new SynchronousCalls({ look: never, run: (call) => fileLane.run(call, true) }),
);

/** `storage.synchronous-io`, of the whole process; until it is called, as with `auto`. */
export const useSynchronousIo = (mode: SynchronousMode): void => {
  calls.mode = mode;
};
