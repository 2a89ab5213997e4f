import { basename } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { deferred } from '@pesit-node/ground';
import type { Deferred } from '@pesit-node/ground';
import fc from 'fast-check';
import { flushDirectories } from '../src/files.js';
import type { FileOperations } from '../src/files.js';
import { StagedFile, formatOf, nodeFiles } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { ModelDisk, chances, driven, someHappen } from './support/model-disk.js';
import { recordedFiles } from './support/recorded-files.js';
import { filesIn, sandbox } from './support/sandbox.js';

const binary = formatOf({ recordLength: 65_535 });

/** What happens in any order while the file is flushed. */
const flushedTogether = (record: string) => [record, 'datasync k.points done', 'datasync k.part done'].sort();

/** These lines are there, in this order. */
function expectOrder(log: readonly string[], lines: readonly string[]): void {
  expect(log.filter((line) => lines.includes(line))).toEqual(lines);
}

/** Directories whose flushes end when the test says so. */
class HeldFlushes {
  /** Ends the flush of that number. */
  readonly ends: Deferred<undefined>[] = [];
  #began = deferred<undefined>();
  readonly files: FileOperations = {
    ...nodeFiles,
    open: async (path, flags) => ({
      ...(await nodeFiles.open(path, flags)),
      sync: () => {
        const end = deferred<undefined>();
        this.ends.push(end);
        this.#began.resolve(undefined);
        return end.promise;
      },
    }),
  };

  /** Resolves when one more flush has begun. */
  async begun(): Promise<void> {
    await this.#began.promise;
    this.#began = deferred();
  }
}

describe('a directory is flushed once for all who come while another flush of it runs', () => {
  const started = async () => {
    const held = new HeldFlushes();
    const directory = sandbox();
    const over: string[] = [];
    const flush = (who: string) =>
      flushDirectories(held.files, [directory]).then(
        () => over.push(who),
        () => over.push(`${who} failed`),
      );
    const first = flush('first');
    await held.begun();
    return { held, over, flush, first };
  };

  test('by one that begins after they came, and a later one after that', async () => {
    const { held, over, flush, first } = await started();
    const others = ['second', 'third'].map(flush);
    held.ends[0]!.resolve(undefined);
    await first;
    await held.begun();
    expect(over).toEqual(['first']);
    const last = flush('last');
    held.ends[1]!.resolve(undefined);
    await Promise.all(others);
    await held.begun();
    expect(over).toEqual(['first', 'second', 'third']);
    held.ends[2]!.resolve(undefined);
    await last;
    const alone = flush('alone');
    await held.begun();
    held.ends[3]!.resolve(undefined);
    await alone;
    expect(over.slice(3)).toEqual(['last', 'alone']);
  });

  test('one that fails fails for those who waited for it, and for nobody else', async () => {
    const { held, over, flush, first } = await started();
    const second = flush('second');
    held.ends[0]!.reject(new Error('EIO'));
    await first;
    await held.begun();
    held.ends[1]!.resolve(undefined);
    await second;
    expect(over).toEqual(['first failed', 'second']);
  });
});

