import type { Knex } from 'knex';
import { z } from 'zod';

/** The page envelope of both apps (specification, Page envelope; design §4, Paging). */
export interface Page<T> {
  readonly content: readonly T[];
  readonly totalElements: number;
  readonly totalPages: number;
  /** Index of this page, from 0. */
  readonly number: number;
  /** Asked for, not how many came. */
  readonly size: number;
}

/** Its schema, for the document of the interface. */
export const pageOf = <T extends z.ZodRawShape>(record: z.ZodObject<T>) =>
  z.object({
    content: z.array(record),
    totalElements: z.int().min(0),
    totalPages: z.int().min(0),
    number: z.int().min(0).meta({ description: 'Index of this page, from 0.' }),
    size: z.int().min(1).meta({ description: 'Asked for, not how many came.' }),
  });

export interface Sort {
  /** Column of the table, from the allow-list. */
  readonly column: string;
  readonly direction: 'asc' | 'desc';
}

export interface Paging {
  readonly page: number;
  readonly size: number;
  readonly sort: Sort;
}

/** A whole number of the query. */
export const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `expected an integer from ${min} to ${max}`)
    .transform(Number)
    .pipe(z.int().min(min).max(max));

/** The same, with a default. */
export const count = (min: number, max: number, fallback: number) => wholeNumber(min, max).default(fallback);

export interface PagingOptions<F extends string> {
  /** Field of the interface → column. Nothing else can be sorted by. */
  readonly sortable: Readonly<Record<F, string>>;
  /** `startTime,desc`. */
  readonly defaultSort: `${NoInfer<F>},${'asc' | 'desc'}`;
}

/**
 * The query fields `page`, `size` and `sort`, to be spread into a `z.strictObject` beside the filters:
 * `z.strictObject({ ...pagingFields({ … }), status: z.enum([…]).optional() })`.
 */
export const pagingFields = <F extends string>({ sortable, defaultSort }: PagingOptions<F>) => {
  const names = Object.keys(sortable).join(', ');
  const toSort = (value: string): Sort | undefined => {
    const [field = '', direction = 'asc', ...rest] = value.split(',');
    if (rest.length > 0 || !Object.hasOwn(sortable, field)) return undefined;
    if (direction !== 'asc' && direction !== 'desc') return undefined;
    return { column: sortable[field as F], direction };
  };
  return {
    page: count(0, 100_000_000, 0).meta({ description: 'Index of the page, from 0.' }),
    size: count(1, 500, 20).meta({ description: '1 to 500; default 20.' }),
    sort: z
      .string()
      .default(defaultSort)
      .transform((value, refinement) => {
        const sort = toSort(value);
        if (sort !== undefined) return sort;
        refinement.addIssue({ code: 'custom', message: `expected field,asc or field,desc with a field of: ${names}` });
        return z.NEVER;
      })
      .meta({ description: `\`field,asc\` or \`field,desc\`, with a field of: ${names}; default \`${defaultSort}\`.` }),
  };
};

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$/;
const EXPECTED_TIME = 'expected a date (2026-11-21) or a date-time (2026-11-21T09:30:00Z)';
const DAY_MS = 86_400_000;

/** A real moment: `2026-02-30` is none, though `Date` would make it March. Without a zone it is UTC. */
const moment = (value: string): number | undefined => {
  const zone = DATE_TIME.exec(value);
  if (zone === null && !DATE.test(value)) return undefined;
  const day = value.slice(0, 10);
  const midnight = Date.parse(day);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day)) return undefined;
  const time = Date.parse(zone === null || zone[1] !== undefined ? value : `${value}Z`);
  return Number.isNaN(time) ? undefined : time;
};

const timeField = (toBound: (time: number, isDay: boolean) => number) =>
  z.string().transform((value, refinement) => {
    // A `+` that was not escaped in the URL arrives as a blank.
    const text = value.replace(' ', '+');
    const time = moment(text);
    if (time !== undefined) return new Date(toBound(time, DATE.test(text)));
    refinement.addIssue({ code: 'custom', message: EXPECTED_TIME });
    return z.NEVER;
  });

/**
 * The query fields `from` and `to` as instants for `column >= from and column < to`: `to` is an exclusive bound, one day
 * later for a date (that day is included), one millisecond later for a date-time (that moment is included).
 */
export const periodFields = () => ({
  from: timeField((time) => time)
    .optional()
    .meta({ description: 'A date or a date-time; without a zone it is UTC.' }),
  to: timeField((time, isDay) => time + (isDay ? DAY_MS : 1))
    .optional()
    .meta({ description: 'The same; a date includes that day.' }),
});

/**
 * Runs `query` (filters and joins applied, nothing selected or ordered) for one page.
 * @param tieBreak a unique column that makes the order stable.
 */
export const fetchPage = async <Row extends object, T>(
  query: Knex.QueryBuilder,
  { page, size, sort }: Paging,
  { tieBreak, columns = ['*'], map }: PageMapping<Row, T>,
): Promise<Page<T>> => {
  const [counted] = await query.clone().count<{ total: number }[]>({ total: '*' });
  const total = counted?.total ?? 0;
  const rows = (await query
    .clone()
    .select(...columns)
    .orderBy(sort.column, sort.direction, 'last')
    .orderBy(tieBreak, sort.direction)
    .limit(size)
    .offset(page * size)) as Row[];
  return {
    content: rows.map((row) => map(row)),
    totalElements: total,
    totalPages: Math.ceil(total / size),
    number: page,
    size,
  };
};

export interface PageMapping<Row, T> {
  readonly tieBreak: string;
  /** Default `*`. */
  readonly columns?: readonly (string | Knex.Raw)[];
  readonly map: (row: Row) => T;
}
