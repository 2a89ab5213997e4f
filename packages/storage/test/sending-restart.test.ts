import { createHash } from 'node:crypto';
import { appendFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ArticleSender } from '../../protocol/src/sending.js';
import { FileSource, LocalFileStore, StorageError, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations, Pacing, RecordFormat, StoredPoint } from '../src/index.js';
import { drain } from './support/articles.js';
import { rejection, sandbox } from './support/sandbox.js';

const formats = {
  BU: { recordFormat: undefined, text: false },
  BV: { recordFormat: 128, text: false },
  BF: { recordFormat: 0, text: false },
  TV: { recordFormat: 128, text: true },
  TF: { recordFormat: 0, text: true },
} as const;
const names = Object.keys(formats) as (keyof typeof formats)[];
const start = { number: 0, dataBytes: 0, articles: 0, fileOffset: 0 };
const sha256 = (content: string) => `sha256:${createHash('sha256').update(content, 'latin1').digest('hex')}`;

function fileWith(content: string): string {
  const path = join(sandbox(), 'source');
  writeFileSync(path, content, 'latin1');
  return path;
}

/** Sends with the sender of the protocol itself. @returns the articles, and each point with its place and totals */
async function sent(source: FileSource, from: StoredPoint, entitySize: number, interval: number, bursts: number) {
  const sender = new ArticleSender({ entitySize, prefix: 2, crc: false, destination: 1, interval, window: 1e6, from });
  const articles: Buffer[] = [];
  let more = true;
  for (let burst = 0; more && burst < bursts; burst++) {
    sender.begin(Buffer.alloc(70_000 + 30 * 300));
    more = await source.fill(sender);
    sender.end();
    articles.push(Buffer.concat(sender.slots));
  }
  const points = new Map<number, StoredPoint>();
  for (let number = from.number + 1; number <= sender.lastPoint; number++) {
    const point = sender.acknowledge(number);
    const fileOffset = source.points.offsetOf(number);
    if (typeof point !== 'object' || fileOffset === undefined) throw new Error(`point ${number} has no place`);
    points.set(number, { ...point, fileOffset });
  }
  const { maxUnsegmentedArticle } = sender;
  const pacing: Pacing = { from: from.number, interval, maxUnsegmentedArticle };
  return { bytes: Buffer.concat(articles).toString('latin1'), points, pacing, more };
}

/** Article bytes of the whole file: what must have been sent in the end, in however many attempts. */
async function wholeData(path: string, format: RecordFormat): Promise<string> {
  const source = await FileSource.open(path, format);
  const { bytes } = await sent(source, start, 65_535, 0, Infinity);
  await source.close();
  return bytes;
}

const attempt = fc.record({
  // As text: about 1, 2, 8 lines a point. A burst of 70,000 bytes takes some hundred points.
  interval: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 61, max: 5000 })),
  entitySize: fc.oneof(fc.integer({ min: 800, max: 2000 }), fc.constant(65_535)),
  bursts: fc.integer({ min: 1, max: 3 }),
  backTo: fc.nat(),
});

