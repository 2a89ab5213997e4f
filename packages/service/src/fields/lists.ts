import type { Knex } from 'knex';
import { z } from 'zod';

import { containing, equal, flagFilter, wordsFilter } from '../history/conditions.js';
import { pageOf, wholeNumber } from '../http/paging.js';
import type { Page } from '../http/paging.js';
import type { FieldRow, FieldRows } from './row.js';

/** The request for a list: a page, words, and values of fields. */
export interface ListQuery {
  /** Index of the page, from 0. */
  readonly page?: number | undefined;
  readonly size?: number | undefined;
  /** Part of one of the searched fields, in whatever case. */
  readonly q?: string | undefined;
  /** By field; undefined: any value. */
  readonly [filter: string]: string | number | boolean | undefined;
}

/** The rows of a list, ordered by the identifier. */
export interface Listed<Row> {
  readonly rows: readonly Row[];
  /** How many there are on all pages. */
  readonly total: number;
}

const DEFAULT_SIZE = 20;

const filterOf = ({ schema }: FieldRow): z.ZodType =>
  schema instanceof z.ZodBoolean ? flagFilter() : schema.optional();

const entriesWith = (rows: FieldRows, mark: 'searched' | 'filter'): readonly (readonly [string, FieldRow])[] =>
  Object.entries(rows).filter(([, row]) => row[mark] === true);

const columnsWith = (rows: FieldRows, mark: 'searched' | 'filter'): readonly (readonly [string, string])[] =>
  entriesWith(rows, mark).map(([name, { column }]) => {
    if (column === undefined) throw new Error(`${name} is ${mark}, and has no column`);
    return [name, column];
  });

/** The query of a list, by the rows that are `searched` and those that are a `filter`. */
export const listSchema = (rows: FieldRows): z.ZodType<ListQuery> =>
  z.strictObject({
    page: wholeNumber(0, 100_000_000).optional().meta({
      description: 'Index of the page, from 0. With `page` or `size` the answer is a page, else all in one list.',
    }),
    size: wholeNumber(1, 500)
      .optional()
      .meta({ description: `Of a page: 1 to 500; default ${DEFAULT_SIZE}.` }),
    q: wordsFilter(
      columnsWith(rows, 'searched')
        .map(([name]) => `\`${name}\``)
        .join(', '),
    ),
    ...Object.fromEntries(entriesWith(rows, 'filter').map(([name, row]) => [name, filterOf(row)])),
  });

/** The answer to such a query. */
export const listAnswer = <T extends z.ZodRawShape>(answer: z.ZodObject<T>) =>
  z.union([z.array(answer), pageOf(answer)]);

/** Whether it is a page that is asked for. */
const isPaged = ({ page, size }: ListQuery): boolean => page !== undefined || size !== undefined;

/** @param key column of the identifier, by which the list is ordered */
export const listRows = async <Row>(
  knex: Knex,
  { table, rows, key }: { readonly table: string; readonly rows: FieldRows; readonly key: { readonly column: string } },
  query: ListQuery,
): Promise<Listed<Row>> => {
  const conditions = [
    containing(
      columnsWith(rows, 'searched').map(([, column]) => column),
      query.q,
    ),
    ...columnsWith(rows, 'filter').map(([name, column]) => equal(column, query[name])),
  ].filter((condition) => condition !== undefined);
  const found = knex(table);
  for (const { sql, values = [] } of conditions) void found.whereRaw(`(${sql})`, [...values] as Knex.RawBinding[]);
  const ordered = found.clone().orderBy(key.column);
  if (!isPaged(query)) {
    const all = (await ordered) as Row[];
    return { rows: all, total: all.length };
  }
  const { page = 0, size = DEFAULT_SIZE } = query;
  const [counted] = await found.count<{ total: number }[]>({ total: '*' });
  const some = (await ordered.limit(size).offset(page * size)) as Row[];
  return { rows: some, total: counted?.total ?? 0 };
};

/** @param content the rows as they are answered @returns what is answered: a page where one was asked for */
export const listed = <T>(query: ListQuery, total: number, content: readonly T[]): readonly T[] | Page<T> => {
  if (!isPaged(query)) return content;
  const { page = 0, size = DEFAULT_SIZE } = query;
  return { content, totalElements: total, totalPages: Math.ceil(total / size), number: page, size };
};
