import type { Knex } from 'knex';

import { validation } from '../errors.js';
import { added, countsOf, measures, percentiles } from './durations.js';
import { candidates, columnsOf, joined, plain, searched, walksOf } from './statements.js';
import { MOST_GROUPS } from './statistics-answer.js';
import type { GroupBy, Statistics, Totals } from './statistics-answer.js';
import { isTime, keyOf, summedSource } from './summed.js';
import type { Source } from './summed.js';
import { DIMENSIONS, MOST_DAYS_BY_HOUR } from './sums.js';
import type { SummedTable } from './sums.js';
import type { Period } from './table.js';

/** Records that are added up one by one where no sums are kept for the filters. */
const MOST_RECORDS = 50_000;

interface Line {
  /** One of a group that is answered. */
  readonly shown: boolean;
  readonly key: string | null;
  readonly direction: string;
  readonly status: string;
  readonly transfers: number;
  readonly bytes: number;
  readonly millis: number;
  /** How often each bucket was counted. */
  readonly durations: readonly number[];
  /** How many groups there are. */
  readonly groups: number;
}

/**
 * Totals of a history (`/stats`), exact for counts and bytes at any moment. Where the filters and the group need one `Dimension`
 * at most, what `HistorySums` has added up comes from there, and the rest from the records, in the same statement (`summedSource`).
 * Other filters are answered from the records alone, up to 50,000.
 */
export class HistoryStatistics<F extends Period> {
  readonly #knex: Knex;
  readonly #table: SummedTable<F>;
  readonly #most: number;

  /** @param most records that are added up one by one where no sums are kept */
  constructor(knex: Knex, table: SummedTable<F>, most = MOST_RECORDS) {
    this.#knex = knex;
    this.#table = table;
    this.#most = most;
  }

  /** @throws ApiError 400 where more records than `most` would have to be added up, or more hours than are answered */
  async totals(
    filter: F,
    groupBy: GroupBy | undefined,
    statuses: readonly string[],
    directions: readonly string[],
  ): Promise<Statistics> {
    if (groupBy === 'hour') refuseManyHours(filter);
    const source = summedSource(this.#table, filter, groupBy) ?? (await this.#searched(filter, groupBy));
    const lines = await this.#lines(source, groupBy);
    const { value: all, transfers: totalTransfers } = addUp(lines, statuses, directions);
    if (groupBy === undefined) return { totalTransfers, ...all };
    const byKey = new Map<string | null, Line[]>();
    for (const line of lines.filter(({ shown }) => shown)) {
      const those = byKey.get(line.key);
      if (those === undefined) byKey.set(line.key, [line]);
      else those.push(line);
    }
    const groups = [...byKey].map(([value, those]) => {
      const { value: totals, transfers } = addUp(those, statuses, directions);
      return { value, transfers, ...totals };
    });
    groups.sort(
      isTime(groupBy)
        ? (a, b) => String(a.value).localeCompare(String(b.value))
        : (a, b) => b.transfers - a.transfers || String(a.value).localeCompare(String(b.value)),
    );
    return { totalTransfers, ...all, groups, totalGroups: lines[0]?.groups ?? 0 };
  }

  /** The records themselves, on the way with the fewest. */
  async #searched(filter: F, groupBy: GroupBy | undefined): Promise<Source> {
    const { history, dimensions, began } = this.#table;
    const walks = walksOf(history, filter);
    const limit = this.#most + 1;
    const parts = walks.map((walk) => candidates(history, walk, filter, { order: 'desc', limit }));
    const { rows } = await this.#knex.raw<{ rows: { readonly counts: readonly number[] }[] }>(
      `select array[${parts.map(({ sql }) => `(select count(*)::int from ${sql} counted)`).join(', ')}] as counts`,
      parts.flatMap(({ values }) => [...values]),
    );
    const counts = rows[0]?.counts ?? [];
    const fewest = Math.min(...counts);
    const walk = walks[counts.indexOf(fewest)];
    if (walk === undefined || fewest > this.#most) throw this.#tooMany(groupBy);
    const columns = [
      ...['direction', 'status', 'diagnostic', 'bytes_transferred', 'end_time', began, history.time.column],
      ...DIMENSIONS.map((one) => dimensions[one].column),
      ...columnsOf(walk.left),
    ];
    const found = searched(candidates(history, walk, filter, { order: 'desc', limit, columns }), walk.left);
    return {
      ctes: joined(
        [
          plain(
            `records as materialized (select ${keyOf(this.#table, groupBy)} as key, direction, status, ${measures(began)} from `,
          ),
          found,
          plain(')'),
        ],
        ' ',
      ),
    };
  }

