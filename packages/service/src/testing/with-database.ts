import { afterAll, describe } from '@jest/globals';

import { migrate } from '../database/migrate.js';
import type { MigrationSet } from '../database/migrate.js';
import { openPostgresql } from '../database/postgresql.js';
import type { Database } from '../database/types.js';
import { createFreshDatabase } from './postgresql.js';

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
 * Defines tests that need databases, on the PostgreSQL server of `TEST_DATABASE_URL`, whose user may create databases.
 * @throws without `TEST_DATABASE_URL`.
 */
export const withDatabase = (define: (harness: DatabaseHarness) => void): void => {
  // eslint-disable-next-line no-restricted-properties -- the harness belongs to the tests, which have no composition root
  const serverUrl = testServerUrl(process.env);
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
        const { url, drop } = await createFreshDatabase(serverUrl);
        undo.push(drop);
        const database = pool(url, searchPath.length === 0 ? ['public'] : searchPath);
        for (const set of migrations) await migrate(database, set);
        return database;
      },
      another: ({ url, searchPath }) => Promise.resolve(pool(url, searchPath)),
    });
  });
};

/** Deletes the rows of every table of these schemas and restarts their sequences; the migration tables stay. */
export const emptyTables = async ({ knex }: Database, ...schemas: readonly string[]): Promise<void> => {
  const tables = await knex
    .withSchema('pg_catalog')
    .from('pg_tables')
    .whereIn('schemaname', schemas)
    .andWhereNot('tablename', 'migrations')
    .select<{ schemaname: string; tablename: string }[]>('schemaname', 'tablename');
  if (tables.length === 0) return;
  const names = tables.map(({ schemaname, tablename }) => `${schemaname}.${tablename}`);
  await knex.raw(`truncate ${names.map(() => '??').join(', ')} restart identity cascade`, names);
};
