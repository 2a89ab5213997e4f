/** Articles to data FPDUs: layout, sync points, window, bursts; read back with the independent builder. */
import { describe, expect, test } from '@jest/globals';
import { MAX_SYNC_POINT, burstBufferSize } from '../src/index.js';
import type { SyncPoint } from '../src/index.js';
import { ArticleSender } from '../src/sending.js';
import type { ArticleSenderOptions } from '../src/sending.js';
import { START, articlesOf, difference, fill, dissect } from '../src/testing/index.js';
import type { Dissected } from '../src/testing/index.js';
import { expectedPoints, lengthsOf } from './support/points.js';

const OPTIONS: ArticleSenderOptions = {
  entitySize: 4096,
  prefix: 2,
  crc: false,
  destination: 7,
  interval: 0,
  window: 0,
  from: START,
};

interface Sent {
  readonly fpdus: Dissected[];
  readonly sender: ArticleSender;
  readonly points: SyncPoint[];
}

/** Sends everything, acknowledging each point as soon as the window is full. */
function send(articles: readonly Buffer[], options: Partial<ArticleSenderOptions> = {}, bufferSize = 0): Sent {
  const all = { ...OPTIONS, ...options };
  const sender = new ArticleSender(all);
  const fpdus: Dissected[] = [];
  const points: SyncPoint[] = [];
  const buffer = Buffer.alloc(burstBufferSize(all.entitySize, bufferSize));
  let next = 0;
  let idle = 0;
  while (next < articles.length) {
    const before = sender.lastPoint;
    sender.begin(buffer);
    const at = fill(sender, articles, next);
    if (sender.blocked) {
      const point = sender.acknowledge(before);
      if (point !== undefined && point !== 'known') points.push(point);
    }
    const bytes = Buffer.from(sender.end());
    idle = at === next ? idle + 1 : 0;
    if (idle > 1) throw new Error('the sender takes nothing and does not say why');
    next = at;
    fpdus.push(...dissect(bytes, all.prefix === 2 ? 'length-prefixed' : 'raw', all.crc));
  }
  const last = sender.acknowledge(sender.lastPoint);
  if (last !== undefined && last !== 'known') points.push(last);
  return { fpdus, sender, points };
}

/** The articles in data FPDUs, as pesit-e.md §6 reads them. */
function articlesIn(fpdus: readonly Dissected[]): Buffer[] {
  const articles: Buffer[] = [];
  let open: Buffer[] | undefined;
  for (const { name, source, body } of fpdus) {
    if (name === 'DTF' && source === 0) articles.push(body);
    else if (name === 'DTF') {
      let offset = 0;
      for (let i = 0; i < source; i++) {
        const end = offset + 2 + body.readUInt16BE(offset);
        articles.push(body.subarray(offset + 2, end));
        offset = end;
      }
      expect(offset).toBe(body.length);
    } else if (name !== 'SYN') {
      if (name === 'DTFDA') open = [];
      open!.push(body);
      if (name === 'DTFFA') articles.push(Buffer.concat(open!));
    }
  }
  return articles;
}

const shape = (fpdus: readonly Dissected[]): string[] =>
  fpdus.map(({ name, source, body }) => `${name}/${source}/${body.length}`);

/** What leaves, entity by entity, in hex. */
function entities(articles: readonly Buffer[], options: Partial<ArticleSenderOptions>, last = true): string[] {
  const sender = new ArticleSender({ ...OPTIONS, ...options });
  sender.begin(Buffer.alloc(burstBufferSize(sender.maxUnsegmentedArticle + 8, 0)));
  expect(fill(sender, articles, 0)).toBe(articles.length);
  const bytes = Buffer.from(sender.end(last));
  const found: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = at + 2 + bytes.readUInt16BE(at);
    found.push(bytes.toString('hex', at, end));
    at = end;
  }
  return found;
}

const packed = (hex: string): string => hex.replaceAll(' ', '');
const letters = (...texts: readonly string[]): Buffer[] => texts.map((one) => Buffer.from(one));