describe('what is flushed before anything is promised', () => {
  test('a point: its bytes, then the file beside its record and the journal, then the directories that lead to both', async () => {
    const directory = sandbox();
    const log: string[] = [];
    const files = recordedFiles(log);
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary, files });
    staged.write(batchOf('12345'));
    await staged.checkpoint({ number: 1, dataBytes: 5, articles: 1 });
    expect(staged.stablePoint).toEqual({ number: 1, dataBytes: 5, articles: 1, fileOffset: 5 });
    const root = basename(directory);
    // A header and one record, 64 bytes each, and zeros for records to come.
    expect(log.slice(0, 3)).toEqual(['mkdir .pesit', 'write k.part 0+5', 'datasync k.part …']);
    expect(log.slice(3, 6).sort()).toEqual(flushedTogether('write k.points 0+4096'));
    expectOrder(log, ['write k.points 0+4096', 'datasync k.points done']);
    expect(log.slice(6).sort()).toEqual(
      ['sync .pesit …', 'sync .pesit done', `sync ${root} …`, `sync ${root} done`].sort(),
    );

    log.length = 0;
    staged.write(batchOf('678'));
    await staged.checkpoint({ number: 2, dataBytes: 8, articles: 2 });
    expect(log.slice(0, 2)).toEqual(['write k.part 5+3', 'datasync k.part …']);
    expect(log.slice(2).sort()).toEqual(flushedTogether('write k.points 128+64'));
    expectOrder(log, ['write k.points 128+64', 'datasync k.points done']);
    await staged.discard();
  });

  test('a point without a hash: the file is flushed before the record that nothing else could prove', async () => {
    const log: string[] = [];
    const options = { receiveDirectory: sandbox(), key: 'k', format: binary, files: recordedFiles(log) };
    const staged = await StagedFile.create({ ...options, checksum: 'none' });
    staged.write(batchOf('12345'));
    await staged.checkpoint({ number: 1, dataBytes: 5, articles: 1 });
    expectOrder(log, ['write k.part 0+5', 'datasync k.part done', 'write k.points 0+4096', 'datasync k.points done']);
    await staged.discard();
  });

  test.each([
    // Two points, and the end.
    ['checkpoint', 3],
    ['none', 0],
  ] as const)('durability %s: who wants to know is told of %i flushes', async (durability, flushes) => {
    const told: number[] = [];
    const flushed = (ms: number) => told.push(ms);
    const staged = await StagedFile.create({
      ...{ receiveDirectory: sandbox(), key: 'k', format: binary, durability, flushed },
    });
    for (const number of [1, 2]) {
      staged.write(batchOf('12345'));
      await staged.checkpoint({ number, dataBytes: 5 * number, articles: number });
    }
    staged.write(batchOf('6'));
    await staged.deliver({ path: 'out', overwrite: false });
    expect(told).toHaveLength(flushes);
    expect(told.every((ms) => ms >= 0)).toBe(true);
  });

  test.each([
    [false, ['link k.part out'], ['a', 'b'], ['unlink k.part']],
    [true, ['rename k.part out'], ['.pesit', 'a', 'b'], []],
  ])('delivery, overwrite %s: the file, its name, the directories', async (overwrite, move, directories, after) => {
    const directory = sandbox();
    const log: string[] = [];
    const files = recordedFiles(log);
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary, files });
    staged.write(batchOf('12345'));
    await staged.deliver({ path: 'a/b/out', overwrite });
    const before = [
      'mkdir .pesit',
      'write k.part 0+5',
      'datasync k.part …',
      'datasync k.part done',
      'mkdir a',
      'mkdir b',
    ];
    expect(log.slice(0, before.length + move.length)).toEqual([...before, ...move]);
    const rest = log.slice(before.length + move.length);
    const names = [...directories, basename(directory)];
    expect(rest.slice(0, names.length * 2).sort()).toEqual(
      names.flatMap((name) => [`sync ${name} done`, `sync ${name} …`]).sort(),
    );
    expect(rest.slice(names.length * 2)).toEqual([...after, expect.stringMatching(/^unlink k\..*\.lock$/)]);
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

test('in every order in which a disk may answer: no point before its flush, all points, in order', async () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 60_000 }), fc.constant('point' as const)), {
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer(), async (script, seed) => {
      const chance = chances(seed);
      const disk = new ModelDisk(chance);
      const staged = await driven(
        disk,
        chance,
        StagedFile.create({ receiveDirectory: '/d', key: 'k', format: binary, files: disk.mountedAt('/d') }),
      );
      const answered: number[] = [];
      const points: Promise<void>[] = [];
      for (const step of script) {
        await someHappen(disk, chance);
        if (step !== 'point') {
          staged.write(batchOf(Buffer.alloc(step, 7)));
          continue;
        }
        const number = points.length + 1;
        const { size } = staged;
        const point = staged.checkpoint({ number, dataBytes: size, articles: staged.articles });
        points.push(
          point.then(() => {
            expect(disk.stableContent('/d/.pesit/k.part')?.length).toBeGreaterThanOrEqual(size);
            // The number of the record behind a header of 64 bytes.
            expect(disk.stableContent('/d/.pesit/k.points')?.readUIntLE(64 * number, 3)).toBe(number);
            answered.push(number);
          }),
        );
      }
      await driven(disk, chance, Promise.all(points));
      expect(answered).toEqual(points.map((_, i) => i + 1));
      const { size } = await driven(disk, chance, staged.prepareDelivery());
      expect(disk.stableContent('/d/.pesit/k.part') ?? disk.content('/d/.pesit/k.part')).toHaveLength(size);
      expect(size).toBe(script.reduce<number>((sum, step) => sum + (step === 'point' ? 0 : step), 0));
      await driven(disk, chance, staged.discard());
    }),
    { numRuns: 150 },
  );
});
