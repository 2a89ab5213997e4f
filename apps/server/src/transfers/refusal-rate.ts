/** The facts by which two refusals are equal. */
export interface RefusalKind {
  readonly partnerId: string;
  readonly listener: string;
  readonly direction: string;
  readonly virtualFileId: string;
  readonly diagnostic: string;
}

/** A record that stands for many refusals; kept by whoever writes it. */
export interface CountingRecord {
  /** Undefined until it is written. */
  id: number | undefined;
  occurrences: number;
  last: Date;
}

/** `counting`: a record that further ones are counted in, of `severalFiles` perhaps. `counted`: in such a one. */
export type Placed =
  | { readonly kind: 'own' }
  | { readonly kind: 'counting'; readonly record: CountingRecord; readonly severalFiles: boolean }
  | { readonly kind: 'counted'; readonly record: CountingRecord };

export interface RefusalRateOptions {
  /** Equal refusals within a minute that have records of their own. Default 10. */
  readonly perMinute?: number;
  /** Refusals of one partner within an hour that have. Default 1000. */
  readonly perHour?: number;
  /** Clock in milliseconds, for tests. */
  readonly now?: () => number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Kinds that are remembered; the one that was silent longest goes first. */
const MAX_KINDS = 4096;

interface Window {
  from: number;
  seen: number;
}

interface Kind extends Window {
  record: CountingRecord | undefined;
  /** When that record began. */
  since: number;
}

/**
 * Which refusals are worth a record of their own: a partner that asks for the same wrong thing again and again fills neither
 * the history nor the log. Beyond the rate they are counted in one record, until a minute has passed in which they were few; after
 * an hour in the next one. A partner that asks for ever new wrong things is bounded by the hour, and what comes then is told apart
 * by direction and diagnostic alone.
 */
export class RefusalRate {
  readonly #perMinute: number;
  readonly #perHour: number;
  readonly #now: () => number;
  readonly #kinds = new Map<string, Kind>();
  /** Windows of proven partners alone: as many as are configured, at most. */
  readonly #partners = new Map<string, Window>();

  constructor({ perMinute = 10, perHour = 1000, now = () => performance.now() }: RefusalRateOptions = {}) {
    this.#perMinute = perMinute;
    this.#perHour = perHour;
    this.#now = now;
  }

  place({ partnerId, listener, direction, virtualFileId, diagnostic }: RefusalKind): Placed {
    const known = [partnerId, listener, direction, diagnostic];
    const equal = this.#kindOf(JSON.stringify([...known, virtualFileId]), MINUTE_MS);
    if (equal.record !== undefined) return counted(equal.record);
    if (equal.seen > this.#perMinute) return this.#counting(equal, false);
    if (this.#mayHaveOwn(partnerId)) return { kind: 'own' };
    const similar = this.#kindOf(JSON.stringify(known), HOUR_MS);
    return similar.record === undefined ? this.#counting(similar, true) : counted(similar.record);
  }

  /** With this refusal. */
  #kindOf(key: string, windowMs: number): Kind {
    const now = this.#now();
    const kind = this.#kinds.get(key) ?? { from: now, seen: 0, record: undefined, since: now };
    const age = now - kind.from;
    if (age >= windowMs) {
      const goesOn = age < 2 * windowMs && kind.seen > this.#perMinute && now - kind.since < HOUR_MS;
      if (!goesOn) kind.record = undefined;
      kind.from = now;
      kind.seen = 0;
    }
    kind.seen += 1;
    // Behind the others: the first is the one that was silent longest.
    this.#kinds.delete(key);
    this.#kinds.set(key, kind);
    const [oldest] = this.#kinds.keys();
    if (this.#kinds.size > MAX_KINDS && oldest !== undefined) this.#kinds.delete(oldest);
    return kind;
  }

  #mayHaveOwn(partnerId: string): boolean {
    const now = this.#now();
    const window = this.#partners.get(partnerId) ?? { from: now, seen: 0 };
    if (now - window.from >= HOUR_MS) {
      window.from = now;
      window.seen = 0;
    }
    window.seen += 1;
    this.#partners.set(partnerId, window);
    return window.seen <= this.#perHour;
  }

  #counting(kind: Kind, severalFiles: boolean): Placed {
    kind.record = { id: undefined, occurrences: 1, last: new Date() };
    kind.since = this.#now();
    return { kind: 'counting', record: kind.record, severalFiles };
  }
}

const counted = (record: CountingRecord): Placed => {
  record.occurrences += 1;
  record.last = new Date();
  return { kind: 'counted', record };
};
