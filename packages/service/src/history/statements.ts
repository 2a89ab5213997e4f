import type { Knex } from 'knex';

import type { HistoryKey } from './fields.js';
import type { Condition, HistoryTable, Period, Way } from './table.js';

/** SQL and its values. */
export interface Sql {
  readonly sql: string;
  readonly values: readonly Knex.Value[];
}

export type Order = 'asc' | 'desc';

/** A way, the conditions that it leaves to be looked at, and what is asked of it. */
export interface Walk<F> {
  readonly way: Way<F>;
  readonly served: readonly Condition[];
  readonly left: readonly Condition[];
}

/** Every way that the given filters allow, the general one last. */
export const walksOf = <F extends Period>(table: HistoryTable<F>, filter: F): readonly Walk<F>[] => {
  const given = table.conditions(filter);
  const names = Object.keys(given) as (keyof F & string)[];
  return table.ways
    .filter((way) => way.serves.every((name) => given[name] !== undefined) && (way.when?.(filter) ?? true))
    .map((way) => {
      const among = (isServed: boolean) =>
        names.filter((name) => way.serves.includes(name) === isServed).flatMap((name) => given[name] ?? []);
      return { way, served: way.arms === undefined ? among(true) : [], left: among(false) };
    });
};

export const joined = (parts: readonly Sql[], by: string): Sql => ({
  sql: parts.map(({ sql }) => sql).join(by),
  values: parts.flatMap(({ values }) => values),
});

export const plain = (sql: string, ...values: readonly Knex.Value[]): Sql => ({ sql, values });

export const asSql = ({ sql, values = [] }: Condition): Sql => ({ sql: `(${sql})`, values });

/**
 * The records of a walk in order of time, no more than `limit`: `found_id`, `found_time` and `columns`. Each arm is ordered and
 * limited by itself, as its index has it; PostgreSQL merges them without a sort.
 */
export const candidates = <F extends Period>(
  table: HistoryTable<F>,
  { way, served }: Walk<F>,
  filter: F,
  {
    order,
    after,
    limit,
    columns = [],
  }: {
    readonly order: Order;
    readonly after?: HistoryKey | undefined;
    readonly limit: number;
    readonly columns?: readonly string[];
  },
): Sql => {
  const { column: time } = table.time;
  const { column: id, type } = table.id;
  const { from, to } = filter;
  const common = [
    ...served.map(asSql),
    ...(from === undefined ? [] : [plain(`${time} >= ?`, from)]),
    ...(to === undefined ? [] : [plain(`${time} < ?`, to)]),
    ...(after === undefined
      ? []
      : [
          plain(
            `(${time}, ${id}) ${order === 'desc' ? '<' : '>'} (timestamptz 'epoch' + cast(? as float8) * interval '1 microsecond', cast(? as ${type}))`,
            after.time,
            after.id,
          ),
        ]),
  ];
  const selected = [`${id} as found_id`, `${time} as found_time`, ...new Set(columns)].join(', ');
  const arms = (way.arms ?? [undefined]).map((arm) => {
    const conditions = [...(arm === undefined ? [] : [plain(`(${arm})`)]), ...common];
    const where = joined(conditions.length === 0 ? [plain('true')] : conditions, ' and ');
    return {
      sql: `(select ${selected} from ${table.table} where ${where.sql} order by ${time} ${order}, ${id} ${order} limit ${limit})`,
      values: where.values,
    };
  });
  if (arms.length === 1) return joined(arms, '');
  const all = joined(arms, ' union all ');
  return {
    sql: `(select * from (${all.sql}) arms order by found_time ${order}, found_id ${order} limit ${limit})`,
    values: all.values,
  };
};

/** Those of `from` (as `candidates` makes it) that the conditions leave. */
export const searched = (from: Sql, left: readonly Condition[]): Sql => {
  if (left.length === 0) return { sql: `${from.sql} found`, values: from.values };
  const where = joined(left.map(asSql), ' and ');
  return { sql: `${from.sql} found where ${where.sql}`, values: [...from.values, ...where.values] };
};

export const columnsOf = (conditions: readonly Condition[]): readonly string[] =>
  conditions.flatMap(({ columns }) => columns);
