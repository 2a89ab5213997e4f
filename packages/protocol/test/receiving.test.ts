/** Data FPDUs to articles: the forms of §4.4.20 and of the field, and what is wrong with them. */
import { describe, expect, test } from '@jest/globals';
import { FpduReader, PesitError } from '../src/index.js';
import type { SingleArticleStyle } from '../src/index.js';
import { ArticleReceiver } from '../src/receiving.js';
import { Collector, START, difference, fpdu, hex, prefixed, text, Chance } from '../src/testing/index.js';

interface Received {
  readonly articles: string[];
  readonly receiver: ArticleReceiver;
}

interface ReceiveOptions {
  readonly maxArticle?: number;
  readonly style?: SingleArticleStyle;
  readonly longest?: number;
}

/** Receives FPDUs given in pieces of at most `longest` bytes. */
function receive(
  fpdus: readonly Buffer[],
  { maxArticle = 65_535, style = 'unknown', longest = 1 << 20 }: ReceiveOptions = {},
): Received {
  const receiver = new ArticleReceiver(style);
  receiver.start(maxArticle, START.dataBytes, START.articles);
  const reader = new FpduReader('raw', false);
  const collector = new Collector();
  for (const piece of new Chance(longest).split(Buffer.concat(fpdus), longest)) {
    reader.push(Buffer.from(piece));
    for (let raw = reader.next(); raw !== undefined; raw = reader.next()) receiver.receive(raw);
    const batch = receiver.take();
    if (batch !== undefined) collector.add(batch);
  }
  expect(collector.open > 0).toBe(receiver.insideArticle);
  return { articles: collector.articles.map((article) => article.toString('latin1')), receiver };
}

function failure(fpdus: readonly Buffer[], options: ReceiveOptions = {}): PesitError {
  try {
    receive(fpdus, options);
  } catch (error) {
    if (error instanceof PesitError) return error;
    throw error;
  }
  throw new Error('expected a PesitError, got none');
}

const dtf = (source: number, body: Buffer): Buffer => fpdu('DTF', 7, source, body);
const segment = (name: 'DTFDA' | 'DTFMA' | 'DTFFA', body: string): Buffer => fpdu(name, 7, 0, text(body));

describe('forms', () => {
  test('mono-article, multi-article, segmented, empty articles between others', () => {
    const fpdus = [
      dtf(0, text('one')),
      dtf(3, prefixed(text('two'), text(''), text('three'))),
      segment('DTFDA', 'fo'),
      segment('DTFMA', 'u'),
      segment('DTFFA', 'r'),
      segment('DTFDA', 'fi'),
      segment('DTFFA', 've'),
      dtf(2, prefixed(text(''), text(''))),
    ];
    const articles = ['one', 'two', '', 'three', 'four', 'five', '', ''];
    for (const longest of [1 << 20, 40, 5, 1]) {
      const received = receive(fpdus, { longest });
      expect(received.articles).toEqual(articles);
      expect(received.receiver).toMatchObject({ dataBytes: 19, articles: 8 });
    }
  });

  test('255 articles of one byte', () => {
    const many = Array.from({ length: 255 }, (_, i) => Buffer.from([i]));
    const { articles } = receive([dtf(255, prefixed(...many))]);
    expect(articles.map((article) => article.charCodeAt(0))).toEqual(Array.from({ length: 255 }, (_, i) => i));
  });

  test('an entity full of articles, in pieces of every kind', () => {
    const chance = new Chance(3);
    const articles = Array.from({ length: 200 }, () => chance.bytes(chance.below(320)));
    for (const longest of [7, 511, 513, 4096, 1 << 20]) {
      const received = receive([dtf(200, prefixed(...articles))], { longest });
      expect(
        difference(
          received.articles.map((article) => Buffer.from(article, 'latin1')),
          articles,
        ),
      ).toBeUndefined();
    }
  });

  test('articles are views of what was received', () => {
    const bytes = dtf(2, prefixed(Buffer.alloc(700, 1), Buffer.alloc(700, 2)));
    const receiver = new ArticleReceiver('unknown');
    receiver.start(65_535, 0, 0);
    const reader = new FpduReader('raw', false);
    reader.push(bytes);
    receiver.receive(reader.next()!);
    const batch = receiver.take()!;
    expect(batch.ends).toEqual([1, 2]);
    for (const part of batch.parts) expect(part.buffer).toBe(bytes.buffer);
    expect(receiver.take()).toBeUndefined();
  });

  test('counts go on from the restart point', () => {
    const receiver = new ArticleReceiver('unknown');
    receiver.start(65_535, 1000, 10);
    const reader = new FpduReader('raw', false);
    reader.push(dtf(0, text('abc')));
    receiver.receive(reader.next()!);
    expect(receiver).toMatchObject({ dataBytes: 1003, articles: 11 });
  });
});