describe('FPDUs that share an entity (§4.5)', () => {
  test.each([
    ['DTF and DTF.END', ['AAA'], {}, ['0014 0009 0000 0700 414141 000bc0040700 0203000000']],
    ['DTF.END alone', [], {}, ['000b 000bc0040700 0203000000']],
    [
      'a DTF of several articles and DTF.END',
      ['AA', 'BB', 'C'],
      {},
      ['001c 0011 0000 0703 0002 4141 0002 4242 0001 43 000bc0040700 0203000000'],
    ],
    [
      'DTF, SYN, DTF, DTF.END',
      ['AAA', 'BB'],
      { interval: 4 },
      ['0025 0009 0000 0700 414141 0009c0030700 140101 0008 0000 0700 4242 000bc0040700 0203000000'],
    ],
    [
      'DTFs of one article each, for a peer that takes no more',
      ['AAA', 'BB', 'C'],
      { multiArticle: false },
      ['0023 0009 0000 0700 414141 0008 0000 0700 4242 0007 0000 0700 43 000bc0040700 0203000000'],
    ],
    [
      'the end of a segmented article, and what follows',
      ['A'.repeat(20), 'BB'],
      { entitySize: 24 },
      [
        `0018 0018 0041 0700 ${'41'.repeat(18)}`,
        '0010 0008 0042 0700 4141 0008 0000 0700 4242',
        '000b 000bc0040700 0203000000',
      ],
    ],
  ] as const)('%s', (_, texts, options, expected) => {
    expect(entities(letters(...texts), options)).toEqual(expected.map(packed));
  });

  test('an entity is filled to its last byte and no further', () => {
    const [one, end] = ['0009 0000 0700 414141', '000bc0040700 0203000000'];
    expect(entities(letters('AAA'), { entitySize: 20 })).toEqual([packed(`0014 ${one} ${end}`)]);
    expect(entities(letters('AAA'), { entitySize: 19 })).toEqual([packed(`0009 ${one}`), packed(`000b ${end}`)]);
  });

  test('a peer that takes one FPDU in each', () => {
    const options = { concatenation: false, interval: 4 };
    expect(entities(letters('AAA', 'BB'), options)).toEqual(
      [
        '0009 0009 0000 0700 414141',
        '0009 0009c0030700 140101',
        '0008 0008 0000 0700 4242',
        '000b 000bc0040700 0203000000',
      ].map(packed),
    );
  });

  test('with CRC every FPDU has its own', () => {
    const lengths = entities(letters('AAA', 'BB'), { crc: true, interval: 4 }).map((one) => one.slice(0, 12));
    expect(lengths).toEqual(['000b00090000', '000b0009c003', '000a00080000', '000d000bc004']);
  });

  test('255 articles in a DTF, and the next DTF in the same entity', () => {
    const [first, ...more] = entities(
      Array.from({ length: 300 }, () => Buffer.from('x')),
      { entitySize: 1024 },
    );
    expect(more).toEqual([]);
    // 255 × 3 + 6, then 45 × 3 + 6, then DTF.END.
    expect(first!.slice(0, 16)).toBe(packed('039b 0303 0000 07ff'));
    expect(first!.slice(2 * (2 + 0x303)).slice(0, 12)).toBe(packed('008d 0000 072d'));
  });

  test('a burst that is not the last ends its entity', () => {
    expect(entities(letters('AAA'), {}, false)).toEqual([packed('0009 0009 0000 0700 414141')]);
    expect(entities([], {}, false)).toEqual([]);
  });

  test('raw: the same FPDUs, with nothing between them', () => {
    const sender = new ArticleSender({ ...OPTIONS, prefix: 0, interval: 4 });
    sender.begin(Buffer.alloc(burstBufferSize(4096, 0)));
    fill(sender, letters('AAA', 'BB'), 0);
    expect(sender.end(true).toString('hex')).toBe(
      packed('0009 0000 0700 414141 0009c0030700 140101 0008 0000 0700 4242 000bc0040700 0203000000'),
    );
  });
});

describe('a peer that takes one article in each DTF', () => {
  test('short articles travel alone, with the same points; those beyond the entity still in segments', () => {
    const articles = [80, 80, 1, 80, 5000, 80].map((length, i) => Buffer.alloc(length, i + 1));
    const { fpdus, points } = send(articles, { multiArticle: false, interval: 200, window: 2 });
    expect(fpdus.map(({ name, source }) => `${name} ${source}`)).toEqual([
      'DTF 0',
      'DTF 0',
      'DTF 0',
      'SYN 0',
      'DTF 0',
      'SYN 0',
      'DTFDA 0',
      'DTFFA 0',
      'SYN 0',
      'DTF 0',
    ]);
    expect(articlesIn(fpdus)).toEqual(articles);
    expect(points).toEqual(send(articles, { interval: 200, window: 2 }).points);
  });
});

