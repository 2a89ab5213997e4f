import type { Knex } from 'knex';

import type { Logger } from '../logging.js';
import type { AsLeader } from '../periodic/as-leader.js';
import type { PeriodicHandle, PeriodicWork } from '../periodic/periodic-work.js';
import { added, measures } from './durations.js';
import type { HistoryTable, Period } from './table.js';

/** Fields of a transfer that sums are kept by, beside the direction, the status and the diagnostic: one at a time. */
export const DIMENSIONS = ['partner', 'server', 'virtualFile', 'node', 'type'] as const;
export type Dimension = (typeof DIMENSIONS)[number];

/** A history whose transfers are added up. */
export interface SummedTable<F extends Period> {
  readonly history: HistoryTable<F>;
  /** Column of each, and the filter that compares it. */
  readonly dimensions: Readonly<Record<Dimension, { readonly column: string; readonly filter: keyof F & string }>>;
  /** A timestamptz: durations count from it to `end_time`. */
  readonly began: string;
  /** Conditions of the transfers that have not ended, each with an index of its own. */
  readonly unfinished: readonly string[];
}

/** Length of the spans that are added up, hours; each begins at a multiple of its length since 1970, UTC. */
export const HOUR = 1;
export const DAY = 24;
export const WEEK = 168;

/** The span of so many hours that a timestamptz lies in. */
export const spanOf = (hours: number, time: string): string =>
  `date_bin(interval '${hours} hours', ${time}, timestamptz 'epoch')`;

/** Records that have ended. */
export const IS_ENDED = `status in ('COMPLETED', 'FAILED', 'CANCELLED')`;

export interface HistorySumsOptions<F extends Period> {
  readonly knex: Knex;
  readonly asLeader: AsLeader;
  readonly table: SummedTable<F>;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
}

interface Span {
  readonly hours: number;
  readonly since: Date;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * How long after its end an hour is added up: for an hour the triggers of the table leave it alone, and who began before that must
 * have ended.
 */
const SETTLED = `interval '61 minutes'`;

/** Longest period of statistics by hours, days. */
export const MOST_DAYS_BY_HOUR = 7;

/** How long the hours of a day are kept after it: for statistics by hours, and so that a change makes an hour due and not the whole day. */
const KEPT_HOURS = `interval '${MOST_DAYS_BY_HOUR + 1} days'`;

const SUM_COLUMNS = 'dimension, value, direction, status, diagnostic';

/**
 * Sums of the transfers that have ended, made by the leader: hours of this day from the records themselves, days from their hours,
 * or from the records where there are none, weeks from their days. Statistics read the longest that fit.
 *
 * A span that was added up stays true, because whoever changes or removes one of its records marks the hour in the same transaction
 * (a trigger, which only fires for records of past hours), and what is marked is read record by record until it was added up
 * anew. Who reads the records of a span takes the marks that its statement saw, with the records as that statement saw them: a change that
 * it did not see has left a mark that it did not see. In the same transaction the longer spans around it go, and are made again. A crash at
 * any place leaves the sums as they were.
 */
export class HistorySums<F extends Period> {
  readonly #options: HistorySumsOptions<F>;
  #task: PeriodicHandle | undefined;

  constructor(options: HistorySumsOptions<F>) {
    this.#options = options;
  }

