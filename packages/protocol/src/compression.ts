/**
 * Compression of articles (annex A, pesit-e.md §6): strings of at most 63 bytes, each behind a header byte.
 *
 * `00|n` n bytes as they are · `80|n` the next byte n times · `C0|n` the n bytes at the same place of the previous article,
 * as it was before its compression · `40|n` illegal. The first article, and the first after each sync point, have no previous.
 */
import { PesitError } from './errors.js';

/** PI 21, second byte. */
export const COMPRESSION_MODES = { horizontal: 1, vertical: 2, both: 3 } as const;
export type CompressionMode = 1 | 2 | 3;

const LITERAL = 0x00;
const REPEATED = 0x80;
const PREVIOUS = 0xc0;
const KIND = 0xc0;
const MAX_STRING = 63;
/** The byte with which the specification pads a shorter previous article: a blank in EBCDIC. We never refer to it. */
const PADDING = 0x40;

/** The most that `length` bytes can become: one header for every 63 bytes. */
export const compressedBound = (length: number): number => length + Math.ceil(length / MAX_STRING);

/**
 * Compresses one article.
 * @param previous the article before it, uncompressed; undefined at the start and after a sync point
 * @param out at least `compressedBound(article.length)` bytes free from `start`
 * @returns where the compressed article ends in `out`
 */
export const compressArticle = (
  article: Uint8Array,
  previous: Uint8Array | undefined,
  mode: CompressionMode,
  out: Uint8Array,
  start: number,
): number => {
  const horizontal = mode !== COMPRESSION_MODES.vertical;
  // Never past the end of the previous article: no partner has to agree on how it is padded.
  const comparable = mode === COMPRESSION_MODES.horizontal ? 0 : Math.min(previous?.length ?? 0, article.length);
  const { length } = article;
  let to = start;
  let literal = 0;
  let at = 0;
  while (at < length) {
    const same = at < comparable ? equalRun(article, previous as Uint8Array, at, comparable) : 0;
    const repeated = horizontal ? repeatRun(article, at) : 0;
    // A string of its own pays when it is shorter than the bytes and the header that a literal cut in two needs again.
    const open = at > literal ? 1 : 0;
    if (same >= repeated && same >= 2 + open) {
      to = writeLiterals(article, literal, at, out, to);
      out[to++] = PREVIOUS | same;
      at += same;
      literal = at;
    } else if (repeated >= 3 + open) {
      to = writeLiterals(article, literal, at, out, to);
      out[to++] = REPEATED | repeated;
      out[to++] = article[at] as number;
      at += repeated;
      literal = at;
    } else {
      at += 1;
    }
  }
  return writeLiterals(article, literal, length, out, to);
};

const equalRun = (article: Uint8Array, previous: Uint8Array, at: number, comparable: number): number => {
  const end = Math.min(at + MAX_STRING, comparable);
  let to = at;
  while (to < end && article[to] === previous[to]) to++;
  return to - at;
};

const repeatRun = (article: Uint8Array, at: number): number => {
  const end = Math.min(at + MAX_STRING, article.length);
  const byte = article[at];
  let to = at + 1;
  while (to < end && article[to] === byte) to++;
  return to - at;
};

const writeLiterals = (article: Uint8Array, from: number, end: number, out: Uint8Array, start: number): number => {
  let to = start;
  for (let at = from; at < end; at += MAX_STRING) {
    const count = Math.min(MAX_STRING, end - at);
    out[to++] = LITERAL | count;
    for (let i = 0; i < count; i++) out[to + i] = article[at + i] as number;
    to += count;
  }
  return to;
};

/**
 * Decompresses one article; the work is bounded by `out`.
 * @param out as long as the longest article allowed (PI 32)
 * @returns the length of the article, which begins at `out[0]`
 * @throws PesitError 3-318 for a string that is illegal or not negotiated, 2-220 when the article is longer than `out`
 */
export const decompressArticle = (
  compressed: Uint8Array,
  previous: Uint8Array | undefined,
  mode: CompressionMode,
  out: Uint8Array,
): number => {
  let to = 0;
  let at = 0;
  while (at < compressed.length) {
    const header = compressed[at++] as number;
    const kind = header & KIND;
    const count = header & MAX_STRING;
    if (count === 0) throw illegal('a string of 1 to 63 bytes', `header 0x${header.toString(16)}`);
    if (to + count > out.length) throw tooLong(out.length, to + count);
    if (kind === LITERAL) {
      if (at + count > compressed.length) throw illegal(`${count} bytes in a string`, `${compressed.length - at}`);
      for (let i = 0; i < count; i++) out[to + i] = compressed[at + i] as number;
      at += count;
    } else if (kind === REPEATED) {
      if (mode === COMPRESSION_MODES.vertical)
        throw illegal('vertical compression alone, as negotiated', 'a horizontal string');
      if (at >= compressed.length) throw illegal('the byte to repeat', 'the end of the article');
      out.fill(compressed[at++] as number, to, to + count);
    } else if (kind === PREVIOUS) {
      if (mode === COMPRESSION_MODES.horizontal)
        throw illegal('horizontal compression alone, as negotiated', 'a vertical string');
      if (previous === undefined) throw illegal('no vertical string in the first article after a sync point', 'one');
      for (let i = to; i < to + count; i++) out[i] = previous[i] ?? PADDING;
    } else {
      throw illegal('a literal, horizontal or vertical string', `header 0x${header.toString(16)}`);
    }
    to += count;
  }
  return to;
};

const illegal = (expected: string, got: string): PesitError =>
  new PesitError(`compressed article: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '3-318',
    expected,
    got,
  });

const tooLong = (max: number, length: number): PesitError => {
  const [expected, got] = [`at most ${max} bytes (PI 32)`, `at least ${length}`];
  return new PesitError(`decompressed article: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '2-220',
    expected,
    got,
  });
};
