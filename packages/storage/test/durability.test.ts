import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, formatOf, nodeFiles } from '../src/index.js';
import type { Durability, FileOperations, OpenFile, StagedFileOptions } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { recordedFiles } from './support/recorded-files.js';
import { filesIn, mountedSandbox, rejection, sandbox } from './support/sandbox.js';

const format = formatOf({ text: true, recordLength: 80 });
const binary = formatOf({ recordLength: 65_535 });

const optionsIn = (receiveDirectory: string, more: Partial<StagedFileOptions> = {}): StagedFileOptions => ({
  receiveDirectory,
  key: 'k',
  format,
  ...more,
});

const osError = (code: string) => Object.assign(new Error(`${code}: from the test`), { code });

/** The real file system, but for some operations on the file whose name ends so. */
function failing(suffix: string, change: (file: OpenFile) => Partial<OpenFile>): FileOperations {
  return {
    ...nodeFiles,
    open: async (path, flags, mode) => {
      const file = await nodeFiles.open(path, flags, mode);
      return path.endsWith(suffix) ? { ...file, ...change(file) } : file;
    },
  };
}

describe('what each durability flushes', () => {
  const flushes = (log: readonly string[]) =>
    log.filter((line) => line.endsWith('done')).map((line) => line.replace(/pesit-storage-\w+/, 'root'));

  test.each<[Durability, 'sha256' | 'none', string[], string[]]>([
    [
      'checkpoint',
      'sha256',
      ['datasync k.part done', 'datasync k.points done', 'sync .pesit done', 'sync root done'],
      ['datasync k.part done', 'sync root done'],
    ],
    ['end', 'sha256', [], ['datasync k.part done', 'sync root done']],
    ['end', 'none', [], ['datasync k.part done', 'sync root done']],
    ['none', 'sha256', [], []],
  ])('%s with %s: at a point %j, at the end %j', async (durability, checksum, atPoint, atEnd) => {
    const log: string[] = [];
    const staged = await StagedFile.create(optionsIn(sandbox(), { durability, checksum, files: recordedFiles(log) }));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    expect(flushes(log).sort()).toEqual(atPoint);
    // A process that is killed now has lost nothing: the bytes are with the operating system.
    expect(staged).toMatchObject({ bytesWritten: 4, stablePoint: { number: 1 } });
    log.length = 0;
    staged.write(batchOf('two'));
    await staged.deliver({ path: 'out', overwrite: false });
    expect(flushes(log).sort()).toEqual(atEnd);
  });

  test.each<[Durability, string[]]>([
    ['checkpoint', []],
    ['end', ['datasync k.part done', 'datasync k.points done', 'sync .pesit done', 'sync root done']],
    ['none', []],
  ])('%s: release flushes %j', async (durability, atRelease) => {
    const log: string[] = [];
    const staged = await StagedFile.create(optionsIn(sandbox(), { durability, files: recordedFiles(log) }));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    log.length = 0;
    await staged.release();
    expect(flushes(log).sort()).toEqual(atRelease);
  });

  test('end without a hash keeps no points, as nothing could tell what a power cut took', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory, { durability: 'end', checksum: 'none' }));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    await staged.release();
    expect(filesIn(directory)).toEqual(['.pesit/k.part']);
  });

  test.each([
    ['as they were', 'one\n', 1],
    ['not those that came', 'onf\n', 0],
  ])(
    'points that were never flushed are proven by their digest, with checksum none too: bytes %s',
    async (_, bytes, number) => {
      const directory = sandbox();
      const staged = await StagedFile.create(optionsIn(directory, { durability: 'none' }));
      staged.write(batchOf('one'));
      await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
      await staged.release();
      writeFileSync(staged.stagedPath, bytes);
      const { file, point } = await StagedFile.resume(optionsIn(directory, { checksum: 'none' }));
      expect(point.number).toBe(number);
      expect(await file.prepareDelivery()).toEqual({ size: number * 4, checksum: undefined });
      await file.discard();
    },
  );

  test('resuming flushes what leads to the point before it is told', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    await staged.release();
    const log: string[] = [];
    const { file } = await StagedFile.resume(optionsIn(directory, { files: recordedFiles(log) }));
    expect(
      log
        .filter((line) => !line.endsWith('…'))
        .map((line) => line.replace(/pesit-storage-\w+/, 'root'))
        .sort(),
    ).toEqual([
      'datasync k.part done',
      'datasync k.points done',
      'sync .pesit done',
      'sync root done',
      'truncate k.part 4',
      'truncate k.points 128',
    ]);
    expect(log.indexOf('datasync k.points done')).toBeLessThan(log.indexOf('truncate k.part 4'));
    await file.discard();
  });
});

