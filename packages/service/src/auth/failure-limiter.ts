export interface FailureLimiterOptions {
  /** Failures of one caller in a window before it is refused. Default 10. */
  readonly limit?: number;
  /** Length of a window in milliseconds, from the first failure in it. Default 60,000. */
  readonly windowMs?: number;
  /** Callers that are remembered; the oldest is forgotten first. Default 10,000. */
  readonly capacity?: number;
  /** Clock, milliseconds. Default: one that nobody can set back. */
  readonly now?: () => number;
}

/** Counts failed logins by caller, and remembers who has logged in. Successes cost nothing, so that a busy client is never limited. */
export class FailureLimiter {
  readonly #failures = new Map<string, { count: number; readonly until: number }>();
  readonly #known = new Set<string>();
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #capacity: number;
  readonly #now: () => number;

  constructor({
    limit = 10,
    windowMs = 60_000,
    capacity = 10_000,
    now = () => performance.now(),
  }: FailureLimiterOptions = {}) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#capacity = capacity;
    this.#now = now;
  }

  /** Seconds until this caller may try again; 0 when it may now. */
  blockedFor(caller: string): number {
    const entry = this.#failures.get(caller);
    if (entry === undefined) return 0;
    const left = entry.until - this.#now();
    if (left <= 0) {
      this.#failures.delete(caller);
      return 0;
    }
    return entry.count >= this.#limit ? Math.ceil(left / 1000) : 0;
  }

  failed(caller: string): void {
    const now = this.#now();
    const entry = this.#failures.get(caller);
    if (entry !== undefined && entry.until > now) {
      entry.count++;
      return;
    }
    this.#failures.delete(caller);
    this.#makeRoom(this.#failures);
    this.#failures.set(caller, { count: 1, until: now + this.#windowMs });
  }

  succeeded(caller: string): void {
    // Who logs in again comes to the end: the one that was seen least recently is forgotten first.
    if (!this.#known.delete(caller)) this.#makeRoom(this.#known);
    this.#known.add(caller);
  }

  /** Since this process started. */
  hasLoggedIn(caller: string): boolean {
    return this.#known.has(caller);
  }

  #makeRoom(callers: Map<string, unknown> | Set<string>): void {
    const oldest = callers.keys().next();
    if (callers.size >= this.#capacity && oldest.done !== true) callers.delete(oldest.value);
  }
}
