import type { Knex } from 'knex';

import { validation } from '../errors.js';
import type { Paging } from '../http/paging.js';
import { keyText } from './fields.js';
import type { HistoryKey, HistoryPage } from './fields.js';
import { candidates, columnsOf, searched, walksOf } from './statements.js';
import type { Order, Sql, Walk } from './statements.js';
import { HISTORY_BOUNDS } from './table.js';
import type { HistoryBounds, HistoryTable, Period } from './table.js';

export interface HistoryPaging extends Paging {
  readonly after?: HistoryKey | undefined;
}

export interface HistoryMapping<Row, T> {
  readonly columns: readonly (string | Knex.Raw)[];
  readonly map: (row: Row) => T;
}

/** Records that are read at a time where all are wanted. */
const BATCH = 500;

/** A way that was chosen, and how many records lie on it: exactly, or more than are looked at. */
interface Chosen<F> {
  readonly walk: Walk<F>;
  readonly isWhole: boolean;
}

interface Total {
  readonly total: number;
  readonly isExact: boolean;
}

/**
 * Pages of a table with a million records and more, each in a bounded time (design §4, Paging).
 *
 * Every statement begins with a _way_: an index that has the records of one or two filters in the order of time. Filters that no
 * index serves are compared with the records of the way one by one, `bounds.searched` of them at a time. The way with the fewest
 * records is taken: when these are no more than are searched, the answer is exact, and can be in any order. Otherwise the page says
 * so (`totalIsExact`), and `next` tells where the search continues. A count ends at `bounds.counted`.
 */
export class History<F extends Period> {
  readonly #knex: Knex;
  readonly #table: HistoryTable<F>;
  readonly #bounds: HistoryBounds;

  constructor(knex: Knex, table: HistoryTable<F>, bounds: HistoryBounds = HISTORY_BOUNDS) {
    this.#knex = knex;
    this.#table = table;
    this.#bounds = bounds;
  }

  /**
   * @throws ApiError 400 for an order that only fewer records can be brought into, and for a page too far to be found by its
   *   number
   */
  async page<Row extends object, T>(
    filter: F,
    paging: HistoryPaging,
    { columns, map }: HistoryMapping<Row, T>,
  ): Promise<HistoryPage<T>> {
    const { page, sort, after } = paging;
    const byTime = sort.column === this.#table.time.column;
    if (after !== undefined && (page > 0 || !byTime)) throw this.#misplacedAfter(page > 0 ? 'page' : 'sort');
    const walks = walksOf(this.#table, filter);
    const served = walks.find(({ left }) => left.length === 0);
    if (byTime && served !== undefined) {
      const [counted, found] = await Promise.all([
        this.#count(filter, served),
        this.#rows<Row>(filter, { walk: served, isWhole: true }, paging, columns),
      ]);
      return this.#envelope(found, counted, paging, map);
    }
    const chosen = await this.#choose(filter, served === undefined ? walks : [served]);
    if (!byTime && !chosen.isWhole) throw this.#unsortable();
    const [total, found] = await Promise.all([
      this.#search(filter, chosen, sort.direction),
      this.#rows<Row>(filter, chosen, paging, columns),
    ]);
    return this.#envelope(found, total, paging, map);
  }

  /** All records that `filter` leaves, newest first, a batch at a time; a batch may be empty. */
  async *batches<Row extends object, T>(
    filter: F,
    { columns, map }: HistoryMapping<Row, T>,
  ): AsyncGenerator<readonly T[]> {
    const walks = walksOf(this.#table, filter);
    const served = walks.find(({ left }) => left.length === 0);
    const chosen = served === undefined ? await this.#choose(filter, walks) : { walk: served, isWhole: true };
    const sort = { column: this.#table.time.column, direction: 'desc' } as const;
    let after: HistoryKey | undefined;
    do {
      const found = await this.#rows<Row>(filter, chosen, { page: 0, size: BATCH, sort, after }, columns);
      yield found.rows.map(map);
      after = found.next;
    } while (after !== undefined);
  }

  #envelope<Row extends object, T>(
    { rows, next }: Found<Row>,
    { total, isExact }: Total,
    { page, size, after }: HistoryPaging,
    map: (row: Row) => T,
  ): HistoryPage<T> {
    if (!isExact && after === undefined && page * size >= total && page > 0) throw this.#tooDeep(total);
    return {
      content: rows.map(map),
      totalElements: total,
      totalIsExact: isExact,
      totalPages: Math.ceil(total / size),
      number: page,
      size,
      next: next === undefined ? null : keyText(next),
    };
  }

  async #raw<Row>({ sql, values }: Sql): Promise<readonly Row[]> {
    return (await this.#knex.raw<{ rows: Row[] }>(sql, [...values])).rows;
  }

  /** Looks at an index alone: no record is read. */
  async #count(filter: F, walk: Walk<F>): Promise<Total> {
    const { counted } = this.#bounds;
    const { sql, values } = candidates(this.#table, walk, filter, { order: 'desc', limit: counted + 1 });
    const [row] = await this.#raw<{ readonly total: number }>({
      sql: `select count(*)::int as total from ${sql} counted`,
      values,
    });
    const total = row?.total ?? 0;
    return { total: Math.min(total, counted), isExact: total <= counted };
  }

