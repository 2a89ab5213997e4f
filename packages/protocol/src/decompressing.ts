/**
 * Compressed articles to plain ones (annex A). Results lie in memory of our own that is never used twice: whoever was handed a
 * view may keep it. The decoder itself keeps one chunk, and the compressed bytes of an article that came in pieces.
 */
import { decompressArticle } from './compression.js';
import type { CompressionMode } from './compression.js';

const MIN_CHUNK = 64 * 1024;

export class Decompressor {
  /** The longest compressed article: strings of one byte take two. */
  readonly maxCompressed: number;
  readonly #mode: CompressionMode;
  readonly #maxArticle: number;
  readonly #chunkSize: number;
  #chunk: Buffer = Buffer.alloc(0);
  #used = 0;
  #previous: Buffer | undefined;
  #gathered: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param maxArticle PI 32, which bounds the plain article */
  constructor(mode: CompressionMode, maxArticle: number) {
    this.#mode = mode;
    this.#maxArticle = maxArticle;
    this.#chunkSize = Math.max(MIN_CHUNK, 4 * maxArticle);
    this.maxCompressed = 2 * maxArticle;
  }

  /** A sync point: the next article has no previous one. */
  restart(): void {
    this.#previous = undefined;
    this.#length = 0;
  }

  /** Keeps a copy of a piece of an article; the pieces together are at most `maxCompressed` bytes. */
  gather(part: Buffer): void {
    const needed = this.#length + part.length;
    if (this.#gathered.length < needed) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.maxCompressed, Math.max(2 * needed, 4096)));
      this.#gathered.copy(larger, 0, 0, this.#length);
      this.#gathered = larger;
    }
    part.copy(this.#gathered, this.#length);
    this.#length = needed;
  }

  /** The plain article of what was gathered. @throws PesitError see `decompressArticle` */
  gatheredArticle(): Buffer {
    const compressed = this.#gathered.subarray(0, this.#length);
    this.#length = 0;
    return this.article(compressed);
  }

  /** @throws PesitError see `decompressArticle` */
  article(compressed: Buffer): Buffer {
    if (this.#chunk.length - this.#used < this.#maxArticle) {
      this.#chunk = Buffer.allocUnsafeSlow(this.#chunkSize);
      this.#used = 0;
    }
    const out = this.#chunk.subarray(this.#used, this.#used + this.#maxArticle);
    const length = decompressArticle(compressed, this.#previous, this.#mode, out);
    this.#used += length;
    this.#previous = out.subarray(0, length);
    return this.#previous;
  }
}
