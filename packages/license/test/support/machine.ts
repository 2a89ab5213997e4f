import { evaluationPeriod } from '../../src/state.js';
import type { Extension } from '../../src/state.js';
import { mergeRecords, observe, recovered } from '../../src/clock.js';
import type { ClockRecord } from '../../src/clock.js';
import { DAY_MS } from '../../src/claims.js';

export const HOUR_MS = 3_600_000;

/** A machine on a virtual clock: real time goes on, its clock shows what somebody set it to. */
export class Machine {
  real: number;
  /** What its clock is ahead of real time. */
  ahead = 0;
  record: ClockRecord | undefined;
  extensions: Extension[] = [];
  readonly evaluationDays: number;
  /** Real time during which the service ran and was not blocked. */
  used = 0;
  #running = false;

  constructor(start: string, evaluationDays = 30) {
    this.real = Date.parse(start);
    this.evaluationDays = evaluationDays;
  }

  get now(): number {
    return this.real + this.ahead;
  }

  setClock(to: string | number): this {
    this.ahead = (typeof to === 'number' ? to : Date.parse(to)) - this.real;
    return this;
  }

  start(): this {
    if (!this.#running) this.#look(0, true);
    this.#running = true;
    return this;
  }

  stop(): this {
    this.#running = false;
    return this;
  }

  /** Real time goes by; a running service looks at the clock every hour. */
  pass(ms: number): this {
    let left = ms;
    while (left > 0) {
      const step = Math.min(left, HOUR_MS);
      if (this.#running && this.remaining > 0) this.used += step;
      this.real += step;
      if (this.#running) this.#look(step, false);
      left -= step;
    }
    return this;
  }

  days(count: number): this {
    return this.pass(count * DAY_MS);
  }

  /** The record as an older copy of the database has it, or gone. The running service still knows its own. */
  restore(copy: ClockRecord): this {
    this.record = this.#running && this.record !== undefined ? mergeRecords(this.record, copy) : copy;
    return this;
  }

  extend(days: number): this {
    const record = this.record!;
    this.extensions.push({ days, at: this.#period().now, counted: record.counted });
    return this;
  }

  /** Milliseconds of evaluation that are left. */
  get remaining(): number {
    const { end, now } = this.#period();
    return Math.max(0, end - now);
  }

  get daysLeft(): number {
    return Math.ceil(this.remaining / DAY_MS);
  }

  #period() {
    return evaluationPeriod(
      { clock: this.record!, extensions: this.extensions, evaluationDays: this.evaluationDays },
      this.now,
    );
  }

  #look(ran: number, starting: boolean): void {
    this.record = observe(this.record ?? recovered({}, this.now), { now: this.now, ran, starting });
  }
}
