/** Milliseconds of a clock that nobody can set, and its alarms. */
export interface LeaseTime {
  readonly monotonic: () => number;
  /** Calls once after so many milliseconds; never keeps the process alive. @returns takes it back. */
  readonly alarm: (delayMs: number, ring: () => void) => () => void;
}

export interface LeaseTerms {
  /** As the database or Redis grants it, milliseconds. */
  readonly leaseMs: number;
  /** Share of the lease that its holder gives up at the end: clocks differ, and what was begun takes a while. Default 1/6. */
  readonly margin?: number;
  /** Called once a term, when it ends otherwise than by `end`. */
  readonly over?: () => void;
  /** Default: `performance.now()` and timers. */
  readonly time?: Partial<LeaseTime>;
}

const MARGIN = 1 / 6;
/** A third of the lease passes between two renewals: one that is late harms nobody. */
const RENEWALS = 3;

export const byTimer = (delayMs: number, ring: () => void): (() => void) => {
  const timer = setTimeout(ring, delayMs).unref();
  return () => {
    clearTimeout(timer);
  };
};

/** Between two renewals, milliseconds. */
export const renewalMs = (leaseMs: number): number => leaseMs / RENEWALS;

/**
 * A lease as its holder counts it. The one who grants it counts from then; the holder only knows when it asked, so it counts
 * from there, by a clock that nobody can set, and gives up a margin before the end: whatever the statement and its answer took,
 * it never believes in a lease that another could have. Only a process that stands still between its look at the lease and what it does next can be late: that
 * is what fences are for.
 *
 * `const since = clock.now()`, then the statement that takes or renews the lease, then `clock.granted(since)`.
 */
export class LeaseClock {
  readonly leaseMs: number;
  readonly #holdMs: number;
  readonly #over: () => void;
  readonly #time: LeaseTime;
  #held: { readonly term: number; readonly since: number; readonly until: number } | undefined;
  #terms = 0;
  #silence: () => void = () => undefined;

  constructor({ leaseMs, margin = MARGIN, over = () => undefined, time }: LeaseTerms) {
    this.leaseMs = leaseMs;
    this.#holdMs = leaseMs * (1 - margin);
    this.#over = over;
    this.#time = { monotonic: () => performance.now(), alarm: byTimer, ...time };
  }

  /** To be read before the statement that asks for the lease. */
  now(): number {
    return this.#time.monotonic();
  }

  /**
   * Number of the time without a gap in which this process holds the lease; undefined when it does not. Work that was begun in
   * a term and finds another one may have been taken over in between.
   */
  get term(): number | undefined {
    const held = this.#held;
    return held !== undefined && this.now() < held.until ? held.term : undefined;
  }

  get isHeld(): boolean {
    return this.term !== undefined;
  }

  /** A quarter of the lease has passed since it was asked for, or it is not held: time to ask again. */
  get isDue(): boolean {
    return this.#held === undefined || this.now() - this.#held.since >= this.leaseMs / 4;
  }

  /**
   * A statement sent at `since` has taken or renewed the lease.
   * @returns false when the answer came too late to be used
   */
  granted(since: number): boolean {
    this.#giveUpInTime();
    const until = since + this.#holdMs;
    if (this.#held !== undefined && until <= this.#held.until) return true;
    if (this.now() >= until) return this.isHeld;
    this.#held = { term: this.#held?.term ?? ++this.#terms, since, until };
    this.#giveUpInTime();
    return true;
  }

  /** Another has it, as the database says. */
  lost(): void {
    if (this.end()) this.#over();
  }

  /** Given back, or no longer needed. @returns whether it was held until now */
  end(): boolean {
    const wasHeld = this.#held !== undefined;
    this.#held = undefined;
    this.#silence();
    return wasHeld;
  }

  /** An alarm may ring early: it is set again. */
  #giveUpInTime(): void {
    if (this.#held === undefined) return;
    const left = this.#held.until - this.now();
    this.#silence();
    if (left > 0) this.#silence = this.#time.alarm(Math.ceil(left), () => this.#giveUpInTime());
    else this.lost();
  }
}

/**
 * Renews many leases of this process by one statement; it loses those that the statement does not find.
 * @param renew takes the keys. @returns an entry for each that is this process's still
 * @throws what `renew` does: the leases are held until they run out
 */
export const renewTogether = async <Key, Renewed>(
  leases: ReadonlyMap<Key, LeaseClock>,
  renew: (keys: readonly Key[]) => Promise<ReadonlyMap<Key, Renewed>>,
): Promise<ReadonlyMap<Key, Renewed>> => {
  const asked = [...leases].map(([key, clock]) => ({ key, clock, since: clock.now() }));
  const renewed = await renew(asked.map(({ key }) => key));
  for (const { key, clock, since } of asked) {
    // Ended meanwhile: given back, or the work is done.
    if (leases.get(key) !== clock) continue;
    if (renewed.has(key)) clock.granted(since);
    else clock.lost();
  }
  return renewed;
};
