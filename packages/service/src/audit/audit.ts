import type { Knex } from 'knex';

import type { CommonConfig } from '../config/keys.js';
import type { RowOf, FieldRows } from '../fields/row.js';
import type { FieldTable } from '../fields/table.js';
import type { Logger } from '../logging.js';
import type { AsLeader } from '../periodic/as-leader.js';
import type { PeriodicHandle, PeriodicWork } from '../periodic/periodic-work.js';
import { appendEntries, pruneEntries } from './chain.js';
import { recordOf } from './entry.js';
import type { AuditRecord, Caller, NewAuditEntry } from './entry.js';

export interface AuditOptions {
  readonly knex: Knex;
  /** Makes the removals. */
  readonly asLeader: AsLeader;
  /** Name of the pod. */
  readonly node: string;
  readonly config: Pick<CommonConfig, 'audit.max-entries'>;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** Told how many entries were written, lost or pruned. Default: nobody is. */
  readonly count?: (outcome: 'written' | 'lost' | 'pruned', entries: number) => void;
  /** Entries that wait for the database; more are lost, and counted. Default 10,000. */
  readonly capacity?: number;
}

/**
 * Appends the audit entry of a change in the transaction of the change, as its last statement.
 * @param before undefined: it is made. @param after undefined: it is deleted
 */
export type AuditChange<Row> = (trx: Knex, before: Row | undefined, after: Row | undefined) => Promise<void>;

/** Appends an audit entry in the transaction of what it tells, as its last statement. */
export type AuditWrite = (trx: Knex) => Promise<void>;

/** The part of the audit that changes need which are stored with their entry. */
export interface ChangeAudit {
  /** For what is no change of fields. */
  readonly entry: (entry: NewAuditEntry) => AuditWrite;
  /** @param id undefined: the row has it */
  readonly change: <F extends FieldRows>(
    fields: FieldTable<F>,
    by: Caller | undefined,
    id?: string,
  ) => AuditChange<RowOf<F>>;
}

const FLUSH_MS = 1000;
const PRUNE_MS = 60_000;
/** Entries of one statement. */
const BATCH = 500;

const PERMISSION_DENIED = '42501';

/**
 * The audit log of one app: entries that nobody changes afterwards, each with the hash of the one before.
 *
 * A change of the configuration is stored together with its entry (`change`), and so is an operation that is one transaction (`entry`).
 * Everything else is noted by subscribers of the event
 * stream (`note`), waits in memory, and is written in batches, soon: nobody waits for it. A pod that is killed loses what it noted
 * in the last second; while the database is away, entries beyond `capacity` are lost, and an entry says how many.
 */
export class Audit implements ChangeAudit {
  readonly #options: AuditOptions;
  #waiting: AuditRecord[] = [];
  #lost = 0;
  #writing: PeriodicHandle | undefined;
  #pruning: PeriodicHandle | undefined;
  #flushed: Promise<void> = Promise.resolve();
  #mayPrune = true;
  /** Entries that are due by the clock alone. */
  readonly #sources: (() => readonly NewAuditEntry[])[] = [];

  constructor(options: AuditOptions) {
    this.#options = options;
  }

  get knex(): Knex {
    return this.#options.knex;
  }

  /** To be called when the tables are there; may be called again. */
  start(): void {
    const { periodic } = this.#options;
    this.#writing ??= periodic.add({
      name: 'writing of the audit log',
      intervalMs: FLUSH_MS,
      run: () => this.flush(),
    });
    this.#pruning ??= periodic.add({
      name: 'pruning of the audit log',
      intervalMs: PRUNE_MS,
      jitter: 0.1,
      runsOn: 'leader',
      first: 'after an interval',
      run: (signal) => this.prune(signal),
    });
  }

  /** Writes what waits, as far as the database is there. */
  async stop(): Promise<void> {
    await this.#pruning?.remove();
    await this.#writing?.remove();
    await this.flush().catch((error: unknown) => {
      this.#options.logger.error({ err: error, entries: this.#waiting.length }, 'audit entries could not be written');
    });
  }

  /** Notes an entry, to be written soon. Returns at once, and never fails. */
  note(entry: NewAuditEntry): void {
    if (this.#waiting.length >= (this.#options.capacity ?? 10_000)) {
      this.#lost += 1;
      this.#options.count?.('lost', 1);
    } else this.#waiting.push(recordOf(entry, this.#options.node));
  }

  /** Asks `due` for entries each time when entries are written. */
  include(due: () => readonly NewAuditEntry[]): void {
    this.#sources.push(due);
  }

  entry(entry: NewAuditEntry): AuditWrite {
    return (trx) => this.#append(trx, [recordOf(entry, this.#options.node)]);
  }

  change<F extends FieldRows>(fields: FieldTable<F>, by: Caller | undefined, id?: string): AuditChange<RowOf<F>> {
    return async (trx, before, after) => {
      const changes = fields.differences(before, after);
      if (before !== undefined && after !== undefined && Object.keys(changes).length === 0) return;
      const action = before === undefined ? 'created' : after === undefined ? 'deleted' : 'changed';
      const row = (after ?? before) as Readonly<Record<string, unknown>> | undefined;
      const object = id ?? String(row?.[fields.key.column]);
      const entry = { by, action, objectType: fields.noun, object, details: { changes } };
      await this.#append(trx, [recordOf(entry, this.#options.node)]);
    };
  }

  /** Writes what was noted until now. @throws what the database does: it waits for the next time */
  flush(): Promise<void> {
    const work = this.#flushed.then(() => this.#flush());
    this.#flushed = work.catch(() => undefined);
    return work;
  }

  async #flush(): Promise<void> {
    for (const due of this.#sources) for (const entry of due()) this.note(entry);
    if (this.#lost > 0 && this.#waiting.length === 0) this.#noteLost();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      await this.#options.knex.transaction((trx) => this.#append(trx, batch));
      this.#waiting = this.#waiting.slice(batch.length);
      if (this.#waiting.length === 0 && this.#lost > 0) this.#noteLost();
    }
  }

  async #append(trx: Knex, records: readonly AuditRecord[]): Promise<void> {
    await appendEntries(trx, records);
    this.#options.count?.('written', records.length);
  }

  #noteLost(): void {
    const details = { entries: this.#lost };
    this.#lost = 0;
    this.note({ action: 'entries lost', objectType: 'audit', details });
  }

  /** Removes the oldest entries beyond `audit.max-entries`. */
  async prune(signal?: AbortSignal): Promise<void> {
    const { asLeader, config, logger } = this.#options;
    const keep = config['audit.max-entries'];
    if (keep === 0 || !this.#mayPrune) return;
    try {
      let gone = BATCH;
      while (gone === BATCH && signal?.aborted !== true) {
        gone = await asLeader((knex) => pruneEntries(knex, keep, BATCH));
        this.#options.count?.('pruned', gone);
      }
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== PERMISSION_DENIED) throw error;
      this.#mayPrune = false;
      logger.warn(
        'the audit log is not pruned: the role of the database may not delete its entries. Prune it as another role (docs/security.md), and set audit.max-entries to 0',
      );
    }
  }
}
