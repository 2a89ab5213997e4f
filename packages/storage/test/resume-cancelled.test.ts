/** A signal that is aborted while what is staged is read again. */
import { renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, StorageError, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations, StagedFileOptions } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { rejection, sandbox } from './support/sandbox.js';
import { optionsIn } from './support/staged.js';

describe('a signal that is aborted while what is staged is read', () => {
  const CANCELLED = { fault: 'local', diagnostic: '2-216', peerText: 'cancelled' } as const;
  const BLOCKS = 24;
  const block = Buffer.alloc(512 * 1024, 7);
  const binary = formatOf({ recordLength: 65_535 });

  /** Of 12 MB, under a path that this process keeps no hash of. */
  async function staged(more: Partial<StagedFileOptions> = {}): Promise<string> {
    const [there, here] = [sandbox(), sandbox()];
    const file = await StagedFile.create(optionsIn(there, { format: binary, ...more }));
    for (let n = 1; n <= BLOCKS; n++) {
      for (let at = 0; at < block.length; at += 65_000) {
        if (!file.write(batchOf(block.subarray(at, at + 65_000)))) await file.drained();
      }
      if (n % 8 === 0) await file.checkpoint({ number: n / 8, dataBytes: n * block.length, articles: n * 9 });
    }
    await file.release();
    renameSync(join(there, '.pesit'), join(here, '.pesit'));
    return here;
  }

  /** Aborts when the `nth` block is asked for. */
  function abortedAt(nth: number) {
    const gone = new AbortController();
    let reads = 0;
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags, mode) => {
        const file = await nodeFiles.open(path, flags, mode);
        const readv: typeof file.readv = (buffers, position) => {
          if (path.endsWith('.part') && ++reads === nth) gone.abort(new StorageError('not wanted any more', CANCELLED));
          return file.readv(buffers, position);
        };
        return { ...file, readv };
      },
    };
    return { files, signal: gone.signal, reads: () => reads };
  }

  test.each([
    ['with digests', {}],
    ['without digests, read for a hash from now on', { checksum: 'none' }],
  ] as const)('%s: its reason within two blocks, and all that was staged is still there', async (_, first) => {
    const directory = await staged(first);
    const { files, signal, reads } = abortedAt(3);
    // As it is: no error of the disk was met.
    const error = await rejection(StagedFile.resume(optionsIn(directory, { format: binary, files, signal })));
    expect(error).toBe(signal.reason);
    expect(reads()).toBeLessThanOrEqual(5);
    expect(statSync(join(directory, '.pesit/k.part')).size).toBe(BLOCKS * block.length);
    const again = await StagedFile.resume(optionsIn(directory, { format: binary }));
    expect(again.point).toMatchObject({ number: 3, fileOffset: BLOCKS * block.length });
    await again.file.discard();
  });
});
