import { codeOf } from '@pesit-node/ground';

import { byTimer } from '../leases/lease-clock.js';
import type { LeaseTime } from '../leases/lease-clock.js';
import { isDatabaseUnavailable } from './faults.js';

export interface BatchesOptions<Row, Answer> {
  /** One statement for all rows, committed when it resolves: an answer for each, in their order. */
  readonly run: (rows: readonly Row[]) => Promise<readonly Answer[]>;
  /** How many callers may come, those that wait already included. Default: 0, nobody waits for company. */
  readonly underWay?: (() => number) | undefined;
  /** Default: `performance.now()` and timers. */
  readonly time?: Partial<LeaseTime>;
}

interface Waiting<Row, Answer> {
  readonly row: Row;
  readonly since: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** Rows of one statement, at most. */
const MOST = 64;
/** From more than so many transfers under way on, a statement waits for company, */
const MANY = 8;
/** at most so long after the first of its rows came, milliseconds. */
const COMPANY_MS = 2;

/** SQLSTATE of statements that lost to others, and were taken back: which row was in the way each finds out alone. */
const LOST_TO_OTHERS = new Set(['40001', '40P01']);

/**
 * A statement that many callers need at the same time, each for a row of its own, made once for several of them: one commit, and one
 * round trip. One statement is in flight; the rows that arrive meanwhile go into the next, up to 64, in their order.
 *
 * - A caller is answered when the statement with its row is committed, never before.
 * - A statement that fails because of one of its rows has changed nothing: each row is made again by a statement of its own, and
 *   fails alone.
 * - When its outcome is not known, or the database is away, every caller of it gets the error, as if the statement had been its
 *   own. Nothing is made again here: what an unknown outcome means for a row its caller knows.
 * - A caller that is alone never waits. Where more than eight transfers are under way, a statement that could begin waits until
 *   all of them are there, for 2 ms at most.
 *
 * The rows of a batch share its fate, so its statement must not wait for the lock of one of them: it leaves such a row out (`skip
 * locked`) and answers so, for the caller to try alone.
 */
export class Batches<Row, Answer> {
  readonly #options: BatchesOptions<Row, Answer>;
  readonly #time: LeaseTime;
  readonly #waiting: Waiting<Row, Answer>[] = [];
  #isRunning = false;
  /** Ends the wait for company. */
  #enough: (() => void) | undefined;

  constructor(options: BatchesOptions<Row, Answer>) {
    this.#options = options;
    this.#time = { monotonic: () => performance.now(), alarm: byTimer, ...options.time };
  }

  /** @throws what the statement with this row threw */
  add(row: Row): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, since: this.#time.monotonic(), resolve, reject });
      if (!this.#isRunning) void this.#run();
      else if (this.#isComplete()) this.#enough?.();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const left = first.since + COMPANY_MS - this.#time.monotonic();
      if (left > 0 && !this.#isComplete()) await this.#company(left);
      await this.#make(this.#waiting.splice(0, MOST));
    }
    this.#isRunning = false;
  }

  /** Nobody is missing whom it would pay to wait for. */
  #isComplete(): boolean {
    const { underWay = () => 0 } = this.#options;
    const expected = underWay();
    return expected <= MANY || this.#waiting.length >= Math.min(MOST, expected);
  }

  async #company(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#time.alarm(ms, resolve);
      this.#enough = () => {
        cancel();
        resolve();
      };
    });
    this.#enough = undefined;
  }

  async #make(batch: readonly Waiting<Row, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.run(batch.map(({ row }) => row));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      if (batch.length > 1 && isOfOneRow(error)) await this.#alone(batch);
      else for (const { reject } of batch) reject(error);
    }
  }

  async #alone(batch: readonly Waiting<Row, Answer>[]): Promise<void> {
    let away: { readonly error: unknown } | undefined;
    for (const { row, resolve, reject } of batch) {
      try {
        if (away !== undefined) throw away.error;
        const [answer] = await this.#options.run([row]);
        resolve(answer as Answer);
      } catch (error) {
        if (!isOfOneRow(error)) away ??= { error };
        reject(error);
      }
    }
  }
}

const isOfOneRow = (error: unknown): boolean =>
  !isDatabaseUnavailable(error) || LOST_TO_OTHERS.has(codeOf(error) ?? '');

/**
 * `run` of a batch whose statement only reads: callers with the same key are one row of the statement, and share its answer, which nobody
 * may change.
 */
export const oncePerKey =
  <Row, Answer>(
    keyOf: (row: Row) => string,
    run: BatchesOptions<Row, Answer>['run'],
  ): BatchesOptions<Row, Answer>['run'] =>
  async (rows) => {
    const places = new Map<string, number>();
    const distinct: Row[] = [];
    const placeOf = rows.map((row) => {
      const key = keyOf(row);
      const known = places.get(key);
      if (known !== undefined) return known;
      const place = distinct.push(row) - 1;
      places.set(key, place);
      return place;
    });
    const answers = await run(distinct);
    return placeOf.map((place) => answers[place] as Answer);
  };

const asText = (_key: string, value: unknown): unknown =>
  typeof value === 'string' ? Buffer.from(value).toString() : value;

/**
 * The rows of a batch as the one value of its statement, for `json_to_recordset`. As when the driver sends a text by itself, half
 * a surrogate pair becomes U+FFFD, which JSON would refuse.
 */
export const jsonRows = (rows: readonly object[]): string => {
  const json = JSON.stringify(rows);
  return json.includes('\\ud') ? JSON.stringify(rows, asText) : json;
};

/** Bytes as JSON can carry them into a column of type bytea. */
export const jsonBytes = (bytes: Buffer | null | undefined): string | null =>
  bytes === null || bytes === undefined ? null : `\\x${bytes.toString('hex')}`;
