import { basename } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { StagedFile, formatOf } from '../src/index.js';
import type { FileFacts, FileOperations } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { recordedFiles } from './support/recorded-files.js';
import { filesIn, sandbox } from './support/sandbox.js';

const binary = formatOf({ recordLength: 65_535 });

describe('what is flushed before anything is promised', () => {
  test('a point: its bytes, then the file, then the directories that lead to it', async () => {
    const directory = sandbox();
    const log: string[] = [];
    const files = recordedFiles(log);
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary, files });
    staged.write(batchOf('12345'));
    await staged.checkpoint({ number: 1, dataBytes: 5, articles: 1 });
    expect(staged.stablePoint).toEqual({ number: 1, dataBytes: 5, articles: 1, fileOffset: 5 });
    const root = basename(directory);
    expect(log.slice(0, 4)).toEqual(['mkdir .pesit', 'write k.part 0+5', 'datasync k.part …', 'datasync k.part done']);
    expect(log.slice(4).sort()).toEqual(
      ['sync .pesit …', 'sync .pesit done', `sync ${root} …`, `sync ${root} done`].sort(),
    );

    log.length = 0;
    staged.write(batchOf('678'));
    await staged.checkpoint({ number: 2, dataBytes: 8, articles: 2 });
    expect(log).toEqual(['write k.part 5+3', 'datasync k.part …', 'datasync k.part done']);
    await staged.discard();
  });

  test.each([
    [false, ['link k.part out', 'unlink k.part']],
    [true, ['rename k.part out']],
  ])('delivery, overwrite %s: the file, its name, every directory', async (overwrite, move) => {
    const directory = sandbox();
    const log: string[] = [];
    const files = recordedFiles(log);
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary, files });
    staged.write(batchOf('12345'));
    await staged.deliver({ path: 'a/b/out', overwrite });
    const root = basename(directory);
    const before = [
      'mkdir .pesit',
      'write k.part 0+5',
      'datasync k.part …',
      'datasync k.part done',
      'mkdir a',
      'mkdir b',
    ];
    expect(log.slice(0, before.length + move.length)).toEqual([...before, ...move]);
    const flushes = log.slice(before.length + move.length);
    expect(flushes.filter((line) => line.endsWith('done')).sort()).toEqual(
      ['.pesit', 'a', 'b', root].map((name) => `sync ${name} done`).sort(),
    );
  });

  test('nothing is delivered, and nothing left, when the file or a directory cannot be flushed', async () => {
    for (const broken of ['k.part', 'a']) {
      const directory = sandbox();
      const files = recordedFiles([]);
      const staged = await StagedFile.create({
        receiveDirectory: directory,
        key: 'k',
        format: binary,
        files: {
          ...files,
          open: async (path, flags, mode) => {
            const file = await files.open(path, flags, mode);
            const fail = () => Promise.reject(Object.assign(new Error('broken disk'), { code: 'EIO' }));
            return basename(path) === broken ? { ...file, datasync: fail, sync: fail } : file;
          },
        },
      });
      staged.write(batchOf('12345'));
      await expect(staged.deliver({ path: 'a/out', overwrite: false })).rejects.toMatchObject({
        diagnostic: '2-213',
        fault: 'local',
      });
      await staged.discard();
      expect(filesIn(directory)).toEqual([]);
    }
  });

  test('points that gather while a flush runs are answered by one more', async () => {
    const log: string[] = [];
    const staged = await StagedFile.create({
      receiveDirectory: sandbox(),
      key: 'k',
      format: binary,
      files: recordedFiles(log),
    });
    const answered: number[] = [];
    const points = Array.from({ length: 16 }, (_, i) => {
      staged.write(batchOf(`article ${i}`));
      const point = staged.checkpoint({ number: i + 1, dataBytes: 0, articles: i + 1 });
      return point.then(() => answered.push(i + 1));
    });
    await Promise.all(points);
    expect(answered).toEqual(points.map((_, i) => i + 1));
    expect(log.filter((line) => line === 'datasync k.part done').length).toBeLessThanOrEqual(2);
    await staged.discard();
  });
});

/** A disk of its own in memory: what was written is stable once a flush that began after the write has ended. */
class ModelDisk {
  written = 0;
  stable = 0;
  directoriesStable = false;
  readonly #later: <T>(what: string, effect: () => T) => Promise<T>;

  constructor(later: <T>(what: string, effect: () => T) => Promise<T>) {
    this.#later = later;
  }

  readonly #facts: FileFacts = { kind: 'directory', size: 0, mtimeNs: 0n, device: 0n, inode: 0n };

  readonly files: FileOperations = {
    open: (path) =>
      Promise.resolve({
        writev: (buffers, position) => {
          const bytes = buffers.reduce((sum, { length }) => sum + length, 0);
          const taken = Math.max(1, Math.ceil(bytes * 0.7));
          return this.#later('write', () => {
            expect(position).toBe(this.written);
            this.written = position + taken;
            return taken;
          });
        },
        readv: () => Promise.resolve(0),
        datasync: () => {
          const before = this.written;
          return this.#later('datasync', () => {
            this.stable = Math.max(this.stable, before);
          });
        },
        sync: () =>
          this.#later(`sync ${path}`, () => {
            this.directoriesStable = true;
          }),
        stat: () => Promise.resolve(this.#facts),
        close: () => Promise.resolve(),
      }),
    mkdir: () => Promise.resolve(),
    link: () => Promise.resolve(),
    unlink: () => Promise.resolve(),
    rename: () => Promise.resolve(),
    lstat: () => Promise.resolve(this.#facts),
    realpath: (path) => Promise.resolve(path),
  };
}

test('in every order in which a disk may answer: no point before its flush, all points, in order', async () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 60_000 }), fc.constant('point' as const)), {
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), steps, async (scheduler, script) => {
      const disk = new ModelDisk(async (what, effect) => {
        await scheduler.schedule(Promise.resolve(), what);
        return effect();
      });
      const staged = await StagedFile.create({ receiveDirectory: '/d', key: 'k', format: binary, files: disk.files });
      const answered: number[] = [];
      const points: Promise<void>[] = [];
      const feed = scheduler.scheduleSequence(
        script.map((step) => ({
          label: String(step),
          builder: () => {
            if (step !== 'point') {
              staged.write(batchOf(Buffer.alloc(step)));
              return Promise.resolve();
            }
            const number = points.length + 1;
            const size = staged.size;
            points.push(
              staged.checkpoint({ number, dataBytes: size, articles: staged.articles }).then(() => {
                expect(disk.stable).toBeGreaterThanOrEqual(size);
                expect(disk.directoriesStable).toBe(true);
                answered.push(number);
              }),
            );
            return Promise.resolve();
          },
        })),
      );
      await scheduler.waitFor(feed.task);
      await scheduler.waitFor(Promise.all(points));
      expect(answered).toEqual(points.map((_, i) => i + 1));
      const { size } = await scheduler.waitFor(staged.prepareDelivery());
      expect(disk.stable).toBe(size);
      expect(size).toBe(script.reduce<number>((sum, step) => sum + (step === 'point' ? 0 : step), 0));
    }),
    { numRuns: 150 },
  );
});
