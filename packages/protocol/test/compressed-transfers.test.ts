/** Compression (PI 21) through both sessions: negotiation, data both ways, points, and what partners do wrong. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { burstBufferSize } from '../src/index.js';
import type { CompressionMode, CompressionOptions, Dialect, SyncPointOptions } from '../src/index.js';
import {
  articlesOf,
  difference,
  entity,
  fpdu,
  hex,
  minimal,
  prefixed,
  text,
  valueOf,
  Chance,
} from '../src/testing/index.js';
import type { Dissected } from '../src/testing/index.js';
import { Pair, errorOf } from './support/pair.js';
import { connected } from './support/states.js';

const X = 5;
const Y = 9;
const asks = (mode: number, used = true): CompressionOptions => ({ used, mode });

/** Annex A read a second time: one article, byte by byte. */
function plain(compressed: Buffer, previous: readonly number[] | undefined, mode: number): number[] {
  const out: number[] = [];
  for (let at = 0; at < compressed.length;) {
    const header = compressed[at++]!;
    const count = header & 0x3f;
    if (count === 0) throw new Error('empty string');
    for (let i = 0; i < count; i++) {
      if (header < 0x40) out.push(compressed[at + i]!);
      else if (header < 0x80) throw new Error('kind 01');
      else if (header < 0xc0) out.push(compressed[at]!);
      else out.push(previous![out.length]!);
    }
    if (header >= 0xc0 ? mode === 1 : header >= 0x80 && mode === 2) throw new Error(`header ${header} in mode ${mode}`);
    at += header < 0x40 ? count : header < 0xc0 ? 1 : 0;
  }
  return out;
}

interface OnWire {
  readonly articles: Buffer[];
  readonly bytes: number;
  /** Compressed bytes from each point to the next. */
  readonly spans: number[];
  readonly longest: number;
}

/** The data FPDUs of one side, decompressed here; a SYN takes the previous article away. */
function onWire(fpdus: readonly Dissected[], mode: number): OnWire {
  const articles: Buffer[] = [];
  const spans = [0];
  let [previous, open, longest, bytes]: [number[] | undefined, Buffer[], number, number] = [undefined, [], 0, 0];
  const take = (compressed: Buffer): void => {
    previous = plain(compressed, previous, mode);
    articles.push(Buffer.from(previous));
    spans[spans.length - 1]! += compressed.length;
    bytes += compressed.length;
  };
  for (const { name, source, body } of fpdus) {
    if (!name.startsWith('DTF') && name !== 'SYN') continue;
    longest = Math.max(longest, body.length + 6);
    if (name === 'SYN') {
      previous = undefined;
      spans.push(0);
    } else if (name === 'DTF' && source === 0) {
      take(body);
    } else if (name === 'DTF') {
      for (let at = 0; at < body.length; at += 2 + body.readUInt16BE(at))
        take(body.subarray(at + 2, at + 2 + body.readUInt16BE(at)));
    } else if (name !== 'DTF.END') {
      open.push(body);
      if (name === 'DTFFA') {
        take(Buffer.concat(open));
        open = [];
      }
    }
  }
  return { articles, bytes, spans, longest };
}

interface Terms {
  readonly mode?: CompressionMode;
  readonly sync?: SyncPointOptions;
  readonly dialect?: Dialect;
  readonly crc?: boolean;
  readonly maxEntitySize?: number;
  readonly longest?: number;
  readonly reading?: boolean;
}

/** A whole file, either way. @returns what went over the wire and what arrived */
function transfer(articles: readonly Buffer[], terms: Terms): { readonly wire: OnWire; readonly pair: Pair } {
  const { mode = 3, sync, dialect = 'length-prefixed', crc = false, maxEntitySize = 4096, reading = false } = terms;
  const pair = new Pair({ dialect, crc, longest: terms.longest ?? 1 << 20 });
  pair.compression = asks(mode);
  pair.behaviour.compression = asks(3);
  pair.behaviour.answer = { syncPoints: sync };
  pair.connect({ syncPoints: sync });
  if (reading) {
    pair.behaviour.articles = articles;
    pair.readFile({ maxEntitySize });
  } else {
    pair.writeFile(articles, { maxEntitySize });
  }
  const received = reading ? pair.read.articles : pair.lastReceived;
  expect(difference(received, articles)).toBeUndefined();
  const wire = onWire(pair.fpdus(reading ? 'server' : 'requester', crc), mode);
  expect(difference(wire.articles, articles)).toBeUndefined();
  const totals = { dataBytes: wire.bytes, articles: articles.length };
  expect([pair.requester.totals, pair.server.totals]).toEqual([totals, totals]);
  expect(wire.longest + (crc ? 2 : 0)).toBeLessThanOrEqual(maxEntitySize);
  if (sync !== undefined) {
    for (const span of wire.spans) expect(span).toBeLessThanOrEqual(Math.max(sync.intervalKb * 1024, 66_576));
  }
  return { wire, pair };
}

