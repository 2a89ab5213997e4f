export interface LogBudgetOptions {
  /** Lines about one key in a window. Default 10. */
  readonly perKey?: number;
  /** Lines in a window. Default 100. */
  readonly total?: number;
  /** Length of a window, milliseconds. Default 60,000. */
  readonly windowMs?: number;
  /** Clock, milliseconds. Default: one that nobody can set back. */
  readonly now?: () => number;
}

/** Bounds the log lines that strangers can cause: beyond it they are counted, and the next line says how many were left out. */
export class LogBudget {
  readonly #perKey: number;
  readonly #total: number;
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #written = new Map<string, number>();
  #lines = 0;
  #leftOut = 0;
  #until = 0;

  constructor({ perKey = 10, total = 100, windowMs = 60_000, now = () => performance.now() }: LogBudgetOptions = {}) {
    this.#perKey = perKey;
    this.#total = total;
    this.#windowMs = windowMs;
    this.#now = now;
  }

  /**
   * Asks for one line about `key` (an address, for example).
   * @returns how many lines were left out since the last one that was written; undefined: leave this one out, too
   */
  take(key: string): number | undefined {
    const now = this.#now();
    if (now >= this.#until) {
      this.#until = now + this.#windowMs;
      this.#written.clear();
      this.#lines = 0;
    }
    const written = this.#written.get(key) ?? 0;
    if (written >= this.#perKey || this.#lines >= this.#total) {
      this.#leftOut++;
      return undefined;
    }
    this.#written.set(key, written + 1);
    this.#lines++;
    const leftOut = this.#leftOut;
    this.#leftOut = 0;
    return leftOut;
  }
}
