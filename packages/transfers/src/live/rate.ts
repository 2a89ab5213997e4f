/** How long a rate looks back, milliseconds. */
const WINDOW_MS = 10_000;
/** Between two points that are kept, milliseconds. */
const APART_MS = 450;
/** Figures that are told from time to time, and have not changed for so long, show that nothing moves. */
const STALE_MS = 5000;

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

/** Bytes per second of one transfer over the last ten seconds, from figures that come as they come. */
export class Rate {
  #samples: Sample[] = [];

  /** @param at milliseconds of a clock that nobody can set */
  add(bytes: number, at: number): void {
    const last = this.#samples.at(-1);
    // A resynchronisation, or another attempt, takes figures back.
    if (last !== undefined && bytes < last.bytes) this.#samples = [];
    else if (last !== undefined && at - last.at < APART_MS && this.#samples.length > 1) this.#samples.pop();
    this.#samples.push({ at, bytes });
    while ((this.#samples[1]?.at ?? Infinity) <= at - WINDOW_MS) this.#samples.shift();
  }

  /** As `add`, of figures that are told from time to time: the same ones say nothing for a while. */
  hear(bytes: number, at: number): void {
    const last = this.#samples.at(-1);
    if (last?.bytes !== bytes || at - last.at > STALE_MS) this.add(bytes, at);
  }

  /** Undefined as long as there is no time to look back on. */
  get perSecond(): number | undefined {
    const [first] = this.#samples;
    const last = this.#samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < APART_MS) return undefined;
    return ((last.bytes - first.bytes) * 1000) / (last.at - first.at);
  }
}