/** Lines with much in common. */
const lines = (count: number, seed = 1): Buffer[] => {
  const chance = new Chance(seed);
  return Array.from({ length: count }, (_, i) =>
    text(
      `${String(i).padStart(8, '0')}  PAYMENT      EUR ${String(chance.below(99_999)).padStart(20, ' ')}${' '.repeat(chance.below(40))}.`,
    ),
  );
};

describe('PI 21', () => {
  test.each([
    // asked, allowed, PI 21 of the answer, what both use
    [undefined, asks(3), undefined, 0],
    [asks(0, false), asks(3), '0000', 0],
    [asks(1), undefined, '0000', 0],
    [asks(1), asks(0, false), '0000', 0],
    [asks(1), asks(1), '0101', 1],
    [asks(2), asks(2), '0102', 2],
    [asks(3), asks(3), '0103', 3],
    [asks(3), asks(1), '0101', 1],
    [asks(3), asks(2), '0102', 2],
    [asks(1), asks(3), '0101', 1],
    [asks(2), asks(3), '0102', 2],
    [asks(1), asks(2), '0000', 0],
    [asks(2), asks(1), '0000', 0],
    [asks(7), asks(3), '0000', 0],
  ])('asked %j, allowed %j: %s', (asked, allowed, answer, mode) => {
    const pair = connected();
    pair.compression = asked;
    pair.behaviour.compression = allowed;
    pair.openForWriting();
    const [orf] = pair.fpdus('requester').filter(({ name }) => name === 'ORF');
    const [ack] = pair.fpdus('server').filter(({ name }) => name === 'ACK(ORF)');
    expect(valueOf(orf!.body, 21)?.toString('hex')).toBe(
      asked && `0${Number(asked.used)}0${asked.used ? asked.mode : 0}`,
    );
    expect(valueOf(ack!.body, 21)?.toString('hex')).toBe(answer);
    expect([pair.requester.compression, pair.server.compression]).toEqual([mode, mode]);
  });

  test.each([
    [asks(3), '0101', 1],
    [asks(3), '0102', 2],
    [asks(1), '0100', 1],
    [asks(2), '0100', 2],
    [asks(3), '0000', 0],
    [asks(3), '0003', 0],
    [undefined, '0000', 0],
    [asks(3), '0100', 'ABORT'],
    [asks(1), '0102', 'ABORT'],
    [asks(1), '0103', 'ABORT'],
    [asks(3), '0104', 'ABORT'],
    [undefined, '0101', 'ABORT'],
  ])('asked %j, answered %s: %s', (asked, answer, expected) => {
    const pair = connected();
    pair.behaviour.ignore = ['ORF'];
    pair.step('ACK(CREATE)', () =>
      pair.requester.create({
        fileIdentifier: { fileType: 0, fileName: 'F' },
        transferId: 1,
        maxEntitySize: 4096,
        recordFormat: 0x80,
        recordLength: 80,
        maxReservationKb: 1,
      }),
    );
    pair.requester.open(asked);
    pair.settle();
    const out = pair.alone('requester', fpdu('ACK(ORF)', X, 0, '0203000000', `1502${answer}`));
    if (expected !== 'ABORT') expect([out, pair.requester.compression]).toEqual([[], expected]);
    else expect(out.map(({ name, body }) => [name, valueOf(body, 2)!.toString('hex')])).toEqual([['ABORT', '03013e']]);
  });

  test('is of one file: the next is plain again', () => {
    const pair = connected();
    [pair.compression, pair.behaviour.compression] = [asks(3), asks(3)];
    pair.writeFile(lines(5));
    [pair.compression, pair.behaviour.compression] = [undefined, asks(3)];
    expect(pair.writeFile([text('aaaaaaaaaaaaaaaa')]).dataBytes).toBe(16);
    expect(difference(pair.lastReceived, [text('aaaaaaaaaaaaaaaa')])).toBeUndefined();
  });
});