test.each(names)('%s: every point of every attempt is found again, exactly where it was placed', async (name) => {
  const scenario = fc.record({
    recordLength: fc.oneof(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 700, max: 3000 })),
    lines: fc.array(fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\r'), maxLength: 60 }), { maxLength: 60 }),
    repeated: fc.constantFrom(1, 1, 30, 200),
    lastLineEnds: fc.boolean(),
    attempts: fc.array(attempt, { minLength: 1, maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ recordLength, lines, repeated, lastLineEnds, attempts }) => {
      const short = lines.map((line) => line.slice(0, recordLength));
      let content = `${short.join('\n')}\n`.repeat(repeated);
      if (!lastLineEnds) content = content.slice(0, -1);
      if (name === 'BF') content = content.slice(0, content.length - (content.length % recordLength));
      const path = fileWith(content);
      const format = formatOf({ ...formats[name], recordLength });
      const data = await wholeData(path, format);

      const placed = new Map<number, StoredPoint>([[0, start]]);
      const pacings: Pacing[] = [];
      for (const { interval, entitySize, bursts, backTo } of attempts) {
        const from = [...placed.values()][backTo % placed.size]!;
        const source = await FileSource.open(path, format);
        expect(await source.startAt(from.number, pacings)).toEqual(from);
        const { points, pacing, bytes } = await sent(source, from, entitySize, interval, bursts);
        expect(data.slice(from.dataBytes, from.dataBytes + bytes.length)).toBe(bytes);
        await source.close();
        pacings.push(pacing);
        for (const number of placed.keys()) if (number > from.number) placed.delete(number);
        for (const [number, point] of points) placed.set(number, point);
      }
      const all = [...placed.values()];
      for (const point of all.filter((_, i) => i < 3 || i % 37 === 0 || i > all.length - 3)) {
        const source = await FileSource.open(path, format);
        expect(await source.startAt(point.number, pacings)).toEqual(point);
        const rest = await sent(source, point, 65_535, 0, Infinity);
        expect(rest.bytes).toBe(data.slice(point.dataBytes));
        expect(source.checksum).toBe(sha256(content));
        await source.close();
      }
    }),
    { numRuns: 40 },
  );
});

describe('a restart behind a long part', () => {
  const size = 80 * 1024 * 1024;
  const far: Pacing[] = [{ from: 0, interval: 70_400_000, maxUnsegmentedArticle: 32_000 }];
  const point = { number: 1, dataBytes: 70_400_000, articles: 2200, fileOffset: 70_400_000 };
  const format = formatOf({ recordLength: 32_000 });

  function sparse(): string {
    const path = fileWith('start');
    truncateSync(path, size);
    return path;
  }

  const hashOfSparse = createHash('sha256')
    .update('start')
    .update(Buffer.alloc(size - 5))
    .digest('hex');

  /** `readv` of the part that the partner has waits until `release` is called. */
  function slowBefore(offset: number) {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags, mode) => {
        const file = await nodeFiles.open(path, flags, mode);
        const readv: typeof file.readv = async (buffers, position) => {
          if (position < offset) await released;
          return file.readv(buffers, position);
        };
        return { ...file, readv };
      },
    };
    return { files, release };
  }

  test('begins before that part is hashed; the checksum is there in the end', async () => {
    const { files, release } = slowBefore(64_000_000);
    const path = sparse();
    const source = await FileSource.open(path, format, { store: new LocalFileStore('/', { files }) });
    expect(await source.startAt(1, far)).toEqual(point);
    const { bytes, more } = await sent(source, point, 65_535, 0, Infinity);
    expect({ bytes: bytes.length, more }).toEqual({ bytes: size - 70_400_000, more: false });
    await source.hashed(1);
    expect(source.checksum).toBeUndefined();
    release();
    await source.hashed();
    expect(source.checksum).toBe(`sha256:${hashOfSparse}`);
    await source.close();
  });

  test('a file that changed after it was sent has no checksum; one that is closed is read no further', async () => {
    const path = sparse();
    const source = await FileSource.open(path, format);
    await source.startAt(1, far);
    await sent(source, point, 65_535, 0, Infinity);
    utimesSync(path, 1, 1);
    await source.hashed();
    expect(source.checksum).toBeUndefined();
    await source.close();

    const other = await FileSource.open(sparse(), format);
    await other.startAt(1, far);
    await other.close();
    await other.hashed();
    expect(other.checksum).toBeUndefined();
  });
});