  /** The way with the fewest records, counted no further than they are searched. */
  async #choose(filter: F, walks: readonly Walk<F>[]): Promise<Chosen<F>> {
    const { searched: limit } = this.#bounds;
    const parts = walks.map((walk) => candidates(this.#table, walk, filter, { order: 'desc', limit: limit + 1 }));
    const [row] = await this.#raw<{ readonly counts: readonly number[] }>({
      sql: `select array[${parts.map(({ sql }) => `(select count(*)::int from ${sql} counted)`).join(', ')}] as counts`,
      values: parts.flatMap(({ values }) => values),
    });
    const counts = row?.counts ?? [];
    const fewest = counts.indexOf(Math.min(...counts));
    const walk = walks[fewest];
    if (walk === undefined) throw new Error(`no way to the records of ${this.#table.table}`);
    return { walk, isWhole: (counts[fewest] ?? 0) <= limit };
  }

  async #search(filter: F, { walk, isWhole }: Chosen<F>, order: Order): Promise<Total> {
    const { sql, values } = searched(
      candidates(this.#table, walk, filter, {
        order,
        limit: this.#bounds.searched,
        columns: columnsOf(walk.left),
      }),
      walk.left,
    );
    const [row] = await this.#raw<{ readonly total: number }>({
      sql: `select count(*)::int as total from ${sql}`,
      values,
    });
    return { total: row?.total ?? 0, isExact: isWhole };
  }

  async #rows<Row extends object>(
    filter: F,
    { walk, isWhole }: Chosen<F>,
    { page, size, sort, after }: HistoryPaging,
    columns: readonly (string | Knex.Raw)[],
  ): Promise<Found<Row>> {
    const { table, time, id } = this.#table;
    const byTime = sort.column === time.column;
    const order = sort.direction;
    const first = page * size;
    const { left } = walk;
    const { counted, searched: searchLimit } = this.#bounds;
    if (first >= (left.length === 0 ? counted : searchLimit)) return { rows: [], next: undefined };
    const limit = left.length === 0 && byTime ? first + size + 1 : searchLimit;
    const from = searched(
      candidates(this.#table, walk, filter, {
        ...{ order, after, limit },
        columns: [...columnsOf(left), ...(byTime ? [] : [sort.column])],
      }),
      left,
    );
    const by = byTime
      ? `found_time ${order}, found_id ${order}`
      : `found.${sort.column} ${order} nulls last, found_id ${order}`;
    // The records are read behind the bounds: what is passed over costs no more than its place in the index.
    const names = byTime ? 'found_id, found_time' : `found_id, found_time, found.${sort.column} as found_value`;
    const again = byTime ? by : `found_value ${order} nulls last, found_id ${order}`;
    const rows: readonly (Row & Marked)[] = await this.#knex
      .select<(Row & Marked)[]>(
        ...columns,
        this.#knex.raw('(extract(epoch from found_time) * 1000000)::bigint::text as key_time'),
        this.#knex.raw('found_id::text as key_id'),
      )
      .from(
        this.#knex.raw(`(select ${names} from ${from.sql} order by ${by} limit ${size + 1} offset ${first}) page`, [
          ...from.values,
        ]),
      )
      .joinRaw(`join ${table} on ${table}.${id.column} = page.found_id`)
      .orderByRaw(again);
    const shown = rows.slice(0, size);
    if (!byTime) return { rows: shown, next: undefined };
    const last = shown.at(-1);
    if (rows.length > size && last !== undefined) return { rows: shown, next: keyOf(last) };
    return { rows: shown, next: isWhole ? undefined : await this.#endOfSearch(filter, walk, order, after) };
  }

  /** Where the search ended for its bound; undefined: at the end of the way. */
  async #endOfSearch(
    filter: F,
    walk: Walk<F>,
    order: Order,
    after: HistoryKey | undefined,
  ): Promise<HistoryKey | undefined> {
    const { searched: limit } = this.#bounds;
    const { sql, values } = candidates(this.#table, walk, filter, { order, after, limit: limit + 1 });
    const rows = await this.#raw<Marked>({
      sql: `select (extract(epoch from found_time) * 1000000)::bigint::text as key_time, found_id::text as key_id
        from ${sql} walked order by found_time ${order}, found_id ${order} limit 2 offset ${limit - 1}`,
      values,
    });
    return rows.length === 2 && rows[0] !== undefined ? keyOf(rows[0]) : undefined;
  }

  #misplacedAfter(field: 'page' | 'sort') {
    const { field: time } = this.#table.time;
    return validation([
      {
        field: 'after',
        message:
          field === 'page' ? 'expected after or page, got both' : `expected with it sort=${time},asc or ${time},desc`,
      },
    ]);
  }

  #unsortable() {
    const { field } = this.#table.time;
    const many = this.#bounds.searched.toLocaleString('en');
    return validation([
      {
        field: 'sort',
        message: `more than ${many} records would have to be sorted: expected ${field},asc or ${field},desc, or filters that leave fewer, such as from and to`,
      },
    ]);
  }

  #tooDeep(total: number) {
    return validation([
      {
        field: 'page',
        message: `pages are found by number among the first ${total.toLocaleString('en')} records: take the last of them, and continue with its next in after`,
      },
    ]);
  }
}

interface Found<Row> {
  readonly rows: readonly Row[];
  readonly next: HistoryKey | undefined;
}

interface Marked {
  readonly key_time: string;
  readonly key_id: string;
}

const keyOf = ({ key_time: time, key_id: id }: Marked): HistoryKey => ({ time, id });