describe('layout', () => {
  test('one article that fills the entity is a plain DTF', () => {
    expect(shape(send(articlesOf([4090, 4090])).fpdus)).toEqual(['DTF/0/4090', 'DTF/0/4090']);
  });

  test('one byte more is segmented, without prefixes', () => {
    expect(shape(send(articlesOf([4091])).fpdus)).toEqual(['DTFDA/0/4090', 'DTFFA/0/1']);
    expect(shape(send(articlesOf([10_000])).fpdus)).toEqual(['DTFDA/0/4090', 'DTFMA/0/4090', 'DTFFA/0/1820']);
  });

  test('articles that fit together travel together, a single one never with ID.SRC = 1', () => {
    expect(shape(send(articlesOf([10, 20, 30])).fpdus)).toEqual(['DTF/3/66']);
    expect(shape(send(articlesOf([10])).fpdus)).toEqual(['DTF/0/10']);
    expect(shape(send(articlesOf([10, 4090, 10])).fpdus)).toEqual(['DTF/0/10', 'DTF/0/4090', 'DTF/0/10']);
    expect(shape(send(articlesOf([10, 5000, 10, 10])).fpdus)).toEqual([
      'DTF/0/10',
      'DTFDA/0/4090',
      'DTFFA/0/910',
      'DTF/2/24',
    ]);
  });

  test('an entity is filled to its last byte and no further', () => {
    expect(shape(send(articlesOf([2043, 2043])).fpdus)).toEqual(['DTF/2/4090']);
    expect(shape(send(articlesOf([2043, 2044])).fpdus)).toEqual(['DTF/0/2043', 'DTF/0/2044']);
  });

  test('no more than 255 articles in one DTF', () => {
    expect(shape(send(articlesOf(Array<number>(600).fill(1))).fpdus)).toEqual([
      'DTF/255/765',
      'DTF/255/765',
      'DTF/90/270',
    ]);
  });

  test.each([
    [2, false],
    [0, false],
    [2, true],
    [0, true],
  ])('prefix %i, CRC %s: nothing is longer than PI 25, everything arrives', (prefix, crc) => {
    const lengths = [1, 64, 50, 51, 52, 56, 57, 58, 59, 3, 3, 3, 1000, 1, 120, 20, 20, 20, 65_535, 7, 64, 64];
    const articles = articlesOf(lengths);
    const { fpdus, sender } = send(articles, { entitySize: 64, prefix, crc });
    expect(difference(articlesIn(fpdus), articles)).toBeUndefined();
    const longest = Math.max(...fpdus.map(({ body }) => body.length + 6 + (crc ? 2 : 0)));
    expect(longest).toBe(64);
    expect(sender).toMatchObject({ dataBytes: lengths.reduce((a, b) => a + b), articles: lengths.length });
    expect(fpdus.every(({ destination }) => destination === 7)).toBe(true);
    expect(fpdus.every(({ source }) => source !== 1)).toBe(true);
  });

  test('small bursts carry the same as large ones', () => {
    const articles = articlesOf(Array.from({ length: 500 }, (_, i) => 1 + ((i * 37) % 400)));
    const one = send(articles, { interval: 3000, window: 3 }, 1 << 20);
    const many = send(articles, { interval: 3000, window: 3 }, 0);
    expect(difference(articlesIn(one.fpdus), articlesIn(many.fpdus))).toBeUndefined();
  });

  test('an article alone in its burst is at its place even when it was filled before the burst ended', () => {
    const sender = new ArticleSender(OPTIONS);
    sender.begin(Buffer.alloc(burstBufferSize(4096, 0)));
    expect(sender.reserve(5)).toBe(true);
    sender.slots[0]!.write('early');
    expect(dissect(sender.end(), 'length-prefixed')).toMatchObject([{ source: 0, body: Buffer.from('early') }]);
    expect(sender.slots[0]!.toString()).toBe('early');
  });

  test('an empty burst is no bytes', () => {
    const sender = new ArticleSender(OPTIONS);
    sender.begin(Buffer.alloc(burstBufferSize(4096, 0)));
    expect(sender.end()).toHaveLength(0);
  });

  test('an empty article does not exist on the wire', () => {
    const sender = new ArticleSender(OPTIONS);
    sender.begin(Buffer.alloc(burstBufferSize(4096, 0)));
    expect(() => sender.reserve(0)).toThrow(RangeError);
    expect(() => sender.reserve(65_536)).toThrow(RangeError);
  });

  test.each([64, 65, 100, 800, 4096, 65_535])(
    'a burst for entities of %i bytes takes the longest article',
    (entitySize) => {
      for (const crc of [false, true]) {
        const articles = articlesOf([65_535, 1, 65_535]);
        const { fpdus } = send(articles, { entitySize, crc, interval: 1024, window: 0 });
        expect(difference(articlesIn(fpdus), articles)).toBeUndefined();
      }
    },
  );
});