describe('a signal that is aborted while the part before a point is read', () => {
  const CANCELLED = { fault: 'local', diagnostic: '2-216', peerText: 'cancelled' } as const;
  test.each([
    ['BU, hashed', false],
    ['TV, cut once more', true],
  ])('%s: its reason within two blocks', async (_, text) => {
    const path = fileWith('123456789\n'.repeat(600_000));
    const gone = new AbortController();
    let reads = 0;
    const files: FileOperations = {
      ...nodeFiles,
      open: async (name, flags, mode) => {
        const file = await nodeFiles.open(name, flags, mode);
        const readv: typeof file.readv = (buffers, position) => {
          if (++reads === 3) gone.abort(new StorageError('not wanted any more', CANCELLED));
          return file.readv(buffers, position);
        };
        return { ...file, readv };
      },
    };
    const source = await FileSource.open(path, formatOf({ text, recordLength: 10 }), {
      store: new LocalFileStore('/', { files }),
    });
    const attempts = [{ from: 0, interval: 1000, maxUnsegmentedArticle: 1000 }];
    const error = await rejection(source.startAt(5000, attempts, gone.signal));
    expect(error).toBe(gone.signal.reason);
    expect(reads).toBeLessThanOrEqual(5);
    // Nobody asks it to stop now.
    expect(await source.startAt(5000, attempts)).toMatchObject({ number: 5000 });
    await source.close();
  });
});

describe('a point that was never placed', () => {
  const content = 'x'.repeat(100);
  const seven = { interval: 20, maxUnsegmentedArticle: 1000 };

  test.each<[string, number, Pacing[]]>([
    ['beyond the last', 8, [{ from: 0, ...seven }]],
    ['far beyond the last', 999_999, [{ from: 0, ...seven }]],
    ['beyond what a point can be', 1_000_000, [{ from: 0, ...seven }]],
    ['negative', -1, [{ from: 0, ...seven }]],
    ['of no attempt', 1, []],
    ['of an attempt without points', 1, [{ from: 0, interval: 0, maxUnsegmentedArticle: 1000 }]],
    ['of an attempt whose start is unknown', 6, [{ from: 5, ...seven }]],
  ])('%s: undefined, and the file is at its start', async (_, number, attempts) => {
    for (const name of names) {
      const recordLength = name === 'BF' ? 10 : 7;
      const lines = content.slice(0, 90).replace(/.{6}/g, '$&\n');
      const text = name.startsWith('T');
      const source = await FileSource.open(
        fileWith(text ? lines : content),
        formatOf({ ...formats[name], recordLength }),
      );
      expect(await source.startAt(number, attempts)).toBeUndefined();
      expect(source.points.last).toBe(0);
      const { articles } = await drain(source);
      expect(articles.join('').replaceAll(' ', '')).toBe(text ? lines.replaceAll('\n', '') : content);
      expect(source.checksum).toBe(sha256(text ? lines : content));
      await source.close();
    }
  });

  test('the last one that was: literal places', async () => {
    const binary = await FileSource.open(fileWith(content), formatOf({ recordLength: 7 }));
    // Two articles of 7 fit into 20: points at 14, 28 … 84; the last 2 bytes fit behind the sixth.
    expect(await binary.startAt(7, [{ from: 0, ...seven }])).toBeUndefined();
    expect(await binary.startAt(6, [{ from: 0, ...seven }])).toEqual({
      number: 6,
      dataBytes: 84,
      articles: 12,
      fileOffset: 84,
    });
    expect(binary.points.offsetOf(6)).toBe(84);
    expect((await drain(binary)).articles.join('|')).toBe('xxxxxxx|xxxxxxx|xx');
    await binary.close();
    const text = await FileSource.open(
      fileWith('aaaa\r\nbbbb\n\ncccc\ndd'),
      formatOf({ text: true, recordLength: 10 }),
    );
    const attempts = [{ from: 0, interval: 5, maxUnsegmentedArticle: 1000 }];
    // An empty line is one blank: 4 + 4 + 1 + 4 bytes of data before the third point.
    expect(await text.startAt(3, attempts)).toEqual({ number: 3, dataBytes: 13, articles: 4, fileOffset: 17 });
    expect((await drain(text)).articles.join('|')).toBe('dd');
    await text.close();
  });
});

