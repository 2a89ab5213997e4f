/** RESYN on both ends of a file: back to a point of the running attempt, and on from there, whole and with the right checksum. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { SyncPoint } from '@pesit-node/protocol';
import fc from 'fast-check';
import { ArticleSender } from '../../protocol/src/sending.js';
import { FileSource, StagedFile, formatOf } from '../src/index.js';
import type { StagedFileOptions } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { rejection, sandbox } from './support/sandbox.js';

const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };
const sha256 = (content: string) => `sha256:${createHash('sha256').update(content, 'latin1').digest('hex')}`;

const formats = {
  BU: { recordFormat: undefined, text: false },
  BF: { recordFormat: 0, text: false },
  TV: { recordFormat: 128, text: true },
  TF: { recordFormat: 0, text: true },
} as const;
const names = Object.keys(formats) as (keyof typeof formats)[];

describe('the source', () => {
  const senderOf = () =>
    new ArticleSender({
      entitySize: 100,
      prefix: 2,
      crc: false,
      destination: 1,
      interval: 200,
      window: 1e6,
      from: START,
    });

  /** Sends `bursts` bursts. @returns their data, and whether more is left */
  async function send(source: FileSource, sender: ArticleSender, bursts: number) {
    const sent: Buffer[] = [];
    let more = true;
    for (let burst = 0; more && burst < bursts; burst++) {
      sender.begin(Buffer.alloc(100_000).subarray(0, 90_000));
      more = await source.fill(sender);
      sender.end();
      sent.push(Buffer.concat(sender.slots));
    }
    return Buffer.concat(sent).toString('latin1');
  }

  test.each(names)('%s: any point, any number of times', async (name) => {
    const format = formatOf({ ...formats[name], recordLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(), { maxLength: 4 }),
        fc.constantFrom('sha256', 'none'),
        async (picks, checksum) => {
          const content = name.startsWith('T')
            ? Array.from({ length: 4000 }, (_, i) => 'x'.repeat(i % 39) + String(i % 10)).join('\n')
            : Array.from({ length: 20_000 }, (_, i) => String(i).padStart(8, '0')).join('');
          const path = join(sandbox(), 'source');
          writeFileSync(path, content, 'latin1');
          const whole = await FileSource.open(path, format);
          const expected = await send(whole, senderOf(), Infinity);
          await whole.close();

          const source = await FileSource.open(path, format, { checksum: checksum });
          const sender = senderOf();
          let data = '';
          for (const pick of picks) {
            data += await send(source, sender, 1 + (pick % 2));
            const number = pick % (sender.lastPoint + 1);
            const acknowledged = number === 0 ? START : sender.acknowledge(number);
            if (typeof acknowledged !== 'object') continue;
            await source.goBack(acknowledged);
            sender.goBack(acknowledged);
            data = data.slice(0, acknowledged.dataBytes);
            expect(source.checksum).toBeUndefined();
            expect(source.points.last).toBe(number);
          }
          data += await send(source, sender, Infinity);
          expect(data === expected).toBe(true);
          expect(source.checksum).toBe(checksum === 'none' ? undefined : sha256(content));
          await source.close();
        },
      ),
      { numRuns: 15 },
    );
  });

  test('a line that is too long is named by its number in the file', async () => {
    const path = join(sandbox(), 'source');
    const lines = Array.from({ length: 40 }, (_, i) => 'y'.repeat(30) + String(i));
    writeFileSync(path, [...lines, 'z'.repeat(50)].join('\n'));
    const source = await FileSource.open(path, formatOf({ ...formats.TV, recordLength: 40 }));
    const sender = senderOf();
    sender.begin(Buffer.alloc(90_000));
    expect(await rejection(source.fill(sender))).toMatchObject({ peerText: expect.stringContaining('line 41 ') });
    sender.end();
    const point = sender.acknowledge(2) as SyncPoint;
    await source.goBack(point);
    sender.goBack(point);
    sender.begin(Buffer.alloc(90_000));
    expect(await rejection(source.fill(sender))).toMatchObject({ peerText: expect.stringContaining('line 41 ') });
    await source.close();
  });

  test('a point that it never placed: 2-214; a file that became shorter: 2-215', async () => {
    const path = join(sandbox(), 'source');
    writeFileSync(path, 'a'.repeat(1000));
    const source = await FileSource.open(path, formatOf({ recordLength: 40 }));
    await send(source, senderOf(), 1);
    expect(await rejection(source.goBack({ number: 99, dataBytes: 1, articles: 1 }))).toMatchObject({
      diagnostic: '2-214',
    });
    writeFileSync(path, 'a');
    expect(await rejection(source.goBack({ number: 2, dataBytes: 400, articles: 10 }))).toMatchObject({
      diagnostic: '2-215',
    });
    await source.close();
  });
});