describe('PI 32', () => {
  test.each([
    ['mono-article', [dtf(0, Buffer.alloc(11))]],
    ['multi-article', [dtf(2, prefixed(Buffer.alloc(10), Buffer.alloc(11)))]],
    ['segmented', [segment('DTFDA', '12345'), segment('DTFMA', '12345'), segment('DTFFA', '1')]],
    ['one with ID.SRC = 1', [dtf(1, prefixed(Buffer.alloc(11)))]],
  ])('%s: one byte beyond is 2-220', (_, fpdus) => {
    expect(failure(fpdus, { maxArticle: 10 })).toMatchObject({
      fault: 'remote',
      diagnostic: '2-220',
      expected: 'at most 10 bytes (PI 32)',
      got: '11',
    });
  });

  test('exactly its length is taken, in every form', () => {
    const fpdus = [
      dtf(0, Buffer.alloc(10)),
      dtf(2, prefixed(Buffer.alloc(10), Buffer.alloc(10))),
      segment('DTFDA', '12345'),
      segment('DTFFA', '12345'),
      dtf(1, prefixed(Buffer.alloc(10))),
    ];
    expect(receive(fpdus, { maxArticle: 10 }).articles).toHaveLength(5);
  });
});

describe('wrong forms are 3-311', () => {
  test.each([
    ['an empty DTF', [dtf(0, Buffer.alloc(0))]],
    ['an empty multi-article DTF', [dtf(2, Buffer.alloc(0))]],
    ['an empty segment', [segment('DTFDA', '')]],
    ['fewer articles than ID.SRC says', [dtf(3, prefixed(text('a'), text('b')))]],
    ['more articles than ID.SRC says', [dtf(2, prefixed(text('a'), text('b'), text('c')))]],
    ['an article longer than its FPDU', [dtf(2, hex('0001aa0003bbbb'))]],
    ['half a length', [dtf(2, hex('0001aa00'))]],
    ['DTFMA without DTFDA', [segment('DTFMA', 'x')]],
    ['DTFFA without DTFDA', [segment('DTFFA', 'x')]],
    ['DTFFA after DTFFA', [segment('DTFDA', 'x'), segment('DTFFA', 'x'), segment('DTFFA', 'x')]],
    ['DTFDA after DTFDA', [segment('DTFDA', 'x'), segment('DTFDA', 'x')]],
    ['DTF inside an article', [segment('DTFDA', 'x'), dtf(0, text('y'))]],
    ['multi-article DTF inside an article', [segment('DTFDA', 'x'), dtf(2, prefixed(text('y'), text('z')))]],
  ])('%s', (_, fpdus) => {
    for (const longest of [1 << 20, 1]) {
      const wrong = failure(fpdus, { longest });
      expect(wrong).toMatchObject({ fault: 'remote', diagnostic: '3-311' });
      expect(wrong.message).toMatch(/^DTF/);
      expect(wrong.expected).toBeDefined();
      expect(wrong.got).toBeDefined();
    }
  });
});

describe('ID.SRC = 1', () => {
  const plain = dtf(1, text('plain'));
  const dressed = dtf(1, prefixed(text('dressed')));

  test('the first decides: plain, and what looks prefixed later is plain too', () => {
    const { articles, receiver } = receive([plain, dressed]);
    expect(articles).toEqual(['plain', '\0\x07dressed']);
    expect(receiver.style).toBe('plain');
  });

  test('the first decides: prefixed', () => {
    const { articles, receiver } = receive([dressed, dressed]);
    expect(articles).toEqual(['dressed', 'dressed']);
    expect(receiver.style).toBe('prefixed');
  });

  test('a known style is kept', () => {
    expect(receive([dressed], { style: 'plain' }).articles).toEqual(['\0\x07dressed']);
    expect(receive([dressed], { style: 'prefixed' }).articles).toEqual(['dressed']);
  });

  test('an article of one byte cannot have a prefix', () => {
    expect(receive([dtf(1, text('x'))]).articles).toEqual(['x']);
  });

  test('a contradiction turns the partner to plain and asks for a clean start', () => {
    const receiver = new ArticleReceiver('unknown');
    receiver.start(65_535, 0, 0);
    const reader = new FpduReader('raw', false);
    reader.push(Buffer.concat([dressed, plain]));
    receiver.receive(reader.next()!);
    expect(() => receiver.receive(reader.next()!)).toThrow(
      expect.objectContaining({ fault: 'remote', diagnostic: '1-100' }),
    );
    expect(receiver.style).toBe('plain');
  });
});
