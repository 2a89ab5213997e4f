/**
 * A burst whose articles are compressed (annex A, pesit-e.md §6).
 *
 * The source fills plain articles into a staging buffer; when the burst ends they are compressed one by one and laid out by
 * the `ArticleSender`. The interval between points counts compressed bytes (annex A §3), which are known only then, while a
 * source must see in `reserve` where a point falls. So a burst takes no more articles than surely fit before the next point,
 * and a point is placed only before the first article of a burst. The last eighth of an interval is given up for it: else the
 * bursts would become ever smaller towards the point.
 */
import type { Burst } from './articles.js';
import { COMPRESSION_MODES, compressArticle, compressedBound } from './compression.js';
import type { CompressionMode } from './compression.js';
import type { ArticleSender } from './sending.js';

/** Plain bytes of one burst; more than the longest article. */
const STAGING_SIZE = 128 * 1024;
const MAX_ARTICLE = 65_535;

export class CompressingBurst implements Burst {
  readonly maxUnsegmentedArticle: number;
  readonly #sender: ArticleSender;
  readonly #mode: CompressionMode;
  readonly #staging = Buffer.allocUnsafeSlow(STAGING_SIZE);
  readonly #compressed = Buffer.allocUnsafeSlow(compressedBound(MAX_ARTICLE));
  #slots: Buffer[] = [];
  #staged = 0;
  /** The most that the staged articles can become on the wire, and the bytes of the buffer that this takes. */
  #bound = 0;
  #room = 0;
  /** The last article of the burst before; undefined where no vertical string may be. */
  #previous: Buffer | undefined;
  #kept: Buffer = Buffer.alloc(0);

  constructor(sender: ArticleSender, mode: CompressionMode) {
    this.#sender = sender;
    this.#mode = mode;
    // One byte in 63 is left for the case that nothing can be compressed.
    this.maxUnsegmentedArticle = Math.floor((sender.maxUnsegmentedArticle * 63) / 64);
  }

  get slots(): readonly Buffer[] {
    return this.#slots;
  }

  get lastPoint(): number {
    return this.#sender.lastPoint;
  }

  begin(buffer: Buffer): void {
    this.#sender.begin(buffer);
    this.#slots = [];
    this.#staged = 0;
    this.#bound = 0;
    this.#room = 0;
  }

  reserve(length: number): boolean {
    if (this.#sender.stale) return false;
    const bound = compressedBound(length);
    const room = this.#sender.roomFor(bound);
    if (this.#slots.length === 0) {
      const point = this.#sender.lastPoint;
      const goes = this.#sender.passPoint(length, bound);
      if (this.#sender.lastPoint !== point) this.#previous = undefined;
      if (!goes) return false;
    } else if (
      this.#staged + length > STAGING_SIZE ||
      this.#room + room > this.#sender.room ||
      this.#bound + bound > this.#sender.beforePoint
    ) {
      return false;
    }
    this.#slots.push(this.#staging.subarray(this.#staged, this.#staged + length));
    this.#staged += length;
    this.#bound += bound;
    this.#room += room;
    return true;
  }

  end(last = false): Buffer {
    if (this.#sender.stale) return this.#sender.end();
    let index = 0;
    for (const article of this.#slots) {
      const length = compressArticle(article, this.#previous, this.#mode, this.#compressed, 0);
      if (!this.#sender.place(length)) throw new Error(`no room for an article of ${length} compressed bytes`);
      let from = 0;
      for (; index < this.#sender.slots.length; index++) {
        const slot = this.#sender.slots[index] as Buffer;
        from += this.#compressed.copy(slot, 0, from, from + slot.length);
      }
      this.#previous = article;
    }
    if (this.#slots.length > 0) this.#keep();
    this.#slots = [];
    return this.#sender.end(last);
  }

  /** The next burst overwrites the staging buffer. */
  #keep(): void {
    const last = this.#previous;
    if (last === undefined || this.#mode === COMPRESSION_MODES.horizontal) return;
    if (this.#kept.length < last.length) this.#kept = Buffer.allocUnsafeSlow(last.length);
    last.copy(this.#kept);
    this.#previous = this.#kept.subarray(0, last.length);
  }
}