describe('the staged file', () => {
  const format = formatOf({ text: true, recordLength: 80 });
  const optionsIn = (receiveDirectory: string, more: Partial<StagedFileOptions> = {}): StagedFileOptions => ({
    receiveDirectory,
    key: 'k',
    format,
    ...more,
  });
  const line = (i: number): string => `line ${i}`.padEnd(12, '.');
  const at = (number: number): SyncPoint => ({ number, dataBytes: 24 * number, articles: 2 * number });
  const text = (count: number): string => Array.from({ length: count }, (_, i) => `${line(i)}\n`).join('');

  /** Two lines and a point, from point `from` to point `to`, and two lines behind it. */
  async function write(staged: StagedFile, from: number, to: number): Promise<void> {
    for (let n = from; n < to; n++) {
      staged.write(batchOf(line(2 * n), line(2 * n + 1)));
      await staged.checkpoint(at(n + 1));
    }
    staged.write(batchOf(line(2 * to), line(2 * to + 1)));
  }

  test.each([
    ['checkpoint', 'sha256'],
    ['checkpoint', 'none'],
    ['end', 'sha256'],
    ['none', 'sha256'],
  ] as const)('durability %s, checksum %s: any point', async (durability, checksum) => {
    for (const number of [0, 1, 3, 5]) {
      const staged = await StagedFile.create(optionsIn(sandbox(), { durability, checksum }));
      await write(staged, 0, 5);
      // What is void is not the file's: other lines, and half an article.
      staged.write({ ...batchOf('void'), ends: [] });
      await staged.goBack(number === 0 ? START : at(number));
      expect(staged).toMatchObject({ articles: 2 * number, dataBytes: 24 * number, size: 13 * 2 * number });
      expect(staged.stablePoint?.number ?? 0).toBe(number);
      await write(staged, number, 7);
      const { path, checksum: sum, size } = await staged.deliver({ path: 'out', overwrite: false });
      expect(readFileSync(path, 'latin1')).toBe(text(16));
      expect([size, sum]).toEqual([13 * 16, checksum === 'none' ? undefined : sha256(text(16))]);
    }
  });

  test('a point that is not flushed yet is stored first', async () => {
    const staged = await StagedFile.create(optionsIn(sandbox()));
    staged.write(batchOf(line(0), line(1)));
    const stored = staged.checkpoint(at(1));
    staged.write(batchOf(line(2), line(3)));
    const later = staged.checkpoint(at(2));
    await staged.goBack(at(1));
    await Promise.all([stored, later]);
    expect(staged.stablePoint).toMatchObject(at(1));
    staged.write(batchOf(line(2), line(3)));
    const { path } = await staged.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(path, 'latin1')).toBe(text(4));
  });

  test('the end may be prepared, and void again', async () => {
    const staged = await StagedFile.create(optionsIn(sandbox()));
    await write(staged, 0, 3);
    await staged.prepareDelivery();
    await staged.goBack(at(2));
    await write(staged, 2, 4);
    const { path } = await staged.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(path, 'latin1')).toBe(text(10));
  });

  test.each(['checkpoint', 'end'] as const)('a restart goes on from what is stored since (%s)', async (durability) => {
    for (const number of [0, 2]) {
      const directory = sandbox();
      const first = await StagedFile.create(optionsIn(directory, { durability }));
      await write(first, 0, 5);
      await first.goBack(number === 0 ? START : at(number));
      await write(first, number, 3);
      await first.release();
      const { file, point, reason } = await StagedFile.resume(optionsIn(directory, { durability }));
      expect([point.number, reason]).toEqual([3, undefined]);
      await write(file, 3, 4);
      const { path, checksum } = await file.deliver({ path: 'out', overwrite: false });
      expect(readFileSync(path, 'latin1')).toBe(text(10));
      expect(checksum).toBe(sha256(text(10)));
    }
  });

  test('a crash right behind it finds the point, not what followed it', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    await write(staged, 0, 5);
    await staged.goBack(at(2));
    // Nothing is closed: as a process that is killed.
    const facts = await StagedFile.peek(directory, 'k');
    expect(facts).toMatchObject({ point: { number: 2, fileOffset: 52 } });
    await staged.discard();
  });

  test('a point without a record: 2-218; the file is kept for a restart', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create(optionsIn(directory));
    await write(staged, 0, 2);
    expect(await rejection(staged.goBack(at(4)))).toMatchObject({ diagnostic: '2-218' });
    await staged.release();
    const { point, file } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(2);
    await file.discard();
    const bare = await StagedFile.create(optionsIn(sandbox(), { durability: 'none', checksum: 'none' }));
    await write(bare, 0, 2);
    expect(await rejection(bare.goBack(at(1)))).toMatchObject({ diagnostic: '2-218' });
    await bare.discard();
  });

  test('delivered or given up: refused', async () => {
    const staged = await StagedFile.create(optionsIn(sandbox()));
    await write(staged, 0, 2);
    const delivering = staged.deliver({ path: 'out', overwrite: false });
    expect(await rejection(staged.goBack(at(1)))).toMatchObject({ diagnostic: '2-218' });
    const { path } = await delivering;
    expect(readFileSync(path, 'latin1')).toBe(text(6));
    const other = await StagedFile.create(optionsIn(sandbox()));
    await write(other, 0, 2);
    const going = other.goBack(at(1));
    await Promise.all([other.discard(), going.catch(() => undefined)]);
    expect(await rejection(other.goBack(at(1)))).toMatchObject({ diagnostic: '2-216' });
  });
});
