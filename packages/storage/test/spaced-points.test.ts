import { expect, test } from '@jest/globals';
import type { SyncPoint } from '@pesit-node/protocol';
import { ArticleSender } from '../../protocol/src/sending.js';
import { Recount, pointAmongBlocks } from '../src/pacing.js';
import type { Pacing } from '../src/pacing.js';

const GIB = 2 ** 30;
const KB = 1024;
const LENGTH = 32_000;
const PACING: Pacing = { from: 0, interval: 32 * KB, maxUnsegmentedArticle: 65_529 };

/** Where the sender of the protocol places the next `count` points in a file of blocks, its bytes left out. */
function placed(from: SyncPoint, count: number): Map<number, number> {
  const sender = new ArticleSender({
    ...{ entitySize: 65_535, prefix: 2, crc: false, destination: 1, interval: PACING.interval, window: 1, from },
  });
  const buffer = Buffer.alloc(1_000_000);
  const offsets = new Map<number, number>();
  for (let end = from.dataBytes; offsets.size < count;) {
    sender.begin(buffer);
    const last = sender.lastPoint;
    // A point at most in a burst, so that each is seen.
    for (let more = true; more && sender.lastPoint === last;) {
      more = sender.reserve(LENGTH);
      if (sender.lastPoint !== last) offsets.set(sender.lastPoint, end);
      if (more) end += LENGTH;
    }
    sender.end();
    sender.acknowledge(sender.lastPoint);
  }
  return offsets;
}

test.each<[from: number, fileOffset: number, next: readonly number[]]>([
  // Three quarters of the numbers with one article between them, an eighth with four, a sixteenth with sixteen, then 65 (2 MB).
  [0, 0, [32_000, 64_000]],
  [749_999, 749_999 * 32_000, [32_000, 32_000 + 128_000]],
  [874_999, 750_000 * 32_000 + 124_999 * 128_000, [128_000, 128_000 + 512_000]],
  [937_499, 750_000 * 32_000 + 125_000 * 128_000 + 62_499 * 512_000, [512_000, 512_000 + 65 * 32_000]],
])(
  '100 GiB at 32 KB, behind point %i: found again without a table where the sender has placed them',
  (from, start, next) => {
    const point = (number: number, fileOffset: number) => ({
      ...{ number, dataBytes: fileOffset, articles: fileOffset / LENGTH, fileOffset },
    });
    const expected = next.map((offset, i) => [from + 1 + i, start + offset] as const);
    expect([...placed(point(from, start), next.length)]).toEqual(expected);
    for (const [number, fileOffset] of expected) {
      expect(pointAmongBlocks(number, [PACING], 100 * GIB, () => LENGTH)).toEqual(point(number, fileOffset));
    }
  },
);

test('two attempts, the second at another interval behind the first number that is spaced', () => {
  const attempts: Pacing[] = [PACING, { ...PACING, from: 800_000, interval: 64 * KB }];
  const before = 750_000 * 32_000 + 50_000 * 4 * 32_000;
  // 256 KB take eight articles of 32,000 bytes.
  const fileOffset = before + 1000 * 8 * 32_000;
  expect(pointAmongBlocks(801_000, attempts, 100 * GIB, () => LENGTH)).toMatchObject({ number: 801_000, fileOffset });
});

test('a terabyte at 32 KB has points to its end, 128 MB apart there', () => {
  const offsetOf = (number: number) => pointAmongBlocks(number, [PACING], 1e12, () => 32 * KB)?.fileOffset ?? Infinity;
  expect(offsetOf(995_500) - offsetOf(995_499)).toBe(128 * KB * KB);
  expect(offsetOf(995_500)).toBeGreaterThan(0.9e12);
});

test('text is counted by the same rule', () => {
  const length = 32 * KB;
  const recount = new Recount(750_003, [{ from: 0, interval: length, maxUnsegmentedArticle: 65_529 }]);
  let articles = 0;
  while (recount.reserve(length)) articles += 1;
  // The point before the next article stands behind as many as fit: one each up to 750,000, then four each.
  expect([recount.lastPoint, articles]).toEqual([750_003, 750_000 + 3 * 4]);
});
