/**
 * Bytes a second, shared by the transfers of one partner, listener or remote server in this process.
 *
 * A limit has credit, which time refills up to what it gives in `SLICE_MS`: a rest is made up for by so much alone. Bytes that
 * have passed are taken from the credit, below zero too; a transfer continues at once while there is some left, and else waits. Those that
 * wait are served in the order of start-time fair queueing (Goyal, 1996): by where each would stand if bytes were served one by
 * one, so that a transfer of long articles gets no more than one of short ones. One timer for a limit, while somebody waits.
 */

/** Clock and timer, for tests. */
export interface RateClock {
  /** Milliseconds. */
  readonly now: () => number;
  /** @returns how to call it off */
  readonly after: (ms: number, run: () => void) => () => void;
}

const SYSTEM: RateClock = {
  now: () => performance.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};

/** Credit is worth at most so much time. */
const SLICE_MS = 100;
/** Between two looks: shorter ones cost more than they smooth. */
const LEAST_WAIT_MS = 5;

/** The part of one transfer in a limit. */
export interface RateShare {
  /**
   * Says that `bytes` have passed, in either direction.
   * @returns undefined: more may pass at once; else resolves when it may, or the share is given up. Never rejects.
   */
  readonly take: (bytes: number) => Promise<void> | undefined;
  /** The transfer is over: nothing of it waits any longer. */
  readonly close: () => void;
}

interface Waiting {
  bytes: number;
  readonly free: Promise<void>;
  readonly go: () => void;
}

interface Flow {
  /** Virtual time at which its next bytes begin: bytes. */
  next: number;
  waiting: Waiting | undefined;
  closed: boolean;
}

const waitingFor = (bytes: number): Waiting => {
  let go = (): void => undefined;
  const free = new Promise<void>((resolve) => {
    go = resolve;
  });
  return { bytes, free, go };
};

export class RateLimit {
  readonly #clock: RateClock;
  /** Those who wait. */
  readonly #waiting = new Set<Flow>();
  /** Bytes a second; undefined: no limit. */
  #rate: number | undefined;
  #credit = 0;
  #at: number;
  /** Virtual time: where the flow that was served last began, bytes. */
  #virtual = 0;
  #callOff: (() => void) | undefined;

  constructor(rate: number | undefined, clock = SYSTEM) {
    this.#clock = clock;
    this.#at = clock.now();
    this.#rate = rate;
    this.#credit = this.#most;
  }

  /** Counts at once, for those who wait too. */
  set rate(rate: number | undefined) {
    if (rate === this.#rate) return;
    this.#refill();
    this.#rate = rate;
    this.#credit = Math.min(this.#credit, this.#most);
    this.#serve();
  }

  /** Whether it is as if it were new. */
  get isIdle(): boolean {
    this.#refill();
    return this.#waiting.size === 0 && this.#credit >= this.#most;
  }

  share(): RateShare {
    const flow: Flow = { next: 0, waiting: undefined, closed: false };
    return {
      take: (bytes) => this.#take(flow, bytes),
      close: () => {
        flow.closed = true;
        const { waiting } = flow;
        if (waiting === undefined) return;
        // They have passed: others wait for them.
        this.#pay(flow, waiting);
        if (this.#waiting.size === 0) this.#rest();
      },
    };
  }

  get #most(): number {
    return this.#rate === undefined ? 0 : (this.#rate * SLICE_MS) / 1000;
  }

  #take(flow: Flow, bytes: number): Promise<void> | undefined {
    if (this.#rate === undefined || flow.closed) return undefined;
    if (flow.waiting !== undefined) {
      flow.waiting.bytes += bytes;
      return flow.waiting.free;
    }
    this.#refill();
    flow.waiting = waitingFor(bytes);
    const { free } = flow.waiting;
    if (this.#credit > 0 && this.#waiting.size === 0) {
      this.#pay(flow, flow.waiting);
      return undefined;
    }
    this.#waiting.add(flow);
    this.#watch();
    return free;
  }

  #refill(): void {
    const now = this.#clock.now();
    const earned = ((now - this.#at) / 1000) * (this.#rate ?? 0);
    this.#at = now;
    this.#credit = Math.min(this.#most, this.#credit + earned);
  }

  #startOf(flow: Flow): number {
    return Math.max(flow.next, this.#virtual);
  }

  #pay(flow: Flow, { bytes, go }: Waiting): void {
    this.#virtual = this.#startOf(flow);
    flow.next = this.#virtual + bytes;
    flow.waiting = undefined;
    this.#waiting.delete(flow);
    if (this.#rate !== undefined) this.#credit -= bytes;
    go();
  }

  /** Whose turn it is: of those that are equal, the one that waits longest. */
  #nextOf(): Flow | undefined {
    let first: Flow | undefined;
    for (const flow of this.#waiting)
      if (first === undefined || this.#startOf(flow) < this.#startOf(first)) first = flow;
    return first;
  }

  #serve(): void {
    this.#rest();
    this.#refill();
    while (this.#rate === undefined || this.#credit > 0) {
      const flow = this.#nextOf();
      if (flow?.waiting === undefined) break;
      this.#pay(flow, flow.waiting);
    }
    this.#watch();
  }

  #watch(): void {
    if (this.#callOff !== undefined || this.#rate === undefined || this.#waiting.size === 0) return;
    const ms = Math.ceil(((1 - this.#credit) / this.#rate) * 1000);
    this.#callOff = this.#clock.after(Math.max(LEAST_WAIT_MS, ms), () => {
      this.#callOff = undefined;
      this.#serve();
    });
  }

  #rest(): void {
    this.#callOff?.();
    this.#callOff = undefined;
  }
}