describe('the examples of annex A on the wire', () => {
  test.each([
    [1, ['01020202020202 03'], ['0101 8602 0103']],
    [2, ['0102030203050607', '0506030203050809'], ['08 0102030203050607', '02 0506 C4 02 0809']],
    [3, ['010101010203', '010101010204'], ['8401 02 0203', 'C5 01 04']],
  ] as const)('mode %i', (mode, articles, compressed) => {
    const pair = connected();
    [pair.compression, pair.behaviour.compression] = [asks(mode), asks(3)];
    pair.writeFile(articles.map(hex));
    const [dtf] = pair.fpdus('requester').filter(({ name }) => name === 'DTF');
    expect(dtf!.body).toEqual(compressed.length === 1 ? hex(compressed[0]) : prefixed(...compressed.map(hex)));
    expect(difference(pair.lastReceived, articles.map(hex))).toBeUndefined();
    expect(pair.server.totals).toEqual({ dataBytes: hex(compressed.join('')).length, articles: articles.length });
  });
});

describe('files', () => {
  test('lines shrink, with points by compressed bytes, each way', () => {
    const articles = lines(3000);
    const size = articles.reduce((sum, { length }) => sum + length, 0);
    for (const reading of [false, true]) {
      const { wire } = transfer(articles, { sync: { intervalKb: 4, window: 3 }, reading });
      expect(wire.bytes).toBeLessThan(size / 2);
      // All but the last reach seven eighths of the interval, less one article.
      for (const span of wire.spans.slice(0, -1)) expect(span).toBeGreaterThan((4096 * 7) / 8 - 200);
    }
  });

  test.each([1, 2, 3] as const)('random bytes grow by one in 63 at most, at every limit, mode %i', (mode) => {
    const articles = articlesOf([65_535, 4090, 4089, 4026, 4025, 64, 63, 62, 1, 65_535]);
    const { wire } = transfer(articles, { mode, sync: { intervalKb: 32, window: 1 } });
    const size = articles.reduce((sum, { length }) => sum + length, 0);
    expect(wire.bytes).toBeLessThanOrEqual(
      size + articles.reduce((sum, { length }) => sum + Math.ceil(length / 63), 0),
    );
  });

  test('an article that was unsegmented stays so when it cannot be compressed', () => {
    const pair = connected();
    [pair.compression, pair.behaviour.compression] = [asks(3), asks(3)];
    pair.openForWriting();
    pair.requester.startSending({ number: 0, dataBytes: 0, articles: 0 });
    const { maxUnsegmentedArticle } = pair.requester.beginBurst(Buffer.alloc(burstBufferSize(4096, 0)));
    pair.requester.endBurst();
    pair.send(articlesOf([maxUnsegmentedArticle]));
    const names = pair.fpdus('requester').map(({ name }) => name);
    expect(names.slice(-1)).toEqual(['DTF']);
  });

  test('any articles, either way, whatever the terms', () => {
    const article = fc.oneof(
      fc.array(fc.constantFrom(0, 0x20, 0x40, 0xff), { minLength: 1, maxLength: 200 }).map((a) => Buffer.from(a)),
      fc.tuple(fc.integer({ min: 1, max: 9000 }), fc.nat(3)).map(([length, byte]) => Buffer.alloc(length, byte)),
      fc.tuple(fc.integer({ min: 1, max: 3000 }), fc.nat(99)).map(([length, seed]) => new Chance(seed).bytes(length)),
    );
    const terms = fc.record({
      mode: fc.constantFrom<CompressionMode>(1, 2, 3),
      sync: fc.constantFrom(
        { intervalKb: 0, window: 0 },
        { intervalKb: 1, window: 0 },
        { intervalKb: 1, window: 1 },
        { intervalKb: 8, window: 4 },
      ),
      dialect: fc.constantFrom<Dialect>('raw', 'length-prefixed'),
      crc: fc.boolean(),
      maxEntitySize: fc.constantFrom(64, 500, 4096, 65_535),
      longest: fc.constantFrom(50, 5000, 1 << 20),
      reading: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(article, { maxLength: 40 }), terms, (articles, chosen) => {
        const { sync, ...rest } = chosen;
        transfer(articles, sync.intervalKb === 0 ? rest : { ...rest, sync });
      }),
      { numRuns: 60 },
    );
  });
});

