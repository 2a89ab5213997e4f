import type { Knex } from 'knex';

import type { Outbox } from './outbox.js';
import type { RefusedStart, TransferFailure, TransferStart } from './record.js';
import { RefusalRate } from './refusal-rate.js';
import type { CountingRecord } from './refusal-rate.js';

export interface RefusalsOptions {
  readonly knex: Knex;
  readonly outbox: Outbox;
  /** Writes a record. @returns its number */
  readonly insert: (start: RefusedStart, failure: TransferFailure) => Promise<number>;
  /** Default: one of its own. */
  readonly rate?: RefusalRate;
}

/** How a refusal was recorded. */
export interface RecordedRefusal {
  /** `own`: a record of its own. `counting`: one that further ones are counted in. `counted`: no more than that. */
  readonly kind: 'own' | 'counting' | 'counted';
  /** Settles when the record is written, at once when it is only counted. Never rejects. */
  readonly written: Promise<void>;
}

/**
 * Files that were refused before anything was transferred. A partner can cause as many as it likes: beyond the rate of
 * `RefusalRate` they cost no statement, and are written by `flush`, all of them in one.
 */
export class Refusals {
  readonly #options: RefusalsOptions;
  readonly #rate: RefusalRate;
  /** Records whose figures in the database are not the newest. */
  readonly #changed = new Set<CountingRecord>();
  #flushing: Promise<void> | undefined;

  constructor(options: RefusalsOptions) {
    this.#options = options;
    this.#rate = options.rate ?? new RefusalRate();
  }

  add(start: TransferStart, failure: TransferFailure): RecordedRefusal {
    const placed = this.#rate.place({ ...start, diagnostic: failure.diagnostic });
    if (placed.kind === 'own') return { kind: 'own', written: this.#insert(start, failure) };
    const { record } = placed;
    if (placed.kind === 'counted') {
      this.#changed.add(record);
      return { kind: 'counted', written: Promise.resolve() };
    }
    const many = 'more of the same are counted in this record';
    const several = `refusals of ${start.partnerId} with this diagnostic are counted in this record, for there were very many, of several virtual files; the first was of ${JSON.stringify(start.virtualFileId)}`;
    const message = placed.severalFiles ? `${several}: ${failure.message}` : `${failure.message}; ${many}`;
    const of = placed.severalFiles ? { ...start, virtualFileId: null } : start;
    return { kind: 'counting', written: this.#insert(of, { ...failure, message }, record) };
  }

  /** Writes the figures that have changed, in one statement; later when the database is away. Never rejects. */
  flush(): Promise<void> {
    if (this.#changed.size === 0) return this.#flushing ?? Promise.resolve();
    // While one waits for the database, it is the one that will write what comes meanwhile.
    this.#flushing ??= this.#options.outbox
      .add('figures of refused transfers', () => this.#write())
      .finally(() => (this.#flushing = undefined));
    return this.#flushing;
  }

  async #write(): Promise<void> {
    const written = [...this.#changed].map((record) => ({ ...record, record })).filter(({ id }) => id !== undefined);
    if (written.length === 0) return;
    await this.#options.knex.raw(
      // This process alone counts in its records: the same figures may be written twice.
      `update transfers t set occurrences = v.occurrences, last_occurrence = v.last
       from unnest(?::bigint[], ?::bigint[], ?::timestamptz[]) as v (id, occurrences, last) where t.id = v.id`,
      [
        written.map(({ id }) => id as number),
        written.map(({ occurrences }) => occurrences),
        written.map(({ last }) => last),
      ],
    );
    for (const { record, occurrences } of written) {
      if (record.occurrences === occurrences) this.#changed.delete(record);
    }
  }

  #insert(start: RefusedStart, failure: TransferFailure, record?: CountingRecord): Promise<void> {
    return this.#options.outbox.add('refused transfer', async () => {
      const id = await this.#options.insert(start, failure);
      if (record !== undefined) record.id = id;
    });
  }
}
