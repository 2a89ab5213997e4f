import { describe, expect, test } from '@jest/globals';
import type { ArticleBatch } from '@pesit-node/protocol';
import { ArticleDecoder } from '../src/article-decoder.js';
import { OutputQueue } from '../src/output-queue.js';
import type { RecordFormatName } from '../src/index.js';
import { batchOf, piecesOf } from './support/articles.js';

function decoderOf(name: RecordFormatName, recordLength: number): ArticleDecoder {
  const text = name.startsWith('T');
  const recordFormat = name.endsWith('F') ? 0 : 128;
  return new ArticleDecoder({ name, text, recordLength, recordFormat, codePage: undefined });
}

function received(name: RecordFormatName, recordLength: number, ...batches: ArticleBatch[]): string {
  const decoder = decoderOf(name, recordLength);
  const out = new OutputQueue();
  for (const batch of batches) decoder.decode(batch, out);
  expect(decoder.atArticleEnd).toBe(true);
  return Buffer.concat(out.take(1024, 1e6).buffers).toString('latin1');
}

describe('what a file holds after its articles came (pesit-e.md §6)', () => {
  test.each<[RecordFormatName, string[], string]>([
    ['BU', ['abc', 'd', ' \r\n'], 'abcd \r\n'],
    ['BV', ['abc', '', 'd'], 'abcd'],
    ['BF', ['abcd', 'efg '], 'abcdefg '],
    ['TV', ['one', 'two'], 'one\ntwo\n'],
    ['TV', [' '], ' \n'],
    ['TV', [''], '\n'],
    ['TV', ['kep ', '\f', 'a\tb'], 'kep \n\f\na\tb\n'],
    ['TF', ['ab  ', '    ', ' c d'], 'ab\n\n c d\n'],
    ['TF', ['ab', '\t   '], 'ab\n\t\n'],
    ['TF', ['\0   '], '\0\n'],
  ])('%s %j → %j', (name, articles, file) => {
    expect(received(name, 4, ...articles.map((article) => batchOf(article)))).toBe(file);
    expect(received(name, 4, batchOf(...articles))).toBe(file);
  });

  test('empty lines are gathered: a million of them are few pieces to write', () => {
    const decoder = decoderOf('TV', 1000);
    const out = new OutputQueue();
    const empty = { parts: [], ends: Array.from({ length: 1000 }, () => 0), bytes: 0 };
    decoder.decode(batchOf('x'.repeat(600)), out);
    for (let batch = 0; batch < 1000; batch += 1) decoder.decode(empty, out);
    decoder.decode(batchOf('x'.repeat(600), '', 'end'), out);
    const { buffers } = out.take(1_000_000, 1e9);
    expect(buffers.length).toBeLessThan(30);
    const line = 'x'.repeat(600);
    expect(Buffer.concat(buffers).toString()).toBe(`${line}\n${'\n'.repeat(1_000_000)}${line}\n\nend\n`);
  });

  test('a small file takes a small block, and many lines few large ones', () => {
    const out = new OutputQueue();
    const blocks = (lines: number) => {
      for (let line = 0; line < lines; line += 1) out.push(Buffer.alloc(100, 'x'));
      return out.take(1024, 1e7).buffers.map(({ buffer }) => buffer.byteLength);
    };
    expect(blocks(1)).toEqual([4096]);
    expect(blocks(10_000).slice(-10)).toEqual(Array.from({ length: 10 }, () => 65_536));
  });

  test('no articles are an empty file', () => {
    for (const name of ['BU', 'BV', 'BF', 'TV', 'TF'] as const) expect(received(name, 4)).toBe('');
  });

  test.each<[RecordFormatName, string]>([
    ['BU', 'ab  c   ef  gh  '],
    ['BF', 'ab  c   ef  gh  '],
    ['TV', 'ab  c   \nef  gh  \n'],
    ['TF', 'ab  c\nef  gh\n'],
  ])('%s: the same two articles, cut at every pair of places into parts and batches', (name, file) => {
    const data = 'ab  c   ef  gh  ';
    for (let first = 1; first < 16; first++) {
      for (let second = first; second < 16; second++) {
        const batches = [
          [0, first],
          [first, second],
          [second, 16],
        ].map(([from = 0, to = 0]) => {
          if (to <= 8)
            return to === 8 && from < 8 ? piecesOf([[data.slice(from, to)]]) : piecesOf([], [data.slice(from, to)]);
          if (from >= 8) return to === 16 ? piecesOf([[data.slice(from, to)]]) : piecesOf([], [data.slice(from, to)]);
          const head = [data.slice(from, 8)];
          return to === 16 ? piecesOf([head, [data.slice(8, to)]]) : piecesOf([head], [data.slice(8, to)]);
        });
        expect(received(name, 8, ...batches.filter(({ bytes }) => bytes > 0))).toBe(file);
      }
    }
  });
});

