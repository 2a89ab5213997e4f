import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations, RecordFormat, StagedFileOptions } from '../src/index.js';
import { batchOf, piecesOf } from './support/articles.js';
import { ModelDisk, chances, driven, someHappen } from './support/model-disk.js';
import { filesIn, sandbox } from './support/sandbox.js';
import { optionsIn } from './support/staged.js';

const start = { number: 0, dataBytes: 0, articles: 0, fileOffset: 0 };

/** Three articles, a point after each of the first two, and then the end that a lost connection brings. */
async function interrupted(directory: string, more: Partial<StagedFileOptions> = {}): Promise<void> {
  const staged = await StagedFile.create(optionsIn(directory, more));
  staged.write(batchOf('one'));
  await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
  staged.write(batchOf('three'));
  await staged.checkpoint({ number: 2, dataBytes: 8, articles: 2 });
  staged.write(piecesOf([], ['fi']));
  await staged.release();
}

/** Hundreds of files of a few bytes, where flushes are not the question. */
const unflushed = { durability: 'none' } as const;

const sha256 = (content: string | Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`;

describe('a file that goes on', () => {
  test('from its newest point, with its counts and its hash, to the same file', async () => {
    const directory = sandbox();
    await interrupted(directory);
    expect(filesIn(directory)).toEqual(['.pesit/k.part', '.pesit/k.points']);
    const { file, point, reason } = await StagedFile.resume(optionsIn(directory));
    expect(point).toEqual({ number: 2, dataBytes: 8, articles: 2, fileOffset: 10 });
    expect(reason).toBeUndefined();
    expect(file).toMatchObject({ articles: 2, dataBytes: 8, size: 10, bytesWritten: 10, stablePoint: point });
    expect(readFileSync(file.stagedPath, 'utf8')).toBe('one\nthree\n');
    file.write(batchOf('five'));
    await file.checkpoint({ number: 3, dataBytes: 12, articles: 3 });
    const delivery = await file.deliver({ path: 'out', overwrite: false });
    expect(delivery).toEqual({
      path: join(directory, 'out'),
      size: 15,
      // printf 'one\nthree\nfive\n' | sha256sum
      checksum: 'sha256:8645c83b9c15ddb1760937bb57c707e63428b95286ab57521f8964a1a73c279a',
    });
    expect(readFileSync(delivery.path, 'utf8')).toBe('one\nthree\nfive\n');
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('in the process that released it nothing is read for the hash: a partner waits no longer than Tp', async () => {
    const directory = sandbox();
    await interrupted(directory);
    let reads = 0;
    const counting: FileOperations = {
      ...nodeFiles,
      open: async (path, flags, mode) => {
        const file = await nodeFiles.open(path, flags, mode);
        const readv: typeof file.readv = (buffers, position) => {
          if (path.endsWith('.part')) reads += 1;
          return file.readv(buffers, position);
        };
        return { ...file, readv };
      },
    };
    const { file, point } = await StagedFile.resume(optionsIn(directory, { files: counting }));
    expect(point.number).toBe(2);
    file.write(batchOf('five'));
    // Not stored as a point: the state of point 2 serves once more.
    await file.release();
    const again = await StagedFile.resume(optionsIn(directory, { files: counting }));
    expect(again.point.number).toBe(2);
    expect(reads).toBe(0);
    again.file.write(batchOf('five'));
    const { checksum } = await again.file.deliver({ path: 'out', overwrite: false });
    expect(checksum).toBe(sha256('one\nthree\nfive\n'));
  });

  test('a hash that is not the one of the newest point is not used', async () => {
    const directory = sandbox();
    await interrupted(directory);
    const journal = readFileSync(join(directory, '.pesit/k.points'));
    const { file } = await StagedFile.resume(optionsIn(directory));
    file.write(batchOf('five'));
    await file.checkpoint({ number: 3, dataBytes: 12, articles: 3 });
    await file.release();
    // Another process went back to point 2, and was killed.
    writeFileSync(join(directory, '.pesit/k.points'), journal);
    truncateSync(join(directory, '.pesit/k.part'), 10);
    const again = await StagedFile.resume(optionsIn(directory));
    expect(again.point.number).toBe(2);
    again.file.write(batchOf('six'));
    const { checksum } = await again.file.deliver({ path: 'out', overwrite: false });
    expect(checksum).toBe(sha256('one\nthree\nsix\n'));
  });

  test('as often as it is interrupted', async () => {
    const directory = sandbox();
    for (let i = 0; i < 5; i++) {
      const { file, point } = await StagedFile.resume(optionsIn(directory));
      expect(point).toMatchObject({ number: i, articles: i, dataBytes: 5 * i });
      file.write(batchOf(`line${i}`));
      await file.checkpoint({ number: i + 1, dataBytes: 5 * (i + 1), articles: i + 1 });
      file.write(batchOf('lost'));
      await file.release();
    }
    const { file } = await StagedFile.resume(optionsIn(directory));
    const delivery = await file.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(delivery.path, 'utf8')).toBe('line0\nline1\nline2\nline3\nline4\n');
    expect(delivery.checksum).toBe(sha256('line0\nline1\nline2\nline3\nline4\n'));
  });

  test('with more points than the journal makes room for at a time, however the disk orders its appends', async () => {
    // 63 records beside the header, then 64 a block: points that are stored two flushes at a time, over three blocks.
    const count = 170;
    const seeds = [1, 2, 3];
    for (const seed of seeds) {
      const chance = chances(seed);
      const disk = new ModelDisk(chance);
      const options = { ...optionsIn('/d'), files: disk.mountedAt('/d') };
      const staged = await driven(disk, chance, StagedFile.create(options));
      const points: Promise<void>[] = [];
      for (let i = 1; i <= count; i++) {
        staged.write(batchOf('line'));
        points.push(staged.checkpoint({ number: i, dataBytes: 4 * i, articles: i }));
        await someHappen(disk, chance);
      }
      await driven(disk, chance, Promise.all(points));
      const journal = disk.stableContent('/d/.pesit/k.points')!;
      expect(journal).toHaveLength(3 * 4096);
      expect(points.map((_, i) => journal.readUIntLE(64 * (i + 1), 3))).toEqual(points.map((_, i) => i + 1));
      await driven(disk, chance, staged.release());
    }
  });

  test('where nothing is, as a new one', async () => {
    const directory = sandbox();
    const { file, point, reason } = await StagedFile.resume(optionsIn(directory));
    expect({ point, reason }).toEqual({ point: start, reason: undefined });
    expect(file.stablePoint).toBeUndefined();
    file.write(batchOf('x'));
    await file.deliver({ path: 'out', overwrite: false });
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('with points that were not yet asked for when it was released', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    const points = Array.from({ length: 40 }, (_, i) => {
      staged.write(batchOf('0123456789'.repeat(8)));
      return staged.checkpoint({ number: i + 1, dataBytes: 80 * (i + 1), articles: i + 1 });
    });
    await staged.release();
    await Promise.all(points);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ point: { number: 40, fileOffset: 3240 } });
  });

  test('says what is worth keeping when the flushes that are under way are over', async () => {
    const staged = await StagedFile.create(optionsIn(sandbox()));
    expect(await staged.lastPoint()).toBeUndefined();
    staged.write(batchOf('one'));
    const stored = staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    expect(staged.stablePoint).toBeUndefined();
    expect(await staged.lastPoint()).toMatchObject({ number: 1, fileOffset: 4 });
    await stored;
    await staged.discard();
  });

  test('without a hash: nothing is read, the points that were flushed count', async () => {
    const directory = sandbox();
    await interrupted(directory, { checksum: 'none' });
    const reads: string[] = [];
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags, mode) => {
        const file = await nodeFiles.open(path, flags, mode);
        return { ...file, readv: (buffers, position) => (reads.push(path), file.readv(buffers, position)) };
      },
    };
    const { file, point } = await StagedFile.resume(optionsIn(directory, { checksum: 'none', files }));
    expect(point.number).toBe(2);
    expect(reads.filter((path) => path.endsWith('.part'))).toEqual([]);
    file.write(batchOf('five'));
    expect(await file.deliver({ path: 'out', overwrite: false })).toMatchObject({ size: 15, checksum: undefined });
  });

  test('with a hash from now on, or without one from now on', async () => {
    for (const [before, after] of [
      ['none', 'sha256'],
      ['sha256', 'none'],
    ] as const) {
      const directory = sandbox();
      await interrupted(directory, { checksum: before });
      const { file, point } = await StagedFile.resume(optionsIn(directory, { checksum: after }));
      expect(point.number).toBe(2);
      const { checksum } = await file.deliver({ path: 'out', overwrite: false });
      expect(checksum).toBe(after === 'none' ? undefined : sha256('one\nthree\n'));
    }
  });

  test('after a file of some megabytes, read in blocks, at every one of its points', async () => {
    const directory = sandbox();
    const binary = formatOf({ recordLength: 65_535 });
    const articles = Array.from({ length: 60 }, (_, i) => Buffer.alloc(50_000 + i, i));
    const staged = await StagedFile.create(optionsIn(directory, { format: binary }));
    let dataBytes = 0;
    for (const [i, article] of articles.entries()) {
      if (!staged.write(batchOf(article))) await staged.drained();
      dataBytes += article.length;
      if (i % 7 === 6) await staged.checkpoint({ number: (i + 1) / 7, dataBytes, articles: i + 1 });
    }
    await staged.release();
    const whole = sha256(Buffer.concat(articles));
    for (let number = 8; number > 0; number--) {
      const copy = sandbox();
      await (await StagedFile.create(optionsIn(copy, { key: 'other' }))).discard();
      copyFileSync(join(directory, '.pesit/k.points'), join(copy, '.pesit/k.points'));
      copyFileSync(join(directory, '.pesit/k.part'), join(copy, '.pesit/k.part'));
      const end = articles.slice(0, number * 7 + 6).reduce((sum, { length }) => sum + length, 0);
      truncateSync(join(copy, '.pesit/k.part'), end);
      const { file, point } = await StagedFile.resume(optionsIn(copy, { format: binary }));
      expect(point).toMatchObject({ number, articles: number * 7 });
      for (const article of articles.slice(number * 7)) if (!file.write(batchOf(article))) await file.drained();
      expect((await file.deliver({ path: 'out', overwrite: false })).checksum).toBe(whole);
    }
  });
});

describe('every format, resumed at every point, gives the file of a transfer that was never cut', () => {
  const cases: readonly [string, RecordFormat, readonly string[], string][] = [
    ['BU', formatOf({ recordLength: 4 }), ['abcd', 'efgh', 'ij', ' \n\r '], 'abcdefghij \n\r '],
    ['BV', formatOf({ recordFormat: 128, recordLength: 4 }), ['abc', 'd', 'efgh', 'i'], 'abcdefghi'],
    ['BF', formatOf({ recordFormat: 0, recordLength: 4 }), ['abcd', '    ', 'ef\n ', 'ghij'], 'abcd    ef\n ghij'],
    ['TV', formatOf({ text: true, recordLength: 6 }), ['one', ' ', ' two ', 'three'], 'one\n \n two \nthree\n'],
    [
      'TF',
      formatOf({ text: true, recordFormat: 0, recordLength: 6 }),
      ['one   ', '      ', ' two  ', 'three '],
      'one\n\n two\nthree\n',
    ],
  ];
  test.each(cases)('%s', async (name, format, articles, expected) => {
    expect(format.name).toBe(name);
    for (let cut = 0; cut <= articles.length; cut++) {
      // What came behind the point when the connection was lost: nothing, a part of an article, a whole one.
      for (const tail of [[], [[], [articles[cut]?.slice(0, 1) ?? 'x']], [[[articles[cut] ?? 'x'.repeat(4)]], []]]) {
        const directory = sandbox();
        const options = optionsIn(directory, { format, ...unflushed });
        const staged = await StagedFile.create(options);
        let dataBytes = 0;
        for (const [i, article] of articles.slice(0, cut).entries()) {
          // Every article in two parts and two batches.
          staged.write(piecesOf([], [article.slice(0, 1)]));
          staged.write(piecesOf([[article.slice(1)]]));
          dataBytes += article.length;
          await staged.checkpoint({ number: i + 1, dataBytes, articles: i + 1 });
        }
        if (tail.length > 0) staged.write(piecesOf(tail[0] as string[][], tail[1] as string[]));
        await staged.release();
        const { file, point } = await StagedFile.resume(options);
        expect(point).toMatchObject({ number: cut, articles: cut, dataBytes });
        file.write(batchOf(...articles.slice(cut)));
        const delivery = await file.deliver({ path: 'out', overwrite: false });
        expect(readFileSync(delivery.path, 'latin1')).toBe(expected);
        expect(delivery.checksum).toBe(sha256(expected));
        expect(file.articles).toBe(articles.length);
      }
    }
  });
});

describe('a journal that is not as it should be', () => {
  const journalIn = (directory: string) => join(directory, '.pesit/k.points');

  test('cut at every byte: the newest point that is whole counts, and the file is cut back to it', async () => {
    const directory = sandbox();
    await interrupted(directory, unflushed);
    const journal = readFileSync(journalIn(directory));
    const part = readFileSync(join(directory, '.pesit/k.part'));
    // A header of 48 bytes, padded to 64, two records of 64, and room for more.
    expect(journal).toHaveLength(4096);
    expect(journal.subarray(192)).toEqual(Buffer.alloc(3904));
    for (let length = 0; length <= 192 + 65; length++) {
      writeFileSync(journalIn(directory), journal.subarray(0, length));
      writeFileSync(join(directory, '.pesit/k.part'), part);
      const expected = length < 128 ? 0 : length < 192 ? 1 : 2;
      expect((await StagedFile.peek(directory, 'k'))?.point.number).toBe(expected);
      const { file, point, reason } = await StagedFile.resume(optionsIn(directory, unflushed));
      expect(point.number).toBe(expected);
      expect(reason === undefined).toBe(expected > 0);
      await file.release();
      expect(readFileSync(join(directory, '.pesit/k.part'), 'utf8')).toBe(['', 'one\n', 'one\nthree\n'][expected]);
    }
  });

  test('with any one byte changed: never a point that was not written, never a wrong byte before it', async () => {
    const directory = sandbox();
    await interrupted(directory, unflushed);
    const journal = readFileSync(journalIn(directory));
    const part = readFileSync(join(directory, '.pesit/k.part'));
    const found = new Map<number, number>();
    for (let at = 0; at < 192 + 64; at++) {
      const changed = Buffer.from(journal);
      changed.writeUInt8(changed.readUInt8(at) ^ 0x40, at);
      writeFileSync(journalIn(directory), changed);
      writeFileSync(join(directory, '.pesit/k.part'), part);
      const { file, point } = await StagedFile.resume(optionsIn(directory, unflushed));
      await file.release();
      expect([
        start,
        { number: 1, dataBytes: 3, articles: 1, fileOffset: 4 },
        { number: 2, dataBytes: 8, articles: 2, fileOffset: 10 },
      ]).toContainEqual(point);
      found.set(point.number, (found.get(point.number) ?? 0) + 1);
    }
    // The 48 bytes of the header; the last record; the 16 bytes of padding, the first record, which the second outlives, and the
    // place of a third that was not written.
    expect(Object.fromEntries(found)).toEqual({ 0: 48, 1: 64, 2: 80 + 64 });
  });

  test('bytes of the file that changed: the point before them, and the reason', async () => {
    const before = sandbox();
    await interrupted(before);
    // As another process finds it.
    const directory = join(sandbox(), 'moved');
    renameSync(before, directory);
    writeFileSync(join(directory, '.pesit/k.part'), 'one\nthrXe\nfi');
    const { file, point, reason } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    expect(reason).toBe('the bytes before point 2 are not those that were received: back to point 1');
    file.write(batchOf('three'));
    expect((await file.deliver({ path: 'out', overwrite: false })).checksum).toBe(sha256('one\nthree\n'));
  });

  test('a file that is shorter than its newest point: the newest point within it', async () => {
    for (const [length, number] of [
      [10, 2],
      [9, 1],
      [4, 1],
      [3, 0],
      [0, 0],
    ] as const) {
      const directory = sandbox();
      await interrupted(directory);
      truncateSync(join(directory, '.pesit/k.part'), length);
      const { file, point } = await StagedFile.resume(optionsIn(directory));
      expect(point.number).toBe(number);
      await file.discard();
    }
  });

  test.each<[string, (journal: Buffer) => Buffer | undefined, string]>([
    ['none', () => undefined, 'it has no journal of points'],
    ['an empty one', () => Buffer.alloc(0), 'the journal of points ends within its header (0 bytes)'],
    ['another file', () => Buffer.alloc(500, 'x'), 'the journal of points begins with something else'],
    [
      'one of a later release',
      (journal) => (journal.writeUInt16LE(2, 8), journal),
      'the journal of points has version 2, this release reads version 1',
    ],
    [
      'a damaged header',
      (journal) => (journal.writeUInt8(0, 33), journal),
      'the header of the journal of points is damaged',
    ],
    ['no point', (journal) => journal.subarray(0, 64), 'its journal has no point within the 10 bytes that are there'],
  ])('%s: from the start, in words', async (_, change, words) => {
    const directory = sandbox();
    await interrupted(directory);
    const changed = change(readFileSync(journalIn(directory)));
    if (changed) writeFileSync(journalIn(directory), changed);
    else rmSync(journalIn(directory));
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ point: start, problem: words, size: 10 });
    const { file, point, reason } = await StagedFile.resume(optionsIn(directory));
    expect({ point, reason }).toEqual({ point: start, reason: words });
    expect(statSync(file.stagedPath).size).toBe(0);
    file.write(batchOf('new'));
    await file.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
    await file.release();
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ point: { number: 1, fileOffset: 4 } });
  });

  test('of another transfer that had the key before: its records count for nothing', async () => {
    const directory = sandbox();
    await interrupted(directory);
    const old = readFileSync(journalIn(directory));
    rmSync(join(directory, '.pesit'), { recursive: true });
    await interrupted(directory);
    writeFileSync(
      journalIn(directory),
      Buffer.concat([readFileSync(journalIn(directory)).subarray(0, 128), old.subarray(128)]),
    );
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    await file.discard();
  });

  test('of another record format: from the start, in words', async () => {
    const directory = sandbox();
    await interrupted(directory);
    const { file, point, reason } = await StagedFile.resume(
      optionsIn(directory, { format: formatOf({ text: true, recordLength: 81 }) }),
    );
    expect({ point, reason }).toEqual({
      point: start,
      reason: 'it was received as TV of 80, and would continue as TV of 81',
    });
    await file.discard();
  });

  test('without its file: nothing to go on from, and gone once a new file is there', async () => {
    const directory = sandbox();
    await interrupted(directory);
    rmSync(join(directory, '.pesit/k.part'));
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({
      size: 0,
      point: start,
      memo: '{"partner":"P1"}',
      problem: 'there is no staged file',
    });
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point).toEqual(start);
    expect(filesIn(directory)).toEqual([expect.stringMatching(/lock$/), '.pesit/k.part']);
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('left beside no file: a new transfer does not see it', async () => {
    const directory = sandbox();
    await interrupted(directory);
    rmSync(join(directory, '.pesit/k.part'));
    const staged = await StagedFile.create(optionsIn(directory));
    staged.write(batchOf('a', 'b', 'c', 'd', 'e', 'f', 'g'));
    await staged.release();
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point).toEqual(start);
    await file.discard();
  });
});