describe('sync points', () => {
  const lengths = Array.from({ length: 300 }, (_, i) => 1 + ((i * 7919) % 5000));

  test.each([1024, 4096, 10_000, 32_768, 1_000_000])('every %i bytes at most, between articles', (interval) => {
    const articles = articlesOf(lengths);
    const { fpdus, sender } = send(articles, { interval });
    const points: SyncPoint[] = [];
    let [dataBytes, count, since] = [0, 0, 0];
    /** Stretches between two points that exceed the interval. */
    const alone = new Set<number>();
    for (const one of fpdus) {
      if (one.name === 'SYN') {
        points.push({ number: one.body.readUIntBE(2, one.body.length - 2), dataBytes, articles: count });
        since = 0;
        continue;
      }
      const carried = one.name === 'DTF' && one.source > 1 ? one.body.length - 2 * one.source : one.body.length;
      dataBytes += carried;
      since += carried;
      if (since > interval) alone.add(points.length);
      count += one.name === 'DTF' ? Math.max(1, one.source) : one.name === 'DTFFA' ? 1 : 0;
    }
    expect(points).toEqual(expectedPoints(lengths, interval, START));
    const bounds = [START, ...points, { articles: sender.articles }];
    for (const stretch of alone) expect(bounds[stretch + 1]!.articles - bounds[stretch]!.articles).toBe(1);
    expect(sender.lastPoint).toBe(points.length);
    expect(fpdus.at(-1)!.name).not.toBe('SYN');
    expect(difference(articlesIn(fpdus), articles)).toBeUndefined();
  });

  test('an article longer than the interval has a point before it and one after', () => {
    expect(shape(send(articlesOf([10, 3000, 10]), { interval: 1024 }).fpdus)).toEqual([
      'DTF/0/10',
      'SYN/0/3',
      'DTF/0/3000',
      'SYN/0/3',
      'DTF/0/10',
    ]);
  });

  test('none at the very start, none at the end, none when the interval is met exactly', () => {
    expect(shape(send(articlesOf([1024]), { interval: 1024 }).fpdus)).toEqual(['DTF/0/1024']);
    expect(shape(send(articlesOf([512, 512]), { interval: 1024 }).fpdus)).toEqual(['DTF/2/1028']);
    expect(shape(send(articlesOf([2000]), { interval: 1024 }).fpdus)).toEqual(['DTF/0/2000']);
  });

  test('a restart goes on with the number and the totals of its point', () => {
    const from: SyncPoint = { number: 41, dataBytes: 100_000, articles: 200 };
    const { points, sender } = send(articlesOf(lengths), { interval: 10_000, window: 1, from });
    expect(points).toEqual(expectedPoints(lengths, 10_000, from));
    expect(sender.articles).toBe(500);
  });

  test.each([
    // Up to this number the interval holds; from it on four times as much lies between two points, then sixteen times.
    [749_998, [1, 1, 4, 4]],
    [874_998, [4, 4, 16]],
    [937_499, [16, 64]],
  ])('behind point %i the interval grows: %j times the bytes', (number, growth) => {
    const from: SyncPoint = { number, dataBytes: 0, articles: 0 };
    const { points } = send(articlesOf(Array<number>(growth.reduce((sum, each) => sum + each, 0) + 1).fill(1024)), {
      interval: 1024,
      window: 1,
      from,
    });
    let articles = 0;
    const expected = growth.map((each, i) => {
      articles += each;
      return { number: number + 1 + i, dataBytes: articles * 1024, articles };
    });
    expect(points).toEqual(expected);
  });

  test('points are left out from the last number on', () => {
    // 4 ** 17 is what is left of an interval of 4 ** -17 KB.
    const from: SyncPoint = { number: MAX_SYNC_POINT - 1, dataBytes: 0, articles: 0 };
    const { fpdus, sender } = send(articlesOf([1024, 1024, 1024, 1024, 1024]), { interval: 1024 / 4 ** 17, from });
    expect(fpdus.filter(({ name }) => name === 'SYN').map(({ body }) => body.toString('hex'))).toEqual(['14030f423f']);
    expect(sender.lastPoint).toBe(999_999);
  });
});

