import type { Burst } from '@pesit-node/protocol';
import type { StoredPoint } from './group-commit.js';
import { pointAmongBlocks } from './pacing.js';
import type { Pacing } from './pacing.js';
import { readFully } from './files.js';
import type { SourceReader } from './source-reader.js';

/** Measured: places shorter than this cost more one by one in a `readv` than a copy of their bytes (80 bytes: half the CPU). */
const SCATTER_BELOW = 256;

/** BU, BV, BF: articles of one length (the last of BU and BV may be short), read straight into their places. */
export class BlockCutter {
  readonly #source: SourceReader;
  readonly #recordLength: number;
  readonly #exact: boolean;
  #offset = 0;
  #scratch: Buffer = Buffer.alloc(0);

  constructor(source: SourceReader, recordLength: number, exact: boolean) {
    this.#source = source;
    this.#recordLength = recordLength;
    this.#exact = exact;
  }

  async fill(burst: Burst): Promise<boolean> {
    const { size, points } = this.#source;
    const longest = this.#longest(burst.maxUnsegmentedArticle);
    const start = this.#offset;
    let end = start;
    let point = burst.lastPoint;
    while (end < size) {
      const length = Math.min(longest, size - end);
      const reserved = burst.reserve(length);
      if (burst.lastPoint !== point) {
        point = burst.lastPoint;
        points.set(point, end);
      }
      if (!reserved) break;
      end += length;
    }
    if (end > start) {
      if (longest < SCATTER_BELOW) await this.#readAndScatter(burst.slots, start, end - start);
      else await this.#read(burst.slots, start, end - start);
      this.#offset = end;
    }
    return end < size;
  }

  /** Costs nothing without a hash; with one, the part before the point is read for it. */
  async startAt(number: number, attempts: readonly Pacing[], signal?: AbortSignal): Promise<StoredPoint | undefined> {
    const { size, points } = this.#source;
    const found = pointAmongBlocks(number, attempts, size, (attempt) => this.#longest(attempt.maxUnsegmentedArticle));
    if (found === undefined) return undefined;
    const { fileOffset } = found;
    await this.#source.hashUpTo(fileOffset, signal);
    points.set(number, fileOffset);
    this.goTo(fileOffset);
    return found;
  }

  goTo(fileOffset: number): void {
    this.#offset = fileOffset;
  }

  #longest(maxUnsegmentedArticle: number): number {
    return this.#exact ? this.#recordLength : Math.min(this.#recordLength, maxUnsegmentedArticle);
  }

  async #read(buffers: readonly Buffer[], position: number, bytes: number): Promise<void> {
    const { file, hash, size } = this.#source;
    const read = await readFully(file, buffers, position, bytes);
    if (read < bytes) throw this.#source.changed(`${size} bytes expected, ${position + read} found`);
    if (hash) for (const buffer of buffers) hash.update(buffer);
  }

  /** The scratch is never longer than the data of one burst. */
  async #readAndScatter(slots: readonly Buffer[], position: number, bytes: number): Promise<void> {
    if (this.#scratch.length < bytes) this.#scratch = Buffer.allocUnsafeSlow(bytes);
    const data = this.#scratch.subarray(0, bytes);
    await this.#read([data], position, bytes);
    let from = 0;
    for (const slot of slots) from += data.copy(slot, 0, from, from + slot.length);
  }
}
