/** Looked up once: globals are slow inside the sandbox of the test runner. */
const { imul } = Math;

/** A small deterministic generator (mulberry32): the same seed always gives the same walk. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** An integer from 0 to `limit` − 1. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = imul(t ^ (t >>> 15), t | 1);
    t ^= t + imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) % limit) | 0;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  bytes(length: number): Buffer {
    const out = Buffer.allocUnsafe(length);
    for (let i = 0; i < length; i++) out[i] = this.below(256);
    return out;
  }

  /** `bytes` cut into pieces of 1 to `longest`. */
  *split(bytes: Buffer, longest: number): Generator<Buffer> {
    for (let offset = 0; offset < bytes.length;) {
      const end = Math.min(bytes.length, offset + 1 + this.below(longest));
      yield bytes.subarray(offset, end);
      offset = end;
    }
  }
}