describe('an article that does not fit is refused, never cut', () => {
  test.each<RecordFormatName>(['BU', 'BV', 'BF', 'TV', 'TF'])('%s longer than PI 32', (name) => {
    const decoder = decoderOf(name, 4);
    expect(() => decoder.decode(batchOf('abcd', 'efghi'), new OutputQueue())).toThrow(
      expect.objectContaining({ diagnostic: '2-220', fault: 'remote', message: expect.stringContaining('article 2') }),
    );
  });

  test('also when it is too long only over several batches, and before it ends', () => {
    const decoder = decoderOf('TF', 4);
    decoder.decode(piecesOf([], ['   ']), new OutputQueue());
    expect(() => decoder.decode(piecesOf([], ['  ']), new OutputQueue())).toThrow(
      expect.objectContaining({ diagnostic: '2-220', got: 'at least 5' }),
    );
  });

  test('a BF article that is too short', () => {
    expect(() => decoderOf('BF', 4).decode(batchOf('abc'), new OutputQueue())).toThrow(
      expect.objectContaining({ diagnostic: '2-220', fault: 'remote', expected: 'exactly 4', got: '3' }),
    );
  });
});

describe('the queue of output', () => {
  test('long pieces are handed on as they are, short ones gathered, the order kept', () => {
    const out = new OutputQueue();
    const long = Buffer.alloc(600, 'L');
    for (const piece of [Buffer.from('a'), Buffer.from('b'), long, Buffer.from('c')]) out.push(piece);
    out.pushLineEnd();
    expect(out.bytes).toBe(604);
    const { buffers, bytes } = out.take(10, 1e6);
    expect(bytes).toBe(604);
    expect(buffers.map((buffer) => buffer.toString())).toEqual(['ab', long.toString(), 'c\n']);
    expect(buffers[1]).toBe(long);
    expect(out.bytes).toBe(0);
  });

  test('a take keeps to its number of buffers and bytes, and always makes progress', () => {
    const out = new OutputQueue();
    for (let i = 0; i < 5; i++) out.push(Buffer.alloc(1000, i));
    expect(out.take(2, 1e6).bytes).toBe(2000);
    expect(out.take(10, 1500).bytes).toBe(1000);
    const { buffers, bytes } = out.take(10, 10);
    expect([bytes, buffers]).toEqual([10, [Buffer.alloc(10, 3)]]);
    expect(out.bytes).toBe(1990);
  });

  test('gathering goes on in a new block when one is full', () => {
    const out = new OutputQueue();
    let expected = '';
    for (let i = 0; i < 3000; i++) {
      const line = `line ${i} of a text that fills more than one block`;
      out.push(Buffer.from(line));
      out.pushLineEnd();
      expected += `${line}\n`;
      if (i % 700 === 0) expected = expected.slice(Buffer.concat(out.take(1024, 1e6).buffers).length);
    }
    expect(Buffer.concat(out.take(1024, 1e6).buffers).toString()).toBe(expected);
  });
});
