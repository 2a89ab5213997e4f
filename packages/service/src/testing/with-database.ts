import { afterAll, describe } from '@jest/globals';

import { migrate } from '../database/migrate.js';
import type { MigrationSet } from '../database/migrate.js';
import { openPostgresql } from '../database/postgresql.js';
import type { Database } from '../database/types.js';
import { createFreshDatabase, templateWith } from './postgresql.js';

export interface OpenTestDatabaseOptions {
  /** Applied before the database is handed out; also the default search path, in their order. */
  readonly migrations?: readonly MigrationSet[];
  readonly searchPath?: readonly string[];
}

export interface TestDatabase extends Database {
  /** Connection URL of the fresh database, for a second pool or an app of its own. */
  readonly url: string;
  readonly searchPath: readonly string[];
}

export interface DatabaseHarness {
  /**
   * A fresh, empty database, closed and dropped after the tests of this block. Costs a fraction of a second: open one in
   * `beforeAll` and use `emptyTables` between tests.
   */
  readonly open: (options?: OpenTestDatabaseOptions) => Promise<TestDatabase>;
  /** The same database as another pod has it: over a pool of its own. Closed after the tests of this block. */
  readonly another: (database: TestDatabase) => Promise<TestDatabase>;
}

/** @throws without `TEST_DATABASE_URL`: tests that were left out would pass unseen. */
export const testServerUrl = (env: Readonly<Record<string, string | undefined>>): string => {
  const url = env['TEST_DATABASE_URL'];
  if (url !== undefined && url !== '') return url;
  throw new Error('TEST_DATABASE_URL is not set: run the tests with "npm test", which starts a PostgreSQL for them');
};

const openPool = (url: string, searchPath: readonly string[]): TestDatabase => ({
  ...openPostgresql({ url, searchPath, poolMax: 10 }),
  url,
  searchPath,
});

/**
 * The database to copy, already with these migrations; undefined: there is none, and each test file applies them.
 * @param run as of `PESIT_TEST_RUN`, which `npm test` sets
 */
const templateOf = async (
  serverUrl: string,
  run: string | undefined,
  migrations: readonly MigrationSet[],
): Promise<string | undefined> => {
  if (run === undefined || migrations.length === 0) return undefined;
  return templateWith(serverUrl, run, migrations, async (url) => {
    const database = openPool(url, ['public']);
    try {
      for (const set of migrations) await migrate(database, set);
    } finally {
      await database.close();
    }
  });
};

/**
 * Defines tests that need databases, on the PostgreSQL server of `TEST_DATABASE_URL`, whose user may create databases.
 * @throws without `TEST_DATABASE_URL`.
 */
export const withDatabase = (define: (harness: DatabaseHarness) => void): void => {
  // eslint-disable-next-line no-restricted-properties -- the harness belongs to the tests, which have no composition root
  const { env } = process;
  const serverUrl = testServerUrl(env);
  describe('on PostgreSQL', () => {
    const undo: (() => Promise<void>)[] = [];
    afterAll(async () => {
      for (const step of undo.splice(0).reverse()) await step();
    });
    const pool = (url: string, searchPath: readonly string[]): TestDatabase => {
      const database = openPool(url, searchPath);
      undo.push(() => database.close());
      return database;
    };
    define({
      open: async ({ migrations = [], searchPath = migrations.map(({ schema }) => schema) } = {}) => {
        const template = await templateOf(serverUrl, env['PESIT_TEST_RUN'], migrations);
        const { url, drop } = await createFreshDatabase(serverUrl, template);
        undo.push(drop);
        const database = pool(url, searchPath.length === 0 ? ['public'] : searchPath);
        if (template === undefined) for (const set of migrations) await migrate(database, set);
        return database;
      },
      another: ({ url, searchPath }) => Promise.resolve(pool(url, searchPath)),
    });
  });
};

/**
 * Deletes the rows of every table of these schemas and restarts the sequences of their columns; the migration tables stay.
 * A thirtieth of what `truncate` costs, which makes new files for each table and index; a table that has grown is truncated,
 * so that the next test does not read what is dead in it.
 */
export const emptyTables = async ({ knex }: Database, ...schemas: readonly string[]): Promise<void> => {
  const names = schemas.map((schema) => `'${schema}'`).join(', ');
  for (let turn = 1; ; turn += 1) {
    try {
      await knex.raw(emptying(names));
      return;
    } catch (error) {
      // A service that still writes may hold one table and want another: PostgreSQL ends either of the two, at random.
      const isDeadlock = (error as { readonly code?: unknown }).code === '40P01';
      if (!isDeadlock || turn === MOST_DEADLOCKS) throw error;
    }
  }
};

const MOST_DEADLOCKS = 10;

const emptying = (names: string): string => `do $$
    declare
      tables text[];
      one record;
    begin
      select array_agg(format('%I.%I', schemaname, tablename)) into tables from pg_tables
        where schemaname in (${names}) and tablename <> 'migrations';
      if tables is null then return; end if;
      -- As truncate does: whoever writes still is waited for.
      execute 'lock table ' || array_to_string(tables, ', ') || ' in access exclusive mode';
      -- The tables that others refer to last.
      for one in
        select name, pg_relation_size(name::regclass) > 1048576 as grown from unnest(tables) as name
          order by exists (select from pg_constraint where contype = 'f' and confrelid = name::regclass)
      loop
        if one.grown then execute 'truncate ' || one.name || ' cascade'; else execute 'delete from ' || one.name; end if;
      end loop;
      for one in
        select s.seqrelid, s.seqstart from pg_sequence s join pg_depend d on d.objid = s.seqrelid
          where d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i') and d.refobjid = any(tables::regclass[])
      loop
        perform setval(one.seqrelid, one.seqstart, false);
      end loop;
    end $$`;
