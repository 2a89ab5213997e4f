const FIRST_CAPACITY = 64;

/** The sender's table of sync points: number → file offset, eight bytes a point (at most 999,999, PI 20). */
export class PointTable {
  #offsets = new Float64Array(FIRST_CAPACITY).fill(Number.NaN);
  #last = 0;

  /** Number of the newest point, 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** Remembers that point `number` stands before the byte at `fileOffset`. */
  set(number: number, fileOffset: number): void {
    if (number >= this.#offsets.length) {
      const grown = new Float64Array(Math.max(number + 1, this.#offsets.length * 2)).fill(Number.NaN);
      grown.set(this.#offsets);
      this.#offsets = grown;
    }
    this.#offsets[number] = fileOffset;
    this.#last = number;
  }

  clear(): void {
    this.#offsets.fill(Number.NaN);
    this.#last = 0;
  }

  /** File offset of a point; 0 for point 0, the start; undefined for a point that was never placed. */
  offsetOf(number: number): number | undefined {
    if (number === 0) return 0;
    const offset = this.#offsets[number];
    return offset === undefined || Number.isNaN(offset) ? undefined : offset;
  }
}