test.each(['BU', 'TV'] as const)(
  '%s: back to a point in the middle of an attempt, and from its very end (RESYN)',
  async (name) => {
    const content = Array.from({ length: 500 }, (_, i) => `line ${i}\n`).join('');
    const path = fileWith(content);
    const source = await FileSource.open(path, formatOf({ ...formats[name], recordLength: 20 }));
    const first = await sent(source, start, 2000, 100, Infinity);
    expect(first.more).toBe(false);
    expect(source.checksum).toBe(sha256(content));
    for (const number of [17, 3]) {
      const point = await source.startAt(number, [first.pacing]);
      expect(point).toEqual(first.points.get(number));
      expect(source.checksum).toBeUndefined();
      const again = await sent(source, point!, 2000, 100, Infinity);
      expect(again.bytes).toBe(first.bytes.slice(point!.dataBytes));
      expect(source.checksum).toBe(sha256(content));
      expect(again.points.get(30)).toEqual(first.points.get(30));
    }
    expect(await source.startAt(0, [])).toEqual(start);
    expect((await sent(source, start, 2000, 0, Infinity)).bytes).toBe(first.bytes);
    await source.close();
  },
);

describe('a source that is not the one of the first attempt: 2-215, and why', () => {
  test.each<[string, (path: string) => void, RegExp]>([
    ['longer', (path) => appendFileSync(path, 'x'), /9 bytes then, 10 now/],
    ['shorter', (path) => truncateSync(path, 8), /9 bytes then, 8 now/],
    ['touched', (path) => utimesSync(path, 1, 1), /modified at 1970-01-01T00:00:01.000Z, then at /],
  ])('%s', async (_, change, reason) => {
    const path = fileWith('123456789');
    const first = await FileSource.open(path, formatOf({}));
    const { version } = first;
    await first.close();
    const same = await FileSource.open(path, formatOf({}), { expected: version });
    expect(same.version).toEqual(version);
    await same.close();
    change(path);
    const error = await rejection(FileSource.open(path, formatOf({}), { expected: version }));
    expect(error).toMatchObject({ diagnostic: '2-215', fault: 'local', peerText: expect.stringMatching(reason) });
    expect(error.message).toContain(path);
    expect(error.peerText).not.toContain(path);
  });

  test('cut off while its first part is read for the hash', async () => {
    for (const [text, reason] of [
      [false, /ends before byte/],
      [true, /bytes expected/],
    ] as const) {
      const path = fileWith('123456789\n'.repeat(200_000));
      const source = await FileSource.open(path, formatOf({ text, recordLength: 10 }));
      truncateSync(path, 1_000_000);
      const attempts = [{ from: 0, interval: 100, maxUnsegmentedArticle: 1000 }];
      expect(await rejection(source.startAt(15_000, attempts))).toMatchObject({
        diagnostic: '2-215',
        message: expect.stringMatching(reason),
      });
      await source.close();
    }
  });
});

test.each(names)(
  '%s: a point of an attempt that compressed is not found by counting; one before it is',
  async (name) => {
    const format = formatOf({ ...formats[name], recordLength: 10 });
    const path = fileWith(name.startsWith('T') ? 'nine byte\n'.repeat(100) : 'ten bytes!'.repeat(100));
    const source = await FileSource.open(path, format);
    const plain: Pacing = { from: 0, interval: 50, maxUnsegmentedArticle: 90 };
    expect(await source.startAt(3, [plain])).toMatchObject({ number: 3 });
    expect(await source.startAt(3, [{ ...plain, compression: 0 }])).toMatchObject({ number: 3 });
    expect(await source.startAt(3, [{ ...plain, compression: 1 }])).toBeUndefined();
    expect(await source.startAt(3, [plain, { ...plain, from: 2, compression: 3 }])).toBeUndefined();
    // The attempt that compressed is gone with all its points.
    expect(await source.startAt(3, [{ ...plain, compression: 3 }, plain])).toMatchObject({ number: 3 });
    expect(await source.startAt(0, [{ ...plain, compression: 3 }])).toMatchObject({ number: 0 });
    await source.close();
  },
);
