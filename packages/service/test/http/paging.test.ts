import { beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';

import { fetchPage, pagingFields, periodFields } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

const QUERY = z.strictObject({
  ...pagingFields({ sortable: { startTime: 'started_at', size: 'bytes' }, defaultSort: 'startTime,desc' }),
  ...periodFields(),
});

const errors = (query: unknown): unknown =>
  QUERY.safeParse(query).error?.issues.map(({ path, message }) => [path.join('.'), message]);

describe('query', () => {
  test('defaults', () => {
    expect(QUERY.parse({})).toEqual({ page: 0, size: 20, sort: { column: 'started_at', direction: 'desc' } });
  });

  test('given', () => {
    expect(QUERY.parse({ page: '3', size: '500', sort: 'size' })).toEqual({
      page: 3,
      size: 500,
      sort: { column: 'bytes', direction: 'asc' },
    });
  });

  test.each([
    [{ page: '-1' }, 'page'],
    [{ page: '1.5' }, 'page'],
    [{ page: '99999999999' }, 'page'],
    [{ size: '0' }, 'size'],
    [{ size: '501' }, 'size'],
    [{ size: ['1', '2'] }, 'size'],
    [{ sort: 'password,asc' }, 'sort'],
    [{ sort: 'constructor' }, 'sort'],
    [{ sort: 'size,down' }, 'sort'],
    [{ sort: 'size,asc,x' }, 'sort'],
    [{ from: 'yesterday' }, 'from'],
    [{ from: '2026-02-30' }, 'from'],
    [{ to: '2026-13-01' }, 'to'],
    [{ to: '2026-11-21T25:00:00Z' }, 'to'],
  ])('%j is refused', (query, field) => {
    expect(errors(query)).toEqual([[field, expect.any(String)]]);
  });

  test('the message names what can be sorted by', () => {
    expect(errors({ sort: 'x' })).toEqual([
      ['sort', 'expected field,asc or field,desc with a field of: startTime, size'],
    ]);
  });

  test.each([
    ['2026-11-21', '2026-11-21T00:00:00.000Z', '2026-11-22T00:00:00.000Z'],
    ['2026-11-21T09:30:00Z', '2026-11-21T09:30:00.000Z', '2026-11-21T09:30:00.001Z'],
    ['2026-11-21T09:30', '2026-11-21T09:30:00.000Z', '2026-11-21T09:30:00.001Z'],
    ['2026-11-21T09:30:00.5+01:00', '2026-11-21T08:30:00.500Z', '2026-11-21T08:30:00.501Z'],
    ['2026-11-21T09:30:00 01:00', '2026-11-21T08:30:00.000Z', '2026-11-21T08:30:00.001Z'],
  ])('%s: from is itself, to is the first moment after it', (value, from, to) => {
    const parsed = QUERY.parse({ from: value, to: value });
    expect([parsed.from?.toISOString(), parsed.to?.toISOString()]).toEqual([from, to]);
  });
});

withDatabase((harness) => {
  describe('pages', () => {
    let database: TestDatabase;

    beforeAll(async () => {
      database = await harness.open();
      await database.knex.raw('create table records (id int primary key, bytes bigint)');
      // Seven rows share one size: without the tie-break their order could change from page to page.
      await database.knex('records').insert(Array.from({ length: 10 }, (_, id) => ({ id, bytes: id < 7 ? 5 : null })));
    });

    const fetch = (query: Record<string, string>) =>
      fetchPage<{ id: number }, number>(database.knex('records'), QUERY.parse(query), {
        tieBreak: 'id',
        map: ({ id }) => id,
      });

    test('envelope, stable order, empty values last', async () => {
      expect(await fetch({ size: '4', sort: 'size,asc' })).toEqual({
        content: [0, 1, 2, 3],
        totalElements: 10,
        totalPages: 3,
        number: 0,
        size: 4,
      });
      expect((await fetch({ size: '4', sort: 'size,asc', page: '1' })).content).toEqual([4, 5, 6, 7]);
      expect((await fetch({ size: '4', sort: 'size,desc', page: '0' })).content).toEqual([6, 5, 4, 3]);
      expect((await fetch({ size: '4', sort: 'size,desc', page: '2' })).content).toEqual([8, 7]);
    });

    test('beyond the end is an empty page', async () => {
      expect(await fetch({ page: '9', sort: 'size' })).toEqual({
        content: [],
        totalElements: 10,
        totalPages: 1,
        number: 9,
        size: 20,
      });
    });

    test('filters count too', async () => {
      const page = await fetchPage(database.knex('records').where('id', '<', 3), QUERY.parse({ sort: 'size' }), {
        tieBreak: 'id',
        columns: ['id'],
        map: (row: object) => row,
      });
      expect(page).toMatchObject({ content: [{ id: 0 }, { id: 1 }, { id: 2 }], totalElements: 3 });
    });
  });
});
