import type { NewAuditEntry } from './entry.js';

export interface CollapseOptions {
  /** How many entries these may make in an hour, repeats and what is summed up aside. */
  readonly perHour: number;
  /** Clock, milliseconds. Default: one that nobody can set back. */
  readonly now?: () => number;
}

interface Repeats {
  readonly entry: NewAuditEntry;
  count: number;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/**
 * Bounds entries that strangers can cause, so that no flood flushes the log: the first of a kind in a minute is noted, those
 * that are equal follow as one with their number; beyond `perHour` in an hour all others are one a minute.
 */
export class Collapse {
  readonly #options: Required<CollapseOptions>;
  readonly #repeats = new Map<string, Repeats>();
  #others: Repeats | undefined;
  #hour = 0;
  #minute = 0;
  #left: number;

  constructor(options: CollapseOptions) {
    this.#options = { now: () => performance.now(), ...options };
    this.#left = options.perHour;
  }

  /**
   * @param key equal for entries that are repeats of each other
   * @returns the entries to be written now
   */
  take(key: string, entry: NewAuditEntry): readonly NewAuditEntry[] {
    const due = this.due();
    const known = this.#repeats.get(key);
    if (known !== undefined) {
      known.count += 1;
      return due;
    }
    if (this.#left > 0) {
      this.#left -= 1;
      this.#repeats.set(key, { entry, count: 0 });
      return [...due, entry];
    }
    const { action, objectType } = entry;
    this.#others ??= { entry: { action, objectType }, count: 0 };
    this.#others.count += 1;
    return due;
  }

  /** The entries of minutes that are over; to be asked from time to time. @param end also those of the minute that is not */
  due(end = false): readonly NewAuditEntry[] {
    const now = this.#options.now();
    if (now - this.#hour >= HOUR_MS) [this.#hour, this.#left] = [now, this.#options.perHour];
    if (now - this.#minute < MINUTE_MS && !end) return [];
    this.#minute = now;
    const all = [...this.#repeats.values(), ...(this.#others === undefined ? [] : [this.#others])];
    this.#repeats.clear();
    this.#others = undefined;
    return all
      .filter(({ count }) => count > 0)
      .map(({ entry, count }) => ({ ...entry, details: { ...entry.details, times: count } }));
  }
}