describe('a disk that fails leaves what it had', () => {
  test.each([
    ['write', 'ENOSPC', '2-219'],
    ['write', 'EDQUOT', '2-219'],
    ['flush', 'EIO', '2-213'],
  ] as const)(
    '%s of the journal, %s: %s, the point is not acknowledged, the one before it is kept',
    async (operation, code, diagnostic) => {
      const directory = sandbox();
      let broken = false;
      const files = failing('.points', (file) => ({
        writev: async (buffers, position) => {
          if (!broken) return file.writev(buffers, position);
          // A part of the record gets through; with a flush that fails all of it, into memory.
          if (operation === 'flush') await file.writev(buffers, position);
          else if (position < 200) return file.writev([buffers[0]!.subarray(0, 30)], position);
          throw osError(code);
        },
      }));
      const staged = await StagedFile.create(optionsIn(directory, { files }));
      const failures: Error[] = [];
      staged.onFailure = (error) => failures.push(error);
      staged.write(batchOf('one'));
      await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
      staged.write(batchOf('two'));
      await staged.checkpoint({ number: 2, dataBytes: 6, articles: 2 });
      broken = true;
      staged.write(batchOf('three'));
      const third = { number: 3, dataBytes: 11, articles: 3 };
      expect(await rejection(staged.checkpoint(third))).toMatchObject({ diagnostic, fault: 'local', got: code });
      expect(failures).toHaveLength(1);
      expect(staged.stablePoint?.number).toBe(2);
      await staged.release();
      const { file, point } = await StagedFile.resume(optionsIn(directory));
      // A record whose flush failed may be there all the same: then its bytes were flushed before it.
      expect(point.number).toBe(operation === 'flush' ? 3 : 2);
      await file.discard();
    },
  );

  test('a full disk: 2-219, released, and gone on from the last point when there is room again', async () => {
    const mounted = mountedSandbox('size=1m');
    if (!mounted) return;
    const options = optionsIn(mounted.path, { format: binary });
    const staged = await StagedFile.create(options);
    const block = Buffer.alloc(60_000, 'x');
    let number = 0;
    const error = await rejection(
      (async () => {
        for (;;) {
          staged.write(batchOf(block));
          await staged.checkpoint({ number: number + 1, dataBytes: 60_000 * (number + 1), articles: number + 1 });
          number += 1;
        }
      })(),
    );
    expect(error).toMatchObject({ diagnostic: '2-219', fault: 'local' });
    await staged.release();
    expect(number).toBeGreaterThan(10);
    expect(await StagedFile.peek(mounted.path, 'k')).toMatchObject({ point: { number }, inUse: false });
    mounted.remount('size=4m');
    const { file, point } = await StagedFile.resume(options);
    expect(point).toMatchObject({ number, articles: number, fileOffset: 60_000 * number });
    while (file.articles < 30) file.write(batchOf(block));
    const delivery = await file.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(delivery.path).equals(Buffer.alloc(1_800_000, 'x'))).toBe(true);
  });

  test('a directory that became read-only: 2-211, and it can still be looked at', async () => {
    const mounted = mountedSandbox('size=1m');
    if (!mounted) return;
    const staged = await StagedFile.create(optionsIn(mounted.path));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    await staged.release();
    mounted.remount('ro');
    const error = await rejection(StagedFile.resume(optionsIn(mounted.path)));
    expect(error).toMatchObject({ diagnostic: '2-211', got: 'EROFS' });
    expect(error.message).toContain('mount it read-write');
    expect(await StagedFile.peek(mounted.path, 'k')).toMatchObject({ point: { number: 1 } });
    mounted.remount('rw');
    const { file, point } = await StagedFile.resume(optionsIn(mounted.path));
    expect(point.number).toBe(1);
    await file.discard();
  });

  test('a directory that is gone: 2-211; back again, the file goes on', async () => {
    const parent = sandbox();
    const directory = join(parent, 'received');
    const aside = join(parent, 'aside');
    await nodeFiles.mkdir(directory, 0o700);
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    renameSync(directory, aside);
    await staged.release();
    expect(await rejection(StagedFile.resume(optionsIn(directory)))).toMatchObject({
      diagnostic: '2-211',
      got: 'ENOENT',
    });
    renameSync(aside, directory);
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('a staged file that vanished while it was received is not delivered', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('one'));
    rmSync(staged.stagedPath);
    expect(await rejection(staged.deliver({ path: 'out', overwrite: false }))).toMatchObject({ diagnostic: '2-211' });
    await staged.discard();
    expect(filesIn(directory)).toEqual([]);
  });
});

describe('release', () => {
  test('ends the attempt: nothing more is taken, stored or delivered', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('one'));
    await Promise.all([staged.release(), staged.release()]);
    expect(staged.write(batchOf('late'))).toBe(false);
    for (const asked of [
      staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 }),
      staged.drained(),
      staged.deliver({ path: 'out', overwrite: false }),
      staged.prepareDelivery(),
    ]) {
      expect(await rejection(asked)).toMatchObject({ diagnostic: '2-216' });
    }
    await staged.discard();
    expect(filesIn(directory)).toEqual(['.pesit/k.part']);
  });

  test('after delivery keeps the delivered file and nothing else', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    const delivering = staged.deliver({ path: 'out', overwrite: false });
    await staged.release();
    await delivering;
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('after a delivery that was refused keeps what is there', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    await rejection(staged.deliver({ path: '../out', overwrite: false }));
    await staged.release();
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ point: { number: 1 }, inUse: false });
  });

  test('that cannot flush what was acknowledged says so, and lets go of the file', async () => {
    const directory = sandbox();
    const files = failing('.part', () => ({ datasync: () => Promise.reject(osError('EIO')) }));
    const staged = await StagedFile.create(optionsIn(directory, { durability: 'end', files }));
    staged.write(batchOf('one'));
    await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    expect(await rejection(staged.release())).toMatchObject({ diagnostic: '2-213' });
    const { file } = await StagedFile.resume(optionsIn(directory));
    await file.discard();
  });
});

test('a memo of up to 1024 bytes is kept; a longer one is a programming error', async () => {
  const directory = sandbox();
  const memo = 'é'.repeat(512);
  const staged = await StagedFile.create(optionsIn(directory, { memo }));
  await staged.checkpoint({ number: 1, dataBytes: 0, articles: 0 });
  await staged.release();
  expect(await StagedFile.peek(directory, 'k')).toMatchObject({ memo, point: { number: 1 } });
  await expect(StagedFile.resume(optionsIn(directory, { memo: `${memo}x` }))).rejects.toThrow(TypeError);
  const { file, point } = await StagedFile.resume(optionsIn(directory, { memo: 'another' }));
  expect(point.number).toBe(1);
  await file.discard();
});
