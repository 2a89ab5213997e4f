import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { COMPRESSION_MODES, compressArticle, compressedBound, decompressArticle } from '../src/compression.js';
import type { CompressionMode } from '../src/compression.js';
import { PesitError } from '../src/index.js';

const MODES: CompressionMode[] = [1, 2, 3];

function compressAll(articles: readonly Uint8Array[], mode: CompressionMode): Buffer[] {
  return articles.map((article, i) => {
    const out = Buffer.alloc(compressedBound(article.length) + 3);
    return out.subarray(3, compressArticle(article, articles[i - 1], mode, out, 3));
  });
}

function decompressAll(compressed: readonly Uint8Array[], mode: CompressionMode, max: number): Buffer[] {
  const articles: Buffer[] = [];
  for (const bytes of compressed) {
    const out = Buffer.alloc(max);
    articles.push(out.subarray(0, decompressArticle(bytes, articles.at(-1), mode, out)));
  }
  return articles;
}

const vectors = (
  JSON.parse(readFileSync(new URL('./vectors/codec.json', import.meta.url), 'utf8')) as {
    compression: { mode: keyof typeof COMPRESSION_MODES; articles: string[]; encoded: string[] }[];
  }
).compression;

describe('the examples of annex A', () => {
  test.each(vectors)('$mode', ({ mode, articles, encoded }) => {
    const plain = articles.map((text) => Buffer.from(text, 'hex'));
    const compressed = compressAll(plain, COMPRESSION_MODES[mode]).map((bytes) => bytes.toString('hex'));
    expect(compressed).toEqual(encoded);
    const bytes = encoded.map((text) => Buffer.from(text, 'hex'));
    expect(decompressAll(bytes, COMPRESSION_MODES[mode], 100).map((b) => b.toString('hex'))).toEqual(articles);
  });
});

test('any articles come back, and grow by one byte in 63 at most', () => {
  // Few different bytes, so that runs and repetitions are frequent.
  const article = fc
    .array(fc.constantFrom(0, 1, 0x20, 0x40, 0xff), { minLength: 1, maxLength: 300 })
    .map((a) => Uint8Array.from(a));
  fc.assert(
    fc.property(fc.array(article, { maxLength: 8 }), fc.constantFrom(...MODES), (articles, mode) => {
      const compressed = compressAll(articles, mode);
      compressed.forEach((bytes, i) => {
        expect(bytes.length).toBeLessThanOrEqual(compressedBound(articles[i]!.length));
      });
      expect(decompressAll(compressed, mode, 300)).toEqual(articles.map((a) => Buffer.from(a)));
    }),
    { numRuns: 500 },
  );
});

test('a vertical string past the previous article reads blanks, as the specification pads it', () => {
  const out = Buffer.alloc(10);
  expect(decompressArticle(Buffer.from('c4', 'hex'), Buffer.from('0102', 'hex'), 2, out)).toBe(4);
  expect(out.subarray(0, 4).toString('hex')).toBe('01024040');
});

test.each([
  ['an illegal kind', '4101', 3, '3-318'],
  ['a string of no bytes', '00', 3, '3-318'],
  ['a literal that ends early', '0301', 3, '3-318'],
  ['a repetition without its byte', '85', 3, '3-318'],
  ['a vertical string in the first article', 'c1', 3, '3-318'],
  ['a horizontal string in vertical compression', '8301', 2, '3-318'],
  ['a vertical string in horizontal compression', 'c1', 1, '3-318'],
  ['an article longer than PI 32', 'bf00bf00', 1, '2-220'],
] as const)('%s is refused', (_, hex, mode, diagnostic) => {
  const out = Buffer.alloc(64);
  const previous = mode === 1 ? Buffer.from('01') : undefined;
  try {
    decompressArticle(Buffer.from(hex, 'hex'), previous, mode, out);
  } catch (error) {
    expect(error).toBeInstanceOf(PesitError);
    expect((error as PesitError).diagnostic).toBe(diagnostic);
    return;
  }
  throw new Error('it was taken');
});

test('whatever comes is an article or a PesitError', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.constantFrom(...MODES), (bytes, mode) => {
      try {
        decompressArticle(bytes, Buffer.alloc(20), mode, Buffer.alloc(500));
      } catch (error) {
        expect(error).toBeInstanceOf(PesitError);
      }
    }),
    { numRuns: 2000 },
  );
});
