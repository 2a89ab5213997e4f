import { beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';

import { containing, equal, givenConditions, History, historyPagingFields, periodFields } from '@pesit-node/service';
import type { HistoryPage, HistoryTable } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

interface Filter {
  readonly owner?: string | undefined;
  readonly side?: string | undefined;
  readonly state?: string | undefined;
  readonly q?: string | undefined;
  readonly from?: Date | undefined;
  readonly to?: Date | undefined;
}

const TABLE: HistoryTable<Filter> = {
  table: 'records',
  time: { field: 'startTime', column: 'began' },
  id: { column: 'id', type: 'bigint' },
  conditions: ({ owner, side, state, q }) =>
    givenConditions({
      ...{ owner: equal('owner', owner), side: equal('side', side), state: equal('state', state) },
      q: containing(['name'], q),
    }),
  ways: [{ serves: ['owner'] }, { serves: ['side'] }, { serves: [], arms: [`side = 'left'`, `side = 'right'`] }],
};
const BOUNDS = { counted: 30, searched: 10 };
const COUNT = 100;

/** Two of them share each moment, and microseconds tell some apart. */
const ROWS = Array.from({ length: COUNT }, (_, index) => {
  const id = index + 1;
  return {
    id,
    began: `2026-11-21T10:00:00.${String(1000 + Math.floor(id / 2)).padStart(6, '0')}Z`,
    owner: id % 20 === 0 ? 'rare' : id % 3 === 0 ? 'some' : 'most',
    side: id % 4 === 0 ? 'left' : 'right',
    state: id % 50 === 7 ? 'broken' : 'whole',
    name: id === 3 ? 'Needle' : `hay ${id}`,
    weight: id % 5 === 0 ? null : (id * 7) % 11,
  };
});
type Row = (typeof ROWS)[number];

const QUERY = z.strictObject({
  ...historyPagingFields(
    { sortable: { startTime: 'began', weight: 'weight' }, defaultSort: 'startTime,desc' },
    'bigint',
  ),
  ...periodFields(),
});

withDatabase((harness) => {
  let database: TestDatabase;
  let history: History<Filter>;

  beforeAll(async () => {
    database = await harness.open();
    await database.knex.raw(`
      create table records (id bigint primary key, began timestamptz not null, owner text not null, side text not null,
        state text not null, name text not null, weight int);
      create index on records (owner, began desc, id desc);
      create index on records (side, began desc, id desc);`);
    await database.knex('records').insert(ROWS);
    history = new History(database.knex, TABLE, BOUNDS);
  });

  const page = (filter: Filter, query: Record<string, string> = {}): Promise<HistoryPage<number>> =>
    history.page<{ id: number }, number>(filter, QUERY.parse(query), { columns: ['id'], map: ({ id }) => id });

  const matches = (filter: Filter) => (row: Row) =>
    (filter.owner === undefined || row.owner === filter.owner) &&
    (filter.side === undefined || row.side === filter.side) &&
    (filter.state === undefined || row.state === filter.state) &&
    (filter.q === undefined || row.name.toLowerCase().includes(filter.q.toLowerCase()));

  const expected = (filter: Filter): readonly number[] =>
    ROWS.filter(matches(filter))
      .sort((a, b) => a.began.localeCompare(b.began) || a.id - b.id)
      .map(({ id }) => id);

  const walk = async (filter: Filter, query: Record<string, string>): Promise<readonly number[]> => {
    const seen: number[] = [];
    for (let next: string | null | undefined; next !== null;) {
      const one = await page(filter, { ...query, ...(next === undefined ? {} : { after: next }) });
      expect(one.content.length).toBeLessThanOrEqual(one.size);
      seen.push(...one.content);
      next = one.next;
    }
    return seen;
  };

  const FILTERS: readonly Filter[] = [
    {},
    ...[{ owner: 'rare' }, { owner: 'most' }, { side: 'left' }, { state: 'broken' }, { q: 'NEEDLE' }, { q: 'nothing' }],
    ...[
      { owner: 'rare', side: 'right' },
      { owner: 'most', side: 'left' },
      { owner: 'most', state: 'broken' },
    ],
    ...[{ owner: 'some', q: 'hay' }, { side: 'right', q: '%' }, { owner: 'none' }],
  ];

  describe('by keys', () => {
    test.each(FILTERS)('%j: each record once, in order, to the last', async (filter) => {
      const all = expected(filter);
      expect(await walk(filter, { size: '7', sort: 'startTime,asc' })).toEqual(all);
      expect(await walk(filter, { size: '7' })).toEqual(all.toReversed());
    });

    test('a search that finds nothing says how far it came, and where it continues', async () => {
      const first = await page({ q: 'needle' });
      expect(first).toMatchObject({ content: [], totalElements: 0, totalIsExact: false });
      // Ten of 100 were looked at, the newest first.
      expect(first.next).toMatch(/^\d{16}\.91$/);
    });

    test('a record that comes meanwhile moves nothing', async () => {
      const first = await page({}, { size: '5' });
      await database.knex('records').insert({ ...ROWS[0], id: 1000, began: '2026-11-22T00:00:00Z' });
      try {
        expect((await page({}, { size: '5', after: first.next ?? '' })).content).toEqual([95, 94, 93, 92, 91]);
      } finally {
        await database.knex('records').where({ id: 1000 }).delete();
      }
    });

    test.each(['1', 'x.1', '1.0', '12345678901234567.1', "1.1'"])('%s is no key', (after) => {
      expect(QUERY.safeParse({ after }).success).toBe(false);
    });

    test('not beside a page number or another order', async () => {
      await expect(page({}, { after: '1.1', page: '1' })).rejects.toThrow('after: expected after or page, got both');
      await expect(page({}, { after: '1.1', sort: 'weight' })).rejects.toThrow(
        'after: expected with it sort=startTime,asc',
      );
    });
  });

  test.each(FILTERS)('%j: all of them, in batches', async (filter) => {
    const seen: number[] = [];
    for await (const batch of history.batches<{ id: number }, number>(filter, {
      columns: ['id'],
      map: ({ id }) => id,
    })) {
      seen.push(...batch);
    }
    expect(seen).toEqual(expected(filter).toReversed());
  });

  describe('totals', () => {
    test('exact as far as records are counted', async () => {
      expect(await page({ side: 'left' })).toMatchObject({ totalElements: 25, totalIsExact: true, totalPages: 2 });
      expect(await page({})).toMatchObject({ totalElements: 30, totalIsExact: false, totalPages: 2 });
    });

    test('the way with the fewest records is taken: then everything is looked at', async () => {
      expect(await page({ owner: 'rare', side: 'left', state: 'whole', q: 'hay' })).toMatchObject({
        totalElements: 5,
        totalIsExact: true,
      });
    });

    test('a short period is searched whole', async () => {
      const period = QUERY.parse({ from: '2026-11-21T10:00:00.001Z', to: '2026-11-21T10:00:00.001Z' });
      expect(period.to?.getTime()).toBe(Date.parse('2026-11-21T10:00:00.002Z'));
      const { from } = period;
      expect(await page({ q: 'needle', from, to: new Date('2026-11-21T10:00:00.001Z') })).toMatchObject({
        totalElements: 0,
        totalIsExact: true,
      });
    });
  });

  describe('pages by number', () => {
    test('as far as records are counted, then by key', async () => {
      expect((await page({}, { size: '10', page: '2' })).content).toEqual(expected({}).toReversed().slice(20, 30));
      await expect(page({}, { size: '10', page: '3' })).rejects.toThrow(
        'page: pages are found by number among the first 30 records: take the last of them, and continue with its next in after',
      );
    });

    test('beyond the end is an empty page', async () => {
      expect(await page({ owner: 'rare' }, { page: '100000000' })).toMatchObject({
        ...{ content: [], totalElements: 5, totalPages: 1, number: 100_000_000, next: null },
      });
    });
  });

  describe('other orders', () => {
    test.each(['asc', 'desc'])('of few records: %s, empty values last', async (direction) => {
      const sign = direction === 'asc' ? 1 : -1;
      const sorted = ROWS.filter(matches({ owner: 'rare' }))
        .sort((a, b) => (a.weight ?? sign * 99) * sign - (b.weight ?? sign * 99) * sign || (a.id - b.id) * sign)
        .map(({ id }) => id);
      const found = await page({ owner: 'rare' }, { sort: `weight,${direction}`, size: '3' });
      expect([
        ...found.content,
        ...(await page({ owner: 'rare' }, { sort: `weight,${direction}`, size: '3', page: '1' })).content,
      ]).toEqual(sorted);
      expect(found).toMatchObject({ totalElements: 5, totalIsExact: true, next: null });
    });

    test('of more than are looked at: refused, with the one that is possible', async () => {
      await expect(page({}, { sort: 'weight' })).rejects.toThrow(
        'sort: more than 10 records would have to be sorted: expected startTime,asc or startTime,desc, or filters that leave fewer, such as from and to',
      );
    });
  });
});
