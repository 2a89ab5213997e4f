import { measures } from './durations.js';
import { asSql, joined, plain } from './statements.js';
import type { Sql } from './statements.js';
import type { GroupBy } from './statistics-answer.js';
import { DAY, DIMENSIONS, HOUR, IS_ENDED, spanOf, WEEK } from './sums.js';
import type { Dimension, SummedTable } from './sums.js';
import type { Condition, Period } from './table.js';

/** Where statistics come from. */
export interface Source {
  /** Common table expressions, the last one `records`: `key`, `direction`, `status`, `bytes`, `millis`, `bucket` of each. */
  readonly ctes: Sql;
  /** A query over sums of the other records: these, with `transfers`, and `durations` for `bucket`. */
  readonly sums?: Sql | undefined;
}

/** The expression of the group in a record. */
export const keyOf = <F extends Period>(
  { history, dimensions }: SummedTable<F>,
  groupBy: GroupBy | undefined,
): string => {
  if (groupBy === undefined) return 'null::text';
  if (isTime(groupBy)) return TIMES[groupBy].text(history.time.column);
  return isDimension(groupBy) ? `${dimensions[groupBy].column}::text` : groupBy;
};

/** Groups of time: their texts, which sort as they do, and the longest span that lies in one. */
const TIMES = {
  hour: {
    text: (time: string): string => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
    longest: HOUR,
  },
  day: { text: (time: string): string => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD')`, longest: DAY },
} as const;

export const isTime = (group: GroupBy | undefined): group is keyof typeof TIMES =>
  group !== undefined && Object.hasOwn(TIMES, group);

const isDimension = (group: GroupBy): group is Dimension => (DIMENSIONS as readonly string[]).includes(group);

const and = (conditions: readonly Condition[]): Sql =>
  joined(
    conditions.map((condition) => joined([plain('and'), asSql(condition)], ' ')),
    ' ',
  );

/** The value that a filter compares its column with. */
const ownValue = ({ values: [value] = [] }: Condition): string =>
  typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';

/** Picks those of `clean` that lie within no longer one. */
const isOutside = (hours: number): string =>
  `(hours >= ${hours} or ${spanOf(hours, 'since')} not in (select since from clean where hours = ${hours}))`;

/**
 * The longest spans that were added up, of which no record changed since and which lie within the period, and the records of the
 * gaps between them; those that have not ended are in no sum.
 *
 * @returns undefined where no sums are kept for what is asked: for two `DIMENSIONS` at once, and for other filters
 */
export const summedSource = <F extends Period>(
  table: SummedTable<F>,
  filter: F,
  groupBy: GroupBy | undefined,
): Source | undefined => {
  const { history, dimensions, began, unfinished } = table;
  const { time, conditions } = history;
  const given = conditions(filter);
  const asked = DIMENSIONS.filter((one) => given[dimensions[one].filter] !== undefined || one === groupBy);
  const [dimension, ...others] = asked;
  const own = dimension === undefined ? undefined : given[dimensions[dimension].filter];
  const kept = ['direction', 'diagnostic', 'status'].flatMap((name) => given[name as keyof F & string] ?? []);
  const all = Object.values(given) as Condition[];
  if (others.length > 0 || all.length > kept.length + (own === undefined ? 0 : 1)) return undefined;

  const bound = (given: Date | undefined, otherwise: string): Sql =>
    given === undefined ? plain(`timestamptz '${otherwise}'`) : plain('cast(? as timestamptz)', given);
  const record = `select ${keyOf(table, groupBy)} as key, direction, status, ${measures(began)} from ${history.table}`;
  const where = and(all);
  const records = ['SEND', 'RECEIVE'].map((direction) => [
    plain(
      `${record} where direction = '${direction}' and ${IS_ENDED} and ${time.column} >= gaps.since and ${time.column} < gaps.until`,
    ),
    where,
  ]);
  const open = unfinished.map((condition) => [
    plain(`union all ${record} where ${condition}
      and ${time.column} >= (select since from period) and ${time.column} < (select until from period)`),
    where,
  ]);
  const longest = isTime(groupBy) ? TIMES[groupBy].longest : WEEK;
  const ctes = [
    plain('period as materialized (select'),
    bound(filter.from, '-infinity'),
    plain('as since,'),
    bound(filter.to, 'infinity'),
    plain(
      `as until), clean as materialized (
         select s.hours, s.since, s.since + s.hours * interval '1 hour' as until from transfer_sum_spans s, period
         where s.hours <= ${longest} and s.since >= period.since and s.since + s.hours * interval '1 hour' <= period.until
           and not exists (select from transfer_sum_marks m
             where m.since >= s.since and m.since < s.since + s.hours * interval '1 hour')
       ), taken as materialized (
         select hours, since, until from clean where ${isOutside(DAY)} and ${isOutside(WEEK)}
       ), gaps as materialized (
         select since, until from (
           select lag(until, 1, (select since from period)) over (order by since) as since, since as until
           from (select since, until from taken union all select until, until from period) edges
         ) each where since < until
       ), records as materialized (
         select found.* from gaps, lateral (`,
    ),
    ...(records[0] ?? []),
    plain('union all'),
    ...(records[1] ?? []),
    plain(') found'),
    ...open.flat(),
    plain(')'),
  ];
  const column = (groupBy: GroupBy): string =>
    isTime(groupBy) ? TIMES[groupBy].text('since') : isDimension(groupBy) ? 'value' : groupBy;
  const sums = [
    plain(
      `select ${groupBy === undefined ? 'null::text' : column(groupBy)} as key, direction, status, transfers, bytes, millis, durations
       from taken join transfer_sums using (hours, since) where dimension = ?`,
      dimension ?? 'all',
    ),
    ...(own === undefined ? [] : [plain('and value = cast(? as text)', ownValue(own))]),
    and(kept),
  ];
  return { ctes: joined(ctes, ' '), sums: joined(sums, ' ') };
};
