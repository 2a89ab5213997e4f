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
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  }

  /** An integer from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  /** One of the choices, each as likely as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let left = this.below(choices.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, choice] of choices) {
      if (left < weight) return choice;
      left -= weight;
    }
    throw new RangeError('expected at least one choice with a weight');
  }

  /** Fills `target` with bytes, four at a time. */
  fill(target: Buffer): Buffer {
    const words = target.length - (target.length % 4);
    for (let at = 0; at < words; at += 4) target.writeUInt32LE(this.below(2 ** 32), at);
    for (let at = words; at < target.length; at++) target[at] = this.below(256);
    return target;
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