describe('what partners do wrong', () => {
  function receiving(recordLength = 100): Pair {
    const pair = connected();
    [pair.compression, pair.behaviour.compression] = [asks(3), asks(3)];
    pair.openForWriting({ recordLength });
    return pair;
  }
  const answers = (out: readonly Dissected[]): string[][] =>
    out.map(({ name, body }) => [name, valueOf(body, 2)?.toString('hex') ?? '']);

  test.each([
    ['an illegal kind', ['4101']],
    ['a string of no bytes', ['00']],
    ['a literal that ends early', ['0301']],
    ['a vertical string in the first article', ['c1']],
    ['a vertical string after a point', ['0101', 'SYN', 'c1']],
  ])('%s: ABORT 3-318', (_, steps) => {
    const pair = receiving();
    const fpdus = steps.map((step) => (step === 'SYN' ? fpdu('SYN', Y, 0, '140101') : fpdu('DTF', Y, 0, step)));
    const out = pair.alone('server', ...fpdus).filter(({ name }) => name !== 'ACK(SYN)');
    expect(answers(out)).toEqual([['ABORT', '03013e']]);
    expect(errorOf(pair.serverEvents, 'ENDED')!.message).toContain('compressed article');
  });

  test('an article that becomes longer than PI 32: IDT 2-220, in any form', () => {
    const long = hex('bf00 bf00');
    for (const bad of [
      [fpdu('DTF', Y, 0, long)],
      [fpdu('DTF', Y, 2, prefixed(hex('0101'), long))],
      [fpdu('DTFDA', Y, 0, 'bf'), fpdu('DTFFA', Y, 0, '00bf00')],
      // More compressed bytes than any article of PI 32 can have.
      [fpdu('DTFDA', Y, 0, hex('0101'.repeat(60))), fpdu('DTFMA', Y, 0, hex('0101'.repeat(60)))],
    ]) {
      expect(answers(receiving().alone('server', ...bad))).toEqual([['IDT', '0200dc']]);
    }
  });

  test('strings of one byte, in as many segments, are taken', () => {
    const pair = receiving();
    const article = [...Array(98).keys()].map((i) => fpdu('DTFMA', Y, 0, Buffer.from([1, i])));
    pair.alone('server', fpdu('DTFDA', Y, 0, '01fe'), ...article, fpdu('DTFFA', Y, 0, '01ff'));
    expect(difference(pair.lastReceived, [Buffer.from([0xfe, ...Array(98).keys(), 0xff])])).toBeUndefined();
    expect(pair.server.totals).toEqual({ dataBytes: 200, articles: 1 });
  });

  test('an empty compressed article is an empty article', () => {
    const pair = receiving();
    pair.alone('server', fpdu('DTF', Y, 2, prefixed(hex(''), hex('0141'))));
    expect(pair.lastReceived.map(String)).toEqual(['', 'A']);
  });
});

describe('a little that becomes much', () => {
  /** 100 strings of one byte each, 63 times the byte before. */
  const bomb = (): Buffer[] => {
    const first = fpdu('DTF', Y, 0, 'bf00'.repeat(900));
    return [first, ...Array<Buffer>(300).fill(fpdu('DTF', Y, 0, Buffer.alloc(900, 0xff)))];
  };

  test('goes out in batches, each taken apart when the one before it was taken', () => {
    const pair = connected();
    [pair.compression, pair.behaviour.compression] = [asks(3), asks(3)];
    pair.openForWriting({ recordLength: 60_000 });
    const { server } = pair;
    const bytes = Buffer.concat(bomb().map((one) => entity(one)));
    server.receive(bytes, pair.now);
    const sizes: number[] = [];
    for (let event = server.nextEvent(); event !== undefined; event = server.nextEvent()) {
      if (event.kind !== 'ARTICLES') continue;
      sizes.push(event.batch.bytes);
      if (sizes.length > 1) continue;
      // Held: nothing more is taken apart, whoever asks.
      server.setHeld(true);
      const { dataBytes } = server.totals;
      expect(server.nextEvent()).toBeUndefined();
      expect(server.nextEvent()).toBeUndefined();
      expect(server.totals.dataBytes).toBe(dataBytes);
      server.setHeld(false);
    }
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(301 * 900 * 63);
    expect(sizes.length).toBeGreaterThan(25);
    expect(Math.max(...sizes)).toBeLessThan(640 * 1024);
    expect(server.totals).toEqual({ dataBytes: 1800 + 300 * 900, articles: 301 });
  });

  test('what ends the session behind it is seen when its turn comes', () => {
    const pair = connected();
    [pair.compression, pair.behaviour.compression] = [asks(3), asks(3)];
    pair.openForWriting({ recordLength: 60_000 });
    const { server } = pair;
    server.receive(Buffer.concat([...bomb(), minimal('ABORT', Y, X)].map((one) => entity(one))), pair.now);
    server.setHeld(true);
    expect(server.nextEvent()?.kind).toBe('ARTICLES');
    expect([server.nextEvent(), server.phase]).toEqual([undefined, 'open']);
    server.setHeld(false);
    const kinds: string[] = [];
    for (let event = server.nextEvent(); event !== undefined; event = server.nextEvent()) kinds.push(event.kind);
    expect([kinds.at(-1), server.phase]).toEqual(['ENDED', 'closing']);
  });
});
