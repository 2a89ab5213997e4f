/**
 * Data FPDUs to articles (§4.4.20): mono-article, multi-article and segmented, gathered into one batch of views for
 * all that one socket read brought.
 */
import type { ArticleBatch } from './articles.js';
import type { CompressionMode } from './compression.js';
import { Decompressor } from './decompressing.js';
import { PesitError } from './errors.js';
import type { RawFpdu } from './framing.js';

/**
 * How a peer writes a DTF with ID.SRC = 1 (pesit-e.md §2): a plain article, or one with a length prefix. The first that
 * comes decides, and the node remembers it for the partner.
 */
export type SingleArticleStyle = 'unknown' | 'plain' | 'prefixed';

export class ArticleReceiver {
  /** Totals of the transfer as PI 27 and PI 28 count them. */
  dataBytes = 0;
  articles = 0;
  style: SingleArticleStyle;

  #parts: Buffer[] = [];
  #ends: number[] = [];
  #bytes = 0;
  #maxArticle = 0xffff;
  /** Present while articles come compressed (PI 21). */
  #decompressor: Decompressor | undefined;
  /** Bytes so far of an article that is segmented; -1 when none is open. */
  #segmented = -1;

  constructor(style: SingleArticleStyle) {
    this.style = style;
  }

  /**
   * @param maxArticle PI 32: an article beyond it is refused, never cut
   * @param compression what PI 21 agreed on; 0 none
   */
  start(maxArticle: number, dataBytes: number, articles: number, compression: CompressionMode | 0 = 0): void {
    this.#maxArticle = maxArticle;
    this.#decompressor = compression === 0 ? undefined : new Decompressor(compression, maxArticle);
    this.dataBytes = dataBytes;
    this.articles = articles;
    this.#segmented = -1;
    this.discard();
  }

  /** Bytes of the batch so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True between DTFDA and DTFFA: neither SYN nor DTF.END may come. */
  get insideArticle(): boolean {
    return this.#segmented >= 0;
  }

  /** RESYN: what comes next follows a point with these totals. */
  goBack(dataBytes: number, articles: number): void {
    this.dataBytes = dataBytes;
    this.articles = articles;
    this.#segmented = -1;
    this.#decompressor?.restart();
    this.discard();
  }

  /** SYN: the next article refers to none before it. */
  passPoint(): void {
    this.#decompressor?.restart();
  }

  /** The batch received since the last call; `undefined` when nothing was. */
  take(): ArticleBatch | undefined {
    if (this.#parts.length === 0 && this.#ends.length === 0) return undefined;
    const batch = { parts: this.#parts, ends: this.#ends, bytes: this.#bytes };
    this.discard();
    return batch;
  }

  discard(): void {
    this.#parts = [];
    this.#ends = [];
    this.#bytes = 0;
  }

  /**
   * Takes one data FPDU.
   * @throws PesitError 3-311 when its form is wrong, 3-318 when a compressed article is, 2-220 when an article is longer than PI 32, 1-100 when the peer
   *   contradicts its own style of single articles
   */
  receive(fpdu: RawFpdu): void {
    const length = fpdu.length - 6;
    if (length === 0) throw misformed(fpdu.name, 'at least one byte of data', 'none');
    if (fpdu.name !== 'DTF') {
      this.#receiveSegment(fpdu, length);
      return;
    }
    if (this.#segmented >= 0) throw misformed('DTF', 'DTFMA or DTFFA, as an article is open', 'DTF');
    if (fpdu.source === 0) this.#receivePlain(fpdu.body, length);
    else if (fpdu.source === 1) this.#receiveSingle(fpdu.body, length);
    else this.#receiveMany(fpdu.body, length, fpdu.source);
  }

  #receivePlain(body: readonly Buffer[], length: number): void {
    this.#checkLength(length);
    if (this.#decompressor !== undefined) {
      this.#receiveCompressed(this.#decompressor, body, length);
      return;
    }
    for (const part of body) this.#parts.push(part);
    this.#endArticle(length, length);
  }

  #receiveSingle(body: readonly Buffer[], length: number): void {
    const prefixed = length >= 2 && new Cursor(body).read16() === length - 2;
    if (this.style === 'unknown') this.style = prefixed ? 'prefixed' : 'plain';
    if (this.style === 'plain') {
      this.#receivePlain(body, length);
    } else if (prefixed) {
      this.#receiveMany(body, length, 1);
    } else {
      // The first DTF looked prefixed by chance. The stored data may lack two bytes: start again clean.
      this.style = 'plain';
      throw new PesitError(
        'DTF with one article: expected a length prefix as before, got none; the transfer must restart',
        {
          fault: 'remote',
          diagnostic: '1-100',
          expected: 'a length prefix',
          got: 'a plain article',
        },
      );
    }
  }

  #receiveMany(body: readonly Buffer[], length: number, count: number): void {
    const cursor = new Cursor(body);
    let left = length;
    for (let i = 0; i < count; i++) {
      if (left < 2) throw misformed('DTF', `${count} articles, as ID.SRC says`, `${i}`);
      const article = cursor.read16();
      left -= 2;
      if (article > left)
        throw misformed('DTF', `article ${i + 1} within its FPDU`, `${article} bytes with ${left} left`);
      this.#checkLength(article);
      left -= article;
      if (this.#decompressor === undefined) {
        cursor.take(article, this.#parts);
        this.#endArticle(article, article);
      } else {
        const pieces: Buffer[] = [];
        cursor.take(article, pieces);
        this.#receiveCompressed(this.#decompressor, pieces, article);
      }
    }
    if (left > 0) throw misformed('DTF', `${count} articles, as ID.SRC says`, `${left} bytes more`);
  }

  #receiveCompressed(decompressor: Decompressor, pieces: readonly Buffer[], length: number): void {
    if (pieces.length === 1) {
      this.#pushPlain(decompressor.article(pieces[0] as Buffer), length);
      return;
    }
    for (const piece of pieces) decompressor.gather(piece);
    this.#pushPlain(decompressor.gatheredArticle(), length);
  }

