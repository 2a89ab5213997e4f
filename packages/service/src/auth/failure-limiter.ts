export interface FailureLimiterOptions {
  /** Failures of one address in a window before it is refused. Default 10. */
  readonly limit?: number;
  /** Length of a window in milliseconds, from the first failure in it. Default 60,000. */
  readonly windowMs?: number;
  /** Addresses that are remembered; the oldest is forgotten first. Default 10,000. */
  readonly capacity?: number;
  /** Clock, for tests. */
  readonly now?: () => number;
}

/**
 * Counts failed logins by address. Successes cost nothing, so that a busy client is never limited; an address over the limit
 * is refused even with the right password, or guessing would go on unhindered.
 */
export class FailureLimiter {
  readonly #failures = new Map<string, { count: number; readonly until: number }>();
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #capacity: number;
  readonly #now: () => number;

  constructor({ limit = 10, windowMs = 60_000, capacity = 10_000, now = Date.now }: FailureLimiterOptions = {}) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#capacity = capacity;
    this.#now = now;
  }

  /** Seconds until this address may try again; 0 when it may now. */
  blockedFor(address: string): number {
    const entry = this.#failures.get(address);
    if (entry === undefined) return 0;
    const left = entry.until - this.#now();
    if (left <= 0) {
      this.#failures.delete(address);
      return 0;
    }
    return entry.count >= this.#limit ? Math.ceil(left / 1000) : 0;
  }

  failed(address: string): void {
    const now = this.#now();
    const entry = this.#failures.get(address);
    if (entry !== undefined && entry.until > now) {
      entry.count++;
      return;
    }
    this.#failures.delete(address);
    const oldest = this.#failures.keys().next();
    if (this.#failures.size >= this.#capacity && oldest.done !== true) this.#failures.delete(oldest.value);
    this.#failures.set(address, { count: 1, until: now + this.#windowMs });
  }
}
