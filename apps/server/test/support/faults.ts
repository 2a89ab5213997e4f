/** Faults that a test injects into files; those of a database: `@pesit-node/service/testing`. */
import { nodeFiles } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';

/** Files that are opened from now on, until `stop`: the bytes of each read and write of them, and a disk that may be full. */
export const watchFiles = () => {
  const files = nodeFiles as { open: FileOperations['open'] };
  const { open } = files;
  const watched = {
    read: [] as number[],
    written: [] as number[],
    /** Every write fails. */
    isFull: false,
    stop: (): void => {
      files.open = open;
      watched.isFull = false;
    },
  };
  const bytesOf = (buffers: readonly Buffer[]): number => buffers.reduce((sum, { length }) => sum + length, 0);
  files.open = async (path, flags, mode) => {
    const file = await open(path, flags, mode);
    return {
      ...file,
      readv: (buffers, position) => {
        watched.read.push(bytesOf(buffers));
        return file.readv(buffers, position);
      },
      writev: (buffers, position) => {
        if (watched.isFull) {
          return Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }));
        }
        watched.written.push(bytesOf(buffers));
        return file.writev(buffers, position);
      },
    };
  };
  return watched;
};
