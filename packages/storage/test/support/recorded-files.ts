import { constants } from 'node:fs';
import { basename } from 'node:path';
import { nodeFiles } from '../../src/index.js';
import type { FileOperations } from '../../src/index.js';

/** The real file system, with a line in `log` for each thing done: when it began and, for flushes, when it ended. */
export function recordedFiles(log: string[]): FileOperations {
  return {
    open: async (path, flags, mode) => {
      const name = basename(path);
      const file = await nodeFiles.open(path, flags, mode);
      const flush = async (kind: string, flushing: () => Promise<void>) => {
        log.push(`${kind} ${name} …`);
        await flushing();
        log.push(`${kind} ${name} done`);
      };
      return {
        writev: async (buffers, position) => {
          const written = await file.writev(buffers, position);
          log.push(`write ${name} ${position}+${written}`);
          if (flags & constants.O_DSYNC) log.push(`datasync ${name} done`);
          return written;
        },
        readv: (buffers, position) => file.readv(buffers, position),
        datasync: () => flush('datasync', () => file.datasync()),
        sync: () => flush('sync', () => file.sync()),
        truncate: async (size) => {
          await file.truncate(size);
          log.push(`truncate ${name} ${size}`);
        },
        stat: () => file.stat(),
        close: () => file.close(),
      };
    },
    mkdir: async (path, mode) => {
      await nodeFiles.mkdir(path, mode);
      log.push(`mkdir ${basename(path)}`);
    },
    link: async (existing, name) => {
      await nodeFiles.link(existing, name);
      log.push(`link ${basename(existing)} ${basename(name)}`);
    },
    unlink: async (path) => {
      await nodeFiles.unlink(path);
      log.push(`unlink ${basename(path)}`);
    },
    rename: async (from, to) => {
      await nodeFiles.rename(from, to);
      log.push(`rename ${basename(from)} ${basename(to)}`);
    },
    lstat: (path) => nodeFiles.lstat(path),
    realpath: (path) => nodeFiles.realpath(path),
    readdir: (path) => nodeFiles.readdir(path),
    boot: nodeFiles.boot,
  };
}
