import { licenseTime, mergeRecords, observe, recovered, withSeenTimes } from './clock.js';
import type { ClockRecord, SeenTimes } from './clock.js';
import type { SharedRecord } from './shared-record.js';
import type { LicenseStore } from './store.js';
import { joinSeen } from './witness.js';
import type { LicenseWitness } from './witness.js';

export interface LicenseClock {
  /** Time of the clock, milliseconds since 1970. */
  now(): number;
  /** Milliseconds of a clock that nobody can set. */
  monotonic(): number;
}

export const SYSTEM_CLOCK: LicenseClock = { now: () => Date.now(), monotonic: () => performance.now() };

export interface TimekeeperOptions {
  readonly store: LicenseStore;
  readonly witnesses: readonly LicenseWitness[];
  /** The record in Redis, where there is one. */
  readonly shared: SharedRecord | undefined;
  readonly clock: LicenseClock;
  /** For the audit of the first start. */
  readonly node: string;
}

/** The stored times may be this much older than those of this process before they are written again. */
const WRITE_EVERY_MS = 60_000;

/** The clock record of this process, kept in step with the store's. The rules are those of `clock.ts`. */
export class Timekeeper {
  readonly #options: TimekeeperOptions;
  #record: ClockRecord | undefined;
  /** As it is in Redis; undefined until it was compared with what is there. */
  #shared: ClockRecord | undefined;
  #looked = 0;

  constructor(options: TimekeeperOptions) {
    this.#options = options;
  }

  get now(): number {
    return this.#options.clock.now();
  }

  /** Undefined until `sync` was done once. */
  get record(): ClockRecord | undefined {
    return this.#record;
  }

  /** The time that a paid license is measured by. */
  get paidTime(): number {
    return this.#record === undefined ? this.now : licenseTime(this.#record, this.now);
  }

  /** Looks at the clock. Does nothing before the first `sync`. */
  look(): void {
    if (this.#record === undefined) return;
    const at = this.#options.clock.monotonic();
    const ran = at - this.#looked;
    this.#looked = at;
    this.#record = observe(this.#record, { now: this.now, ran, starting: false });
  }

  /** Looks at the clock and at the store, and writes when the store is behind or incomplete. */
  async sync(): Promise<ClockRecord> {
    const { store, node } = this.#options;
    const stored = await store.clock();
    const own = this.#record === undefined ? await this.#begin(stored.record) : this.#goOn(stored.record);
    const record = await this.#share(stored.installation, own);
    return (this.#record =
      stored.whole && isRecent(stored.record, record) ? record : await store.mergeClock(record, node));
  }

  /** Writes the time a last time. */
  async flush(): Promise<void> {
    this.look();
    if (this.#record !== undefined) await this.#options.store.mergeClock(this.#record, this.#options.node);
  }

  async #begin(stored: ClockRecord | undefined): Promise<ClockRecord> {
    const { store, witnesses, clock } = this.#options;
    let seen: SeenTimes = await store.seen();
    for (const witness of witnesses) seen = joinSeen(seen, await witness.seen());
    const { now } = this;
    this.#looked = clock.monotonic();
    const record = stored === undefined ? recovered(seen, now) : withSeenTimes(stored, seen, now);
    return observe(record, { now, ran: 0, starting: true });
  }

  /** Redis may be away, or come later: then it is asked again at the next look. */
  async #share(installation: string | undefined, record: ClockRecord): Promise<ClockRecord> {
    const { shared } = this.#options;
    if (shared === undefined || installation === undefined || isRecent(this.#shared, record)) return record;
    try {
      return (this.#shared = await shared.meet(installation, record));
    } catch {
      return record;
    }
  }

  #goOn(stored: ClockRecord | undefined): ClockRecord {
    this.look();
    const known = this.#record as ClockRecord;
    return stored === undefined ? known : mergeRecords(known, stored);
  }
}

const isRecent = (stored: ClockRecord | undefined, record: ClockRecord): boolean =>
  stored?.startedAt === record.startedAt &&
  record.counted - stored.counted < WRITE_EVERY_MS &&
  record.highest - stored.highest < WRITE_EVERY_MS;