describe('window', () => {
  const begin = (sender: ArticleSender): ArticleSender => {
    sender.begin(Buffer.alloc(burstBufferSize(4096, 100_000)));
    return sender;
  };

  test.each([
    [1, 1000],
    [1, 1024],
    [2, 700],
    [3, 333],
    [255, 999],
  ])('of %i closes behind its last point, before an article of %i bytes, and says so (§3.7 f)', (window, length) => {
    const sender = begin(new ArticleSender({ ...OPTIONS, interval: 1024, window }));
    const buffer = Buffer.alloc(burstBufferSize(4096, 600_000));
    sender.begin(buffer);
    const perPoint = Math.floor(1024 / length);
    let taken = 0;
    expect(sender.blocked).toBe(false);
    while (sender.reserve(length)) taken++;
    expect(taken).toBe(window * perPoint);
    expect(sender).toMatchObject({ lastPoint: window, unacknowledged: window, blocked: false });
    sender.end();

    // The next burst is laid out up to its point, and waits for the window.
    sender.begin(buffer);
    taken = 0;
    while (sender.reserve(length)) taken++;
    expect(taken).toBe(perPoint);
    expect(sender).toMatchObject({ lastPoint: window + 1, unacknowledged: window + 1, blocked: true });
    expect(sender.acknowledge(window + 1)).toBeUndefined();
    expect(sender.acknowledge(1)).toEqual({ number: 1, dataBytes: perPoint * length, articles: perPoint });
    expect(sender).toMatchObject({ unacknowledged: window, blocked: false });
    sender.end();
    sender.begin(buffer);
    expect([sender.reserve(length), sender.blocked]).toEqual([true, true]);
  });

  test('one acknowledgement stands for all points before it', () => {
    const sender = begin(new ArticleSender({ ...OPTIONS, interval: 1024, window: 4 }));
    while (sender.reserve(1024));
    expect(sender.acknowledge(3)).toBeUndefined();
    sender.end();
    expect(sender.acknowledge(3)).toEqual({ number: 3, dataBytes: 3072, articles: 3 });
    expect(sender.unacknowledged).toBe(1);
  });

  test('an acknowledgement that says nothing new is known, one of the future is not taken', () => {
    const sender = begin(new ArticleSender({ ...OPTIONS, interval: 1024, window: 4 }));
    while (sender.reserve(1024));
    sender.end();
    sender.acknowledge(2);
    expect([sender.acknowledge(2), sender.acknowledge(1)]).toEqual(['known', 'known']);
    expect([sender.acknowledge(5), sender.acknowledge(0)]).toEqual([undefined, undefined]);
    expect(sender.unacknowledged).toBe(2);
  });

  test('of 0 never closes, and remembers no points', () => {
    const sender = begin(new ArticleSender({ ...OPTIONS, interval: 1024, window: 0 }));
    for (let i = 0; i < 50; i++) expect(sender.reserve(1024)).toBe(true);
    expect(sender).toMatchObject({ lastPoint: 49, unacknowledged: 0, blocked: false });
    sender.end();
    expect(sender.acknowledge(3)).toBe('known');
  });
});

test('lengths of the helper are those of the articles', () => {
  expect(lengthsOf(articlesOf([1, 2, 3]))).toEqual([1, 2, 3]);
});