  async #lines({ ctes, sums }: Source, groupBy: GroupBy | undefined): Promise<readonly Line[]> {
    const order = isTime(groupBy) ? 'key desc nulls last' : 'size desc, key nulls last';
    const { sql, values } = joined(
      [
        plain('with'),
        ctes,
        plain(`, counted as (
          select key, direction, status, bucket, count(*) as n, sum(bytes) as bytes, sum(millis) as millis from records group by 1, 2, 3, 4
        ), parts as (
          select key, direction, status, sum(n) as transfers, sum(bytes) as bytes, sum(millis) as millis, ${added('n', 'bucket')} as durations
          from counted group by 1, 2, 3`),
        ...(sums === undefined ? [] : [plain('union all'), sums]),
        plain(`), totals as (
          select key, direction, status, sum(transfers) as transfers, sum(bytes) as bytes, sum(millis) as millis, sum(durations) as durations
          from parts group by 1, 2, 3
        ), sized as (
          select *, sum(transfers) over (partition by key) as size from totals
        ), ranked as (
          select *, dense_rank() over (order by ${order}) as rank from sized
        )
        select rank <= ${MOST_GROUPS} as shown, case when rank <= ${MOST_GROUPS} then key end as key, direction, status,
          sum(transfers)::bigint as transfers, sum(bytes)::bigint as bytes, coalesce(sum(millis), 0)::bigint as millis,
          sum(durations)::text as durations, (select max(rank) from ranked)::int as groups
        from ranked group by 1, 2, 3, 4`),
      ],
      ' ',
    );
    const { rows } = await this.#knex.raw<{
      rows: (Omit<Line, 'durations'> & { readonly durations: string | null })[];
    }>(sql, [...values]);
    return rows.map((row) => ({ ...row, durations: countsOf(row.durations) }));
  }

  #tooMany(groupBy: GroupBy | undefined) {
    const many = this.#most.toLocaleString('en');
    return validation([
      {
        field: groupBy === undefined ? 'from' : 'groupBy',
        message: `more than ${many} records would have to be added up one by one, for sums are kept for one of partner, server, virtual file, node and type at a time: expected one of these, or filters that leave fewer records, such as from and to`,
      },
    ]);
  }
}

const HOUR_MS = 3_600_000;

/** @throws ApiError 400 where the period is open, or has too many hours */
const refuseManyHours = ({ from, to = new Date() }: Period): void => {
  const hours = from === undefined ? Infinity : (to.getTime() - from.getTime()) / HOUR_MS;
  // One more than whole days: `from` is some hour of the first, and `to` perhaps that of the question.
  if (hours <= MOST_DAYS_BY_HOUR * 24 + 1) return;
  const given = from === undefined ? 'none' : `${Math.ceil(hours / 24)} days`;
  throw validation([
    {
      field: 'from',
      message: `groupBy=hour takes a period of ${MOST_DAYS_BY_HOUR} days at most, got ${given}: expected a later from, an earlier to, or groupBy=day`,
    },
  ]);
};

/** Totals of some lines. */
const addUp = (
  lines: readonly Line[],
  statuses: readonly string[],
  directions: readonly string[],
): { readonly value: Totals; readonly transfers: number } => {
  const sum = (field: 'transfers' | 'bytes' | 'millis', among: readonly Line[] = lines): number =>
    among.reduce((total, line) => total + line[field], 0);
  const by = (column: 'status' | 'direction', values: readonly string[]) =>
    Object.fromEntries(
      values.map((value) => [
        value,
        sum(
          'transfers',
          lines.filter((line) => line[column] === value),
        ),
      ]),
    );
  const byStatus = by('status', statuses);
  const { COMPLETED: completed = 0, FAILED: failed = 0, CANCELLED: cancelled = 0 } = byStatus;
  const ended = completed + failed + cancelled;
  const millis = sum('millis');
  const timedBytes = sum(
    'bytes',
    lines.filter(({ status }) => status === 'COMPLETED'),
  );
  return {
    transfers: sum('transfers'),
    value: {
      byStatus,
      byDirection: by('direction', directions),
      bytesTransferred: sum('bytes'),
      failureRate: ended === 0 ? null : Math.round((failed / ended) * 1e6) / 1e6,
      bytesPerSecond: millis === 0 ? null : Math.round((timedBytes / millis) * 1000),
      duration: percentiles(lines.map(({ durations }) => durations)),
    },
  };
};
