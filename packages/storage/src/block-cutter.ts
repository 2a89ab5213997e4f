import type { Burst } from '@pesit-node/protocol';
import { readFully } from './files.js';
import type { SourceReader } from './file-source.js';

/** BU, BV, BF: articles of one length (the last of BU and BV may be short), read straight into their places. */
export class BlockCutter {
  readonly #source: SourceReader;
  readonly #recordLength: number;
  readonly #exact: boolean;
  #offset = 0;

  constructor(source: SourceReader, recordLength: number, exact: boolean) {
    this.#source = source;
    this.#recordLength = recordLength;
    this.#exact = exact;
  }

  async fill(burst: Burst): Promise<boolean> {
    const { file, size, points, hash } = this.#source;
    const longest = this.#exact ? this.#recordLength : Math.min(this.#recordLength, burst.maxUnsegmentedArticle);
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
      const read = await readFully(file, burst.slots, start, end - start);
      if (read < end - start) throw this.#source.changed(`${size} bytes expected, ${start + read} found`);
      if (hash) for (const slot of burst.slots) hash.update(slot);
      this.#offset = end;
    }
    return end < size;
  }
}
