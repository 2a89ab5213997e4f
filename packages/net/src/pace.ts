/** Limits that hold the data of a transfer back, and where the limits of a process are found. */
import type { SyncPointOptions } from '@pesit-node/protocol';
import { RateLimit } from './rate-limit.js';
import type { RateClock, RateShare } from './rate-limit.js';

/** The limits of one transfer: `take` of all of them. */
export interface Pace extends RateShare {
  /** Bytes that it should ask for at a time: more at once would be less smooth, and less fair. */
  readonly quantum: number;
}

/** A limit by its name, such as `partner ACME`. */
export interface NamedRate {
  readonly name: string;
  /** Bytes a second; null: none. */
  readonly bytesPerSecond: number | null;
}

/** The least limit, bytes a second: below it, those who wait for an acknowledgement or for data would wait longer than Tp (§4.6). */
export const LEAST_RATE = 65_536;

const QUANTUM = { least: 4096, most: 64 * 1024, perSecond: 10 } as const;

/** Seconds that what is on its way between two acknowledgements may take: a third of Tp, for which a partner waits (§4.6). */
const UNACKNOWLEDGED_S = 10;

/** Beyond so many, limits that are as if they were new are forgotten. */
const KEPT = 256;

/** The limits of this process, by their names. */
export class Rates {
  readonly #clock: RateClock | undefined;
  readonly #limits = new Map<string, RateLimit>();

  constructor(clock?: RateClock) {
    this.#clock = clock;
  }

  /**
   * For a transfer that begins: what each limit says now counts for all transfers that share it.
   * @returns undefined when nothing limits it
   */
  pace(named: readonly NamedRate[]): Pace | undefined {
    const rates: number[] = [];
    const shares: RateShare[] = [];
    for (const { name, bytesPerSecond } of named) {
      const known = this.#limits.get(name);
      if (known !== undefined) known.rate = bytesPerSecond ?? undefined;
      if (bytesPerSecond === null) continue;
      rates.push(bytesPerSecond);
      shares.push((known ?? this.#made(name, bytesPerSecond)).share());
    }
    if (shares.length === 0) return undefined;
    const quantum = Math.floor(Math.min(...rates) / QUANTUM.perSecond);
    return {
      quantum: Math.min(QUANTUM.most, Math.max(QUANTUM.least, quantum)),
      take: (bytes) => takeAll(shares, bytes),
      close: () => {
        for (const share of shares) share.close();
      },
    };
  }

  #made(name: string, rate: number): RateLimit {
    if (this.#limits.size >= KEPT)
      for (const [other, limit] of this.#limits) if (limit.isIdle) this.#limits.delete(other);
    const limit = new RateLimit(rate, this.#clock);
    this.#limits.set(name, limit);
    return limit;
  }
}

/** All are told at once that the bytes have passed; the slowest says when more may. */
const takeAll = (shares: readonly RateShare[], bytes: number): Promise<void> | undefined => {
  const waits = shares.map((share) => share.take(bytes)).filter((free) => free !== undefined);
  return waits.length < 2 ? waits[0] : Promise.all(waits).then(() => undefined);
};

/**
 * Sync points for a limited transfer (PI 7): no more on its way without an acknowledgement than passes in some seconds, so that
 * whoever waits for one gets it before Tp is over.
 */
export const pacedSyncPoints = <S extends SyncPointOptions>(points: S, rates: readonly (number | null)[]): S => {
  const slowest = Math.min(...rates.filter((rate) => rate !== null));
  if (!Number.isFinite(slowest) || points.window === 0 || points.intervalKb === 0) return points;
  const mostKb = Math.max(1, Math.floor((slowest * UNACKNOWLEDGED_S) / 1024));
  const intervalKb = Math.min(points.intervalKb, mostKb);
  return { ...points, intervalKb, window: Math.max(1, Math.min(points.window, Math.floor(mostKb / intervalKb))) };
};