  #pushPlain(article: Buffer, compressed: number): void {
    if (article.length > 0) this.#parts.push(article);
    this.#endArticle(article.length, compressed);
  }

  #receiveSegment(fpdu: RawFpdu, length: number): void {
    const open = this.#segmented >= 0;
    if (open === (fpdu.name === 'DTFDA')) {
      const expected = open ? 'DTFMA or DTFFA, as an article is open' : 'DTFDA before it, as no article is open';
      throw misformed(fpdu.name, expected, fpdu.name);
    }
    const total = Math.max(this.#segmented, 0) + length;
    this.#checkLength(total);
    const last = fpdu.name === 'DTFFA';
    this.#segmented = last ? -1 : total;
    if (this.#decompressor !== undefined) {
      for (const part of fpdu.body) this.#decompressor.gather(part);
      if (last) this.#pushPlain(this.#decompressor.gatheredArticle(), length);
      else this.dataBytes += length;
      return;
    }
    for (const part of fpdu.body) this.#parts.push(part);
    if (last) {
      this.#endArticle(length, length);
    } else {
      this.#bytes += length;
      this.dataBytes += length;
    }
  }

  /** @param plain bytes for the file, @param onWire bytes as PI 27 counts them; of what is new of the article */
  #endArticle(plain: number, onWire: number): void {
    this.#bytes += plain;
    this.dataBytes += onWire;
    this.articles += 1;
    this.#ends.push(this.#parts.length);
  }

  #checkLength(length: number): void {
    const max = this.#decompressor?.maxCompressed ?? this.#maxArticle;
    if (length <= max) return;
    const [expected, got] = [`at most ${max} bytes (PI 32)`, `${length}`];
    throw new PesitError(
      `article too long: expected ${expected}, got ${got}; raise the record length on the side that announced it`,
      {
        fault: 'remote',
        diagnostic: '2-220',
        expected,
        got,
      },
    );
  }
}

/** Walks the parts of a body without joining them. */
class Cursor {
  readonly #body: readonly Buffer[];
  #index = 0;
  #offset = 0;

  constructor(body: readonly Buffer[]) {
    this.#body = body;
  }

  read16(): number {
    return (this.#read8() << 8) | this.#read8();
  }

  #read8(): number {
    let part = this.#body[this.#index] as Buffer;
    while (this.#offset === part.length) {
      part = this.#body[++this.#index] as Buffer;
      this.#offset = 0;
    }
    return part[this.#offset++] as number;
  }

  take(count: number, into: Buffer[]): void {
    let left = count;
    while (left > 0) {
      const part = this.#body[this.#index] as Buffer;
      const end = Math.min(part.length, this.#offset + left);
      if (end > this.#offset) into.push(part.subarray(this.#offset, end));
      left -= end - this.#offset;
      this.#offset = end;
      if (end === part.length && left > 0) {
        this.#index += 1;
        this.#offset = 0;
      }
    }
  }
}

const misformed = (name: string, expected: string, got: string): PesitError =>
  new PesitError(`${name}: expected ${expected}, got ${got}`, {
    fault: 'remote',
    diagnostic: '3-311',
    expected,
    got,
  });
