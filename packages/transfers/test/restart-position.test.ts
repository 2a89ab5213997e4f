import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { FileSource, formatOf } from '@pesit-node/storage';
import type { Pacing } from '@pesit-node/storage';
import { delayAfter, goToPoint, hasCompressed, pacingsWith, pointToWrite, SentPoints } from '@pesit-node/transfers';

describe('how the attempts placed their points', () => {
  const first = { from: 0, interval: 4096, maxUnsegmentedArticle: 1000 };
  const other = { ...first, maxUnsegmentedArticle: 500 };

  test('an attempt that goes on as the one before adds nothing', () => {
    const known = [first];
    expect(pacingsWith(known, { ...first, from: 7 })).toBe(known);
    expect(pacingsWith(known, first)).toBe(known);
    expect(pacingsWith([], first)).toEqual([first]);
  });

  test('what was placed behind the start of an attempt is gone', () => {
    const second = { ...other, from: 5 };
    expect(pacingsWith([first], second)).toEqual([first, second]);
    expect(pacingsWith([first, second], { ...other, from: 3 })).toEqual([first, { ...other, from: 3 }]);
    expect(pacingsWith([first, second], { ...first, from: 3 })).toEqual([first]);
    expect(pacingsWith([first, second], other)).toEqual([other]);
    expect(pacingsWith([first], { ...first, from: 5, compression: 3 })).toEqual([
      first,
      { ...first, from: 5, compression: 3 },
    ]);
  });
});

describe('the place of a point', () => {
  const counted: Pacing = { from: 0, interval: 100, maxUnsegmentedArticle: 10 };
  const compressed: Pacing = { ...counted, compression: 1 };
  const never = () => Promise.reject(new Error('asked for a point that nobody has written down'));
  let directory: string;
  let source: FileSource;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-position-'));
    const path = join(directory, 'source');
    await writeFile(path, Buffer.alloc(1000, 'x'));
    source = await FileSource.open(path, formatOf({ recordFormat: 0, recordLength: 10 }), { checksum: 'none' });
  });

  afterEach(async () => {
    await source.close();
    await rm(directory, { recursive: true, force: true });
  });

  test('is counted where no attempt has compressed', async () => {
    const place = { number: 3, fileOffset: 300, dataBytes: 300, articles: 30 };
    expect(await goToPoint(source, 3, [counted], never)).toEqual(place);
  });

  test('is unknown when only attempts from behind it are', async () => {
    expect(await goToPoint(source, 3, [{ ...counted, from: 3 }], never)).toBeUndefined();
    expect(await goToPoint(source, 3, [], never)).toBeUndefined();
  });

  test('is what was written down of it where one has compressed, and then known to the next', async () => {
    const point = { number: 3, fileOffset: 420, dataBytes: 77, articles: 42 };
    const written = (number: number) => Promise.resolve(number === 3 ? point : undefined);
    expect(await goToPoint(source, 3, [compressed], written)).toEqual(point);
    expect(pointToWrite(source, 3, { dataBytes: 77, articles: 42 })).toEqual(point);
    expect(pointToWrite(source, 9, { dataBytes: 77, articles: 42 })).toBeUndefined();
  });

  test('of attempts of which one has compressed, by their compression', () => {
    expect(hasCompressed([counted, compressed])).toBe(true);
    expect(hasCompressed([counted, { ...counted, compression: 0 }])).toBe(false);
  });
});

describe('the points of a compressed file', () => {
  let directory: string;
  const point = (number: number) => ({
    number,
    fileOffset: number * 1000,
    dataBytes: number * 100,
    articles: number * 10,
  });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-sent-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  test('are found by another process, a line that was cut off is not', async () => {
    const path = join(directory, 'new/x.sent');
    const points = new SentPoints(path);
    for (const number of [1, 2, 3]) await points.add(point(number));
    await appendFile(path, '4 4000 4');
    const later = new SentPoints(path);
    expect(await later.find(3)).toEqual(point(3));
    expect(await later.find(4)).toBeUndefined();
    await later.forgetAfter(3);
    await later.add(point(4));
    expect(await later.find(4)).toEqual(point(4));
    await later.forgetAfter(2);
    expect(await readFile(path, 'latin1')).toBe('1 1000 100 10\n2 2000 200 20\n');
    await later.add({ ...point(3), fileOffset: 2500 });
    expect(await later.find(3)).toEqual({ ...point(3), fileOffset: 2500 });
    await later.remove();
    expect(await new SentPoints(path).find(1)).toBeUndefined();
  });
});

describe('the delay before another attempt', () => {
  test('the delay grows, is bounded, and moves by the jitter', () => {
    const policy = { attempts: 9, initialDelay: 1000, maxDelay: 20_000, multiplier: 3, jitter: 0.2 };
    expect([1, 2, 3, 4, 50].map((count) => delayAfter(count, policy, 0.5))).toEqual([1000, 3000, 9000, 20_000, 20_000]);
    expect([0, 1].map((random) => delayAfter(1, policy, random))).toEqual([800, 1200]);
    const many = Array.from({ length: 200 }, () => delayAfter(1, policy));
    expect(Math.min(...many)).toBeGreaterThanOrEqual(800);
    expect(Math.max(...many)).toBeLessThanOrEqual(1200);
    expect(new Set(many).size).toBeGreaterThan(50);
  });
});
