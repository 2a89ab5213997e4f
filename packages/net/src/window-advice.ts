/**
 * Computes which interval and window of sync points to ask a partner for (PI 7). A sender stops at `window` unacknowledged points, so
 * at most interval × window bytes cross a line in one round trip, however fast it is (docs/performance.md).
 */
import type { SyncPointOptions } from '@pesit-node/protocol';

/** Bytes a millisecond that the advice makes room for: a line of 1 Gbit/s. */
const WANTED_RATE = 125_000;
/** Milliseconds that a receiver may take to store a point before it acknowledges it. */
const STORING = 5;
const KB = 1024;
const SMALL_INTERVAL_KB = 256;
const LARGE_INTERVAL_KB = 1024;
const MIN_WINDOW = 4;
const MAX_WINDOW = 64;
/** The largest multiple of `SMALL_INTERVAL_KB` that PI 7 holds: 65,535 means undefined. */
const MAX_INTERVAL_KB = 65_280;

export interface WindowAdvice {
  readonly intervalKb: number;
  readonly window: number;
  /** One sentence for the operator. */
  readonly text: string;
}

/** PI 7 as negotiated: interval in bytes, 0 none; window in points, 0 without acknowledgements. */
export interface NegotiatedWindow {
  readonly syncInterval: number;
  readonly syncWindow: number;
}

/**
 * @param roundTripMs there and back
 * @param negotiated what the session has now
 * @param asked what was asked for: where the partner lowers the window alone, a longer interval does without it
 * @returns undefined where it already lets through what the line can carry
 */
export const windowAdvice = (
  roundTripMs: number,
  negotiated: NegotiatedWindow,
  asked?: SyncPointOptions,
): WindowAdvice | undefined => {
  const { syncInterval, syncWindow } = negotiated;
  if (syncInterval === 0 || syncWindow === 0) return undefined;
  const cycle = roundTripMs + STORING;
  const needed = WANTED_RATE * cycle;
  if (syncInterval * syncWindow >= needed) return undefined;
  const upTo = (kb: number, points: number) => `up to ${megabytes(kb * KB * points, cycle)} MB/s`;
  const now =
    `a round trip takes ${roundTripMs.toFixed(1)} ms: sync points every ${syncInterval / KB} KB × ${syncWindow} ` +
    `let about ${megabytes(syncInterval * syncWindow, cycle)} MB/s through`;
  if (asked !== undefined && asked.window > syncWindow && asked.intervalKb * KB === syncInterval) {
    const steps = Math.ceil(needed / (syncWindow * SMALL_INTERVAL_KB * KB));
    const farther = Math.min(MAX_INTERVAL_KB, steps * SMALL_INTERVAL_KB);
    const text =
      `${now}; the partner lowers the window from ${asked.window} to ${syncWindow}: ` +
      `set syncInterval to ${farther} (${farther} KB × ${syncWindow}: ${upTo(farther, syncWindow)}), or ask it for a larger window`;
    if (farther * KB > syncInterval) return { intervalKb: farther, window: syncWindow, text };
  }
  const intervalKb = needed > MIN_WINDOW * SMALL_INTERVAL_KB * KB ? LARGE_INTERVAL_KB : SMALL_INTERVAL_KB;
  const window = Math.min(MAX_WINDOW, Math.max(MIN_WINDOW, Math.ceil(needed / (intervalKb * KB))));
  const text =
    `${now}; ask the partner for ${intervalKb} KB × ${window} ` +
    `(syncInterval ${intervalKb}, syncWindow ${window}: ${upTo(intervalKb, window)})`;
  return { intervalKb, window, text };
};

const megabytes = (bytes: number, milliseconds: number) => {
  const rate = bytes / 1000 / milliseconds;
  return rate.toFixed(rate < 10 ? 1 : 0);
};