  /** To be called when the database is there; may be called again. */
  start(): void {
    this.#task ??= this.#options.periodic.add({
      name: 'sums of the history',
      intervalMs: MINUTE_MS,
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

  /** Adds up what is due: hours, then days, then weeks, the newest first. @returns how many spans */
  async run(signal?: AbortSignal): Promise<number> {
    let made = 0;
    // A day that is made anew, from the hours that were made anew before it, makes its week due.
    for (const hours of [HOUR, DAY, WEEK]) {
      for (const since of await this.#due(hours)) {
        if (signal?.aborted === true) return made;
        const isMerged = hours > HOUR && (await this.#merge({ hours, since }));
        if (!isMerged && hours < WEEK) await this.make({ hours, since });
        if (isMerged || hours < WEEK) made += 1;
      }
    }
    if (made > 0) await this.#forgetOld();
    if (made > DAY) this.#options.logger.info({ spans: made }, 'added up the history');
    return made;
  }

  /** Spans that have settled and were not added up, or of which a record changed since: where they begin. */
  async #due(hours: number): Promise<readonly Date[]> {
    const { knex, table } = this.#options;
    const { table: name, time } = table.history;
    const oldest = ['SEND', 'RECEIVE'].map(
      (direction) =>
        `(select ${time.column} from ${name} where direction = '${direction}' order by ${time.column} asc limit 1)`,
    );
    const length = `interval '${hours} hours'`;
    const settled = `(select until from bounds) - ${length}`;
    const first = hours === HOUR ? `greatest(first, ${spanOf(DAY, "until - interval '1 hour'")})` : 'first';
    const { rows } = await knex.raw<{ rows: { readonly since: Date }[] }>(
      `with bounds as (
         select ${spanOf(WEEK, `least(${oldest.join(', ')})`)} as first, least(clock_timestamp(), (
           select min(xact_start) from pg_stat_activity
           where datname = current_database() and backend_type = 'client backend')) - ${SETTLED} as until
       ), marked as (
         select distinct ${spanOf(hours, 'since')} as since from transfer_sum_marks
       )
       select since from (
         select since from bounds, generate_series(${first}, until - ${length}, ${length}) since
         except select since from transfer_sum_spans where hours = ${hours}
       ) missing
       union select since from marked where since <= ${settled}
         ${hours === DAY ? '' : `and since in (select since from transfer_sum_spans where hours = ${hours})`}
       order by since desc`,
    );
    return rows.map(({ since }) => since);
  }

  /** Adds up one span from its records. */
  async make({ hours, since }: Span): Promise<void> {
    const { table } = this.#options;
    const { history, dimensions, began } = table;
    const { table: name, time } = history;
    const columns = DIMENSIONS.map((dimension) => `${dimensions[dimension].column}::text as "${dimension}"`).join(', ');
    const values = DIMENSIONS.map((dimension) => `('${dimension}', ended."${dimension}")`).join(', ');
    const isWithin = (column: string): string => `${column} >= asked.since and ${column} < asked.until`;
    await this.#locked(async (transaction) => {
      await this.#replace(transaction, { hours, since });
      const until = new Date(since.getTime() + hours * HOUR_MS);
      await transaction.raw(
        `with asked as (select cast(? as timestamptz) as since, cast(? as timestamptz) as until), marks as (
           delete from transfer_sum_marks using asked where ${isWithin('transfer_sum_marks.since')}
         ), ended as materialized (
           select direction, status, diagnostic, ${measures(began)}, ${columns}
           from ${name}, asked where direction in ('SEND', 'RECEIVE') and ${IS_ENDED} and ${isWithin(time.column)}
         ), counted as (
           select ${SUM_COLUMNS}, bucket, count(*) as n, sum(bytes) as bytes, sum(millis) as millis
           from ended cross join lateral (values ('all', null), ${values}) each (dimension, value)
           group by ${SUM_COLUMNS}, bucket
         )
         insert into transfer_sums (hours, since, ${SUM_COLUMNS}, transfers, bytes, millis, durations)
         select ${hours}, (select since from asked), ${SUM_COLUMNS}, sum(n), sum(bytes), coalesce(sum(millis), 0), ${added('n', 'bucket')}
         from counted group by ${SUM_COLUMNS}`,
        [since, until],
      );
      if (hours > HOUR) await this.#forgetHours(transaction, since, until);
    });
  }

  /** Adds up one span from the shorter ones within it. @returns false when one of them is missing */
  async #merge({ hours, since }: Span): Promise<boolean> {
    const part = hours === WEEK ? DAY : HOUR;
    const within = `hours = ${part} and since >= cast(? as timestamptz) and since < cast(? as timestamptz)`;
    const period = [since, new Date(since.getTime() + hours * HOUR_MS)];
    return this.#locked(async (transaction) => {
      const { rows } = await transaction.raw<{ rows: [{ readonly parts: number }] }>(
        `select count(*)::int as parts from transfer_sum_spans where ${within}`,
        period,
      );
      if (rows[0].parts < hours / part) return false;
      await this.#replace(transaction, { hours, since });
      await transaction.raw(
        `insert into transfer_sums (hours, since, ${SUM_COLUMNS}, transfers, bytes, millis, durations)
         select ${hours}, cast(? as timestamptz), ${SUM_COLUMNS}, sum(transfers), sum(bytes), sum(millis), sum(durations)
         from transfer_sums where ${within} group by ${SUM_COLUMNS}`,
        [since, ...period],
      );
      return true;
    });
  }

  /** Who adds up waits for who does so already, and sees what that one left; who reads waits for nobody. */
  #locked<T>(work: (transaction: Knex) => Promise<T>): Promise<T> {
    return this.#options.asLeader(async (transaction) => {
      await transaction.raw('lock table transfer_sum_spans in share row exclusive mode');
      return work(transaction);
    });
  }

  /** Names a span as made; its former sums go, and with it those around it. */
  async #replace(transaction: Knex, { hours, since }: Span): Promise<void> {
    const around = [HOUR, DAY, WEEK].filter((length) => length >= hours);
    const are = `(${around.map((length) => `s.hours = ${length} and s.since = ${spanOf(length, 'asked.since')}`).join(' or ')})`;
    await transaction.raw(
      `with asked as (select cast(? as timestamptz) as since), sums as (
         delete from transfer_sums s using asked where ${are}
       ), spans as (
         delete from transfer_sum_spans s using asked where s.hours > ${hours} and ${are}
       )
       insert into transfer_sum_spans (hours, since) select ${hours}, since from asked
       on conflict (hours, since) do update set made_at = now()`,
      [since],
    );
  }

  /** Hours within a day that was made without them, or that lies behind: what changes there is found by its day. */
  async #forgetHours(transaction: Knex, since: Date, until: Date): Promise<void> {
    const within = `hours = ${HOUR} and since >= ? and since < ?`;
    await transaction.raw(
      `with spans as (delete from transfer_sum_spans where ${within}) delete from transfer_sums where ${within}`,
      [since, until, since, until],
    );
  }

  async #forgetOld(): Promise<void> {
    const { rows } = await this.#options.knex.raw<{ rows: [{ readonly since: Date | null; readonly until: Date }] }>(
      `select min(since) as since, ${spanOf(DAY, `now() - ${SETTLED}`)} - ${KEPT_HOURS} as until
       from transfer_sum_spans where hours = ${HOUR}`,
    );
    const [{ since, until }] = rows;
    if (since === null || since >= until) return;
    await this.#locked((transaction) => this.#forgetHours(transaction, since, until));
  }
}
