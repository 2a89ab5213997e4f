import { once } from 'node:events';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { hotStatement, isDatabaseUnavailable, isUniqueViolation, migrate } from '@pesit-node/service';
import type { MigrationSet, SchemaName } from '@pesit-node/service';
import { emptyTables, findDatabase, loseAnswer, loseDatabase, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { testServerUrl } from '../../src/testing/with-database.js';

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

const BROKEN = { name: '0002-broken', up: (knex: TestDatabase['knex']) => knex.raw('select nonsense') };

const LITERAL = '{"a":null,"b": :name}';
const add = hotStatement<{
  readonly name: string;
  readonly bytes: number | string | null;
  readonly tags: readonly string[];
  readonly literal: string;
}>(
  'test_add',
  `insert into things (name, bytes, at) values (:name, :bytes, '2026-11-21 09:30:00')
   returning name, bytes, :tags::text[] || :name::text as tags, '${LITERAL}'::text as literal`,
);
const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

withDatabase((harness) => {
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

  describe('a statement that every transfer needs', () => {
    let database: TestDatabase;
    const names = () => database.knex('things').orderBy('name').pluck('name');

    beforeAll(async () => {
      database = await harness.open({ migrations: [COMMON] });
    });
    beforeEach(() => emptyTables(database, 'pesit_common'));
    afterEach(() => findDatabase(database));

    test('values go where their names stand, casts stay, rows come back as of any statement', async () => {
      const heard: string[] = [];
      const hear = ({ sql }: { readonly sql: string }) => heard.push(sql);
      const answered = once(database.knex, 'query-response');
      database.knex.on('query', hear);
      const rows = await add(database.knex, { name: "o'clock :x", bytes: 4_294_967_296, tags: ['a,b', '"'] });
      database.knex.off('query', hear);
      expect(rows).toEqual([
        { name: "o'clock :x", bytes: 4_294_967_296, tags: ['a,b', '"', "o'clock :x"], literal: LITERAL },
      ]);
      await answered;
      expect(heard.filter((sql) => sql.includes('things'))).toEqual([
        expect.stringContaining("($1, $2, '2026-11-21 09:30:00')"),
      ]);
      expect(await add(database.knex, { name: 'b', bytes: null, tags: [] })).toEqual([
        { name: 'b', bytes: null, tags: ['b'], literal: LITERAL },
      ]);
    });

    test('PostgreSQL keeps it prepared, and it belongs to the transaction that it is made in', async () => {
      const failed = database.knex.transaction(async (trx) => {
        for (const name of ['a', 'b']) await add(trx, { name, bytes: 1, tags: [] });
        const { rows } = await trx.raw(`select name from pg_prepared_statements`);
        expect(rows).toEqual([{ name: 'test_add' }]);
        throw new Error('no');
      });
      await expect(failed).rejects.toThrow('no');
      expect(await names()).toEqual([]);
    });

    test('errors are those of any statement, and the connection is free again', async () => {
      await add(database.knex, { name: 'a', bytes: 1, tags: [] });
      // More often than the pool has connections.
      for (let turn = 0; turn < 12; turn++) {
        const error = await caught(add(database.knex, { name: 'a', bytes: 1, tags: [] }));
        expect([isUniqueViolation(error, 'things_name'), isDatabaseUnavailable(error)]).toEqual([true, false]);
      }
      await expect(add(database.knex, { name: 'b', bytes: 1 })).rejects.toThrow(
        'the statement test_add lacks its value tags',
      );
      expect(() => hotStatement('test_place', 'select ?')).toThrow('question mark');
    });

    test('a database that is away, and an answer that is lost, are told as such', async () => {
      loseDatabase(database);
      expect(isDatabaseUnavailable(await caught(add(database.knex, { name: 'a', bytes: 1, tags: [] })))).toBe(true);
      findDatabase(database);
      expect(await names()).toEqual([]);
      loseAnswer(database, /insert into things/);
      expect(isDatabaseUnavailable(await caught(add(database.knex, { name: 'b', bytes: 1, tags: [] })))).toBe(true);
      expect(await names()).toEqual(['b']);
    });
  });

  describe('migrations', () => {
    let database: TestDatabase;
    const things = (schema: SchemaName): MigrationSet => ({ ...COMMON, schema });

    // One database, a schema a test.
    beforeAll(async () => {
      database = await harness.open({ searchPath: ['public'] });
    });

    test('steps are applied once, later ones when they come, unknown ones are left alone', async () => {
      const set = things('pesit_common');
      expect(await migrate(database, set)).toEqual(['0001-things']);
      expect(await migrate(database, set)).toEqual([]);
      const longer = { ...set, migrations: [...set.migrations, SECOND] };
      expect(await migrate(database, longer)).toEqual(['0002-more']);
      expect(await migrate(database, set)).toEqual([]);
      const names = await database.knex.withSchema('pesit_common').from('migrations').orderBy('name').pluck('name');
      expect(names).toEqual(['0001-things', '0002-more']);
    });

    test('a step that fails leaves nothing, and is named', async () => {
      const set = things('pesit_server');
      const broken = { ...set, migrations: [...set.migrations, BROKEN] };
      await expect(migrate(database, broken)).rejects.toThrow(
        /^Migration pesit_server\/0002-broken failed: .*column "nonsense" does not exist/,
      );
      const schemas = await database.knex('pg_catalog.pg_namespace').where({ nspname: 'pesit_server' });
      expect(schemas).toEqual([]);
    });

    test('two pods that migrate at once both succeed, each step once', async () => {
      const set = things('pesit_client');
      const other = await harness.another(database);
      const applied = await Promise.all([migrate(database, set), migrate(other, set)]);
      expect(applied.flat()).toEqual(['0001-things']);
    });
  });
});

describe('harness', () => {
  test('without a PostgreSQL the tests fail, they are not left out', () => {
    expect(() => testServerUrl({ TEST_DATABASE_URL: '' })).toThrow('TEST_DATABASE_URL is not set');
    expect(() => testServerUrl({})).toThrow('TEST_DATABASE_URL is not set');
    expect(testServerUrl({ TEST_DATABASE_URL: 'postgresql://h/d' })).toBe('postgresql://h/d');
  });
});
