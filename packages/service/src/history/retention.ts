import type { Knex } from 'knex';

import type { CommonConfig } from '../config/keys.js';
import type { Logger } from '../logging.js';
import type { AsLeader } from '../periodic/as-leader.js';
import type { PeriodicHandle, PeriodicWork } from '../periodic/periodic-work.js';
import type { HistoryKey } from './fields.js';
import { candidates, walksOf } from './statements.js';
import type { HistoryTable, Period } from './table.js';

/** Statuses of transfers that have ended. */
export const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED'] as const;
export type EndedStatus = (typeof ENDED)[number];

interface StatusFilter extends Period {
  readonly status?: string | undefined;
}

export interface RetentionOptions<F extends StatusFilter> {
  readonly knex: Knex;
  /** Makes the removals. */
  readonly asLeader: AsLeader;
  /** With columns `status`, `end_time` and `restartable`. */
  readonly table: HistoryTable<F>;
  /** Days that records of a status are kept after their end; asked each time. */
  readonly days: (status: EndedStatus) => number;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** Records that one statement looks at: as long are their rows locked. Default 1,000. */
  readonly batch?: number;
}

/** Days by the configuration. @param least what something else needs of every record */
export const retentionDays =
  (config: CommonConfig, least = 1): RetentionOptions<StatusFilter>['days'] =>
  (status) => {
    const own = {
      COMPLETED: config['history.retention-days-completed'],
      FAILED: config['history.retention-days-failed'],
      CANCELLED: config['history.retention-days-cancelled'],
    }[status];
    return Math.max(own === 0 ? config['history.retention-days'] : own, least);
  };

interface Batch {
  readonly walked: number;
  readonly gone: number;
  readonly time: string | null;
  readonly id: string | null;
}

const HOUR_MS = 3_600_000;
const BATCH = 1000;

/**
 * Removes old records of a history, on the leader: batch by batch from the oldest on, each a short statement that no transfer waits
 * for. A record that is taken up again meanwhile is no longer of its status when its turn comes, and stays.
 */
export class HistoryRetention<F extends StatusFilter> {
  readonly #options: RetentionOptions<F>;
  #task: PeriodicHandle | undefined;

  constructor(options: RetentionOptions<F>) {
    this.#options = options;
  }

  /** To be called when the database is there; may be called again. */
  start(): void {
    this.#task ??= this.#options.periodic.add({
      name: 'removal of old records of the history',
      intervalMs: HOUR_MS,
      jitter: 0.1,
      runsOn: 'leader',
      run: async (signal) => {
        await this.run(signal);
      },
    });
  }

  async stop(): Promise<void> {
    await this.#task?.remove();
  }

  /** @returns how many were removed, by status */
  async run(signal?: AbortSignal): Promise<Readonly<Record<EndedStatus, number>>> {
    const removed = { COMPLETED: 0, FAILED: 0, CANCELLED: 0 };
    try {
      for (const status of ENDED) {
        const days = this.#options.days(status);
        // The clock that stamped the records: one that is wrong here must not remove them.
        const { rows } = await this.#options.knex.raw<{ rows: [{ readonly before: Date }] }>(
          'select now() - make_interval(days => ?) as before',
          [days],
        );
        const { before } = rows[0];
        for (let after: HistoryKey | undefined; signal?.aborted !== true;) {
          const { walked, gone, time, id } = await this.#remove(status, before, after);
          removed[status] += gone;
          if (walked < (this.#options.batch ?? BATCH) || time === null || id === null) break;
          after = { time, id };
        }
      }
    } finally {
      const total = ENDED.reduce((sum, status) => sum + removed[status], 0);
      if (total > 0) this.#options.logger.info({ ...removed }, 'removed old records of the history');
    }
    return removed;
  }

  async #remove(status: EndedStatus, before: Date, after: HistoryKey | undefined): Promise<Batch> {
    const { asLeader, table, batch = BATCH } = this.#options;
    const filter = { status, to: before } as F;
    const walks = walksOf(table, filter);
    const walk = walks.find(({ way }) => way.serves.length > 0) ?? walks.at(-1);
    if (walk === undefined) throw new Error(`no way to the records of ${table.table}`);
    const walked = candidates(table, walk, filter, { order: 'asc', after, limit: batch });
    const statement = (transaction: Knex) =>
      transaction.raw<{ rows: [Batch] }>(
        `with walked as materialized (select found_id, found_time from ${walked.sql} walking), gone as (
         delete from ${table.table} t using walked
         where t.${table.id.column} = found_id and t.status = ? and t.end_time < ? and not t.restartable
         returning 1
       ), last as (select found_id, found_time from walked order by found_time desc, found_id desc limit 1)
       select (select count(*) from walked)::int as walked, (select count(*) from gone)::int as gone,
         (select (extract(epoch from found_time) * 1000000)::bigint::text from last) as time,
         (select found_id::text from last) as id`,
        [...walked.values, status, before],
      );
    return (await asLeader(statement)).rows[0];
  }
}
