import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { isUniqueViolation, migrate } from '@pesit-node/service';
import type { MigrationSet } from '@pesit-node/service';
import { eachDatabase, emptyTables } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { openPostgresql } from '../../src/database/postgresql.js';
import { silentLogger } from '../../src/testing/logger.js';

const COMMON: MigrationSet = {
  schema: 'pesit_common',
  migrations: [
    {
      name: '0001-things',
      up: async (knex) => {
        await knex.schema.createTable('things', (table) => {
          table.bigIncrements('id');
          table.text('name').notNullable();
          table.unique(['name'], { indexName: 'things_name' });
          table.bigInteger('bytes');
          table.decimal('price', 20, 4);
          table.timestamp('at');
          table.date('day');
          table.binary('blob');
          table.jsonb('json');
        });
      },
    },
  ],
};

const SECOND = {
  name: '0002-more',
  up: async (knex: TestDatabase['knex']) => {
    await knex.schema.alterTable('things', (table) => table.text('note'));
  },
};

eachDatabase((harness) => {
  describe('rows', () => {
    let database: TestDatabase;

    beforeAll(async () => {
      database = await harness.open({ migrations: [COMMON] });
    });
    beforeEach(() => emptyTables(database, 'pesit_common'));

    test('values come back as one expects: counts as numbers, times as Date, days as text, bytes as Buffer', async () => {
      const { knex } = database;
      await knex('things').insert({
        name: 'a',
        bytes: 4_294_967_296,
        price: '12.3400',
        at: new Date('2026-11-21T09:30:00.123Z'),
        day: '2026-11-21',
        blob: Buffer.from([0, 1, 255]),
        json: JSON.stringify({ a: [1] }),
      });
      const row = await knex('things').first();
      expect(row).toEqual({
        id: 1,
        name: 'a',
        bytes: 4_294_967_296,
        price: '12.3400',
        at: new Date('2026-11-21T09:30:00.123Z'),
        day: '2026-11-21',
        blob: Buffer.from([0, 1, 255]),
        json: { a: [1] },
      });
      const sums = await knex('things').sum({ total: 'bytes' }).count({ n: '*' });
      expect(sums).toEqual([{ total: 4_294_967_296, n: 1 }]);
    });

    test('an int8 beyond what a number holds stays exact, as text', async () => {
      const { rows } = await database.knex.raw(
        'select 9007199254740991::int8 as safe, 9007199254740992::int8 as beyond',
      );
      expect(rows).toEqual([{ safe: 9_007_199_254_740_991, beyond: '9007199254740992' }]);
    });

    test('update and delete answer how many rows', async () => {
      await database.knex('things').insert([{ name: 'a' }, { name: 'b' }]);
      expect(await database.knex('things').update({ bytes: 1 })).toBe(2);
      expect(await database.knex('things').where({ name: 'a' }).del()).toBe(1);
    });

    test('a taken key is recognised, with its constraint', async () => {
      await database.knex('things').insert({ name: 'a' });
      const error: unknown = await database
        .knex('things')
        .insert({ name: 'a' })
        .catch((thrown: unknown) => thrown);
      expect([
        isUniqueViolation(error),
        isUniqueViolation(error, 'things_name'),
        isUniqueViolation(error, 'other'),
      ]).toEqual([true, true, false]);
    });

    test('a transaction that throws leaves nothing', async () => {
      const failed = database.knex.transaction(async (trx) => {
        await trx('things').insert({ name: 'a' });
        throw new Error('no');
      });
      await expect(failed).rejects.toThrow('no');
      expect(await database.knex('things').select()).toEqual([]);
    });

    test('large values and many rows pass whole', async () => {
      const blob = Buffer.alloc(3_000_000, 7);
      await database.knex('things').insert({ name: 'big', blob });
      const rows = Array.from({ length: 2000 }, (_, index) => ({ name: `row ${index}`, bytes: index }));
      await database.knex.batchInsert('things', rows, 500);
      const big = await database.knex('things').where({ name: 'big' }).first('blob');
      expect(blob.equals(big.blob)).toBe(true);
      expect(await database.knex('things').where('bytes', '>=', 0).orderBy('bytes').pluck('bytes')).toEqual(
        rows.map(({ bytes }) => bytes),
      );
    });

    test('queries that run at once do not disturb each other', async () => {
      const answers = await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const { rows } = await database.knex.raw('select ?::int as n, repeat(?, ?) as text', [
            index,
            'x',
            index * 1000,
          ]);
          return rows[0] as { n: number; text: string };
        }),
      );
      expect(answers.map(({ n, text }) => [n, text.length])).toEqual(answers.map((_, index) => [index, index * 1000]));
    });

    test('ping answers', async () => {
      await expect(database.ping()).resolves.toBeUndefined();
    });
  });

  describe('migrations', () => {
    let database: TestDatabase;
    const extra: { close(): Promise<void> }[] = [];

    beforeEach(async () => {
      database = await harness.open({ searchPath: ['pesit_common'] });
    });
    afterEach(async () => {
      for (const one of extra.splice(0)) await one.close();
    });

    test('steps are applied once, later ones when they come', async () => {
      expect(await migrate(database, COMMON)).toEqual(['0001-things']);
      expect(await migrate(database, COMMON)).toEqual([]);
      const longer = { ...COMMON, migrations: [...COMMON.migrations, SECOND] };
      expect(await migrate(database, longer)).toEqual(['0002-more']);
      expect(await migrate(database, COMMON)).toEqual([]);
      expect(await database.knex('migrations').orderBy('name').pluck('name')).toEqual(['0001-things', '0002-more']);
    });

    test('a step that fails leaves nothing, and is named', async () => {
      const broken: MigrationSet = {
        schema: 'pesit_common',
        migrations: [...COMMON.migrations, { name: '0002-broken', up: (knex) => knex.raw('select nonsense') }],
      };
      await expect(migrate(database, broken)).rejects.toThrow(
        /^Migration pesit_common\/0002-broken failed: .*column "nonsense" does not exist/,
      );
      expect(await migrate(database, COMMON)).toEqual(['0001-things']);
    });

    test('two pods that migrate at once both succeed, each step once', async () => {
      const other =
        database.url === ''
          ? database
          : openPostgresql({ url: database.url, searchPath: ['pesit_common'], poolMax: 2, logger: silentLogger });
      if (other !== database) extra.push(other);
      const applied = await Promise.all([migrate(database, COMMON), migrate(other, COMMON)]);
      expect(applied.flat()).toEqual(['0001-things']);
    });
  });
});
