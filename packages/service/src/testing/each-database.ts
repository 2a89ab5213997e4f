import { afterAll, describe } from '@jest/globals';

import { migrate } from '../database/migrate.js';
import type { MigrationSet } from '../database/migrate.js';
import { openPostgresql } from '../database/postgresql.js';
import type { Database, DatabaseMode } from '../database/types.js';
import { openInMemory } from './embedded.js';
import { silentLogger } from './logger.js';
import { createFreshDatabase } from './postgresql.js';

export interface OpenTestDatabaseOptions {
  /** Applied before the database is handed out; also the default search path, in their order. */
  readonly migrations?: readonly MigrationSet[];
  readonly searchPath?: readonly string[];
}

export interface TestDatabase extends Database {
  /** Connection URL of the fresh PostgreSQL database, for a second pool or an app of its own; `''` when embedded. */
  readonly url: string;
  readonly searchPath: readonly string[];
}

export interface DatabaseHarness {
  readonly name: DatabaseMode;
  /**
   * A fresh, empty database, closed and dropped after the tests of this block. Costs about half a second: open one in
   * `beforeAll` and use `emptyTables` between tests.
   */
  readonly open: (options?: OpenTestDatabaseOptions) => Promise<TestDatabase>;
  /**
   * The same database as another pod has it: a pool of its own on PostgreSQL, the very same object when embedded, which has
   * no second pod. Closed after the tests of this block.
   */
  readonly another: (database: TestDatabase) => Promise<TestDatabase>;
}

/** @throws with `CI=true` and no `TEST_DATABASE_URL`: what was left out would pass unseen. */
export const testServerUrl = (env: Readonly<Record<string, string | undefined>>): string | undefined => {
  const url = env['TEST_DATABASE_URL'];
  if (url !== undefined && url !== '') return url;
  if (env['CI'] !== 'true') return undefined;
  throw new Error('CI=true, but TEST_DATABASE_URL is not set: database tests must run on real PostgreSQL too');
};

type OpenRaw = (searchPath: readonly string[], atEnd: (undo: () => Promise<void>) => void) => Promise<TestDatabase>;

const openEmbeddedRaw: OpenRaw = async (searchPath) => ({
  ...(await openInMemory(searchPath, silentLogger)),
  url: '',
  searchPath,
});

const openPool = (url: string, searchPath: readonly string[]): TestDatabase => ({
  ...openPostgresql({ url, searchPath, poolMax: 10 }),
  url,
  searchPath,
});

const openPostgresqlRaw =
  (serverUrl: string): OpenRaw =>
  async (searchPath, atEnd) => {
    const { url, drop } = await createFreshDatabase(serverUrl);
    atEnd(drop);
    return openPool(url, searchPath);
  };

const block = (name: DatabaseMode, openRaw: OpenRaw, define: (harness: DatabaseHarness) => void): void => {
  describe(`on ${name}`, () => {
    const undo: (() => Promise<void>)[] = [];
    afterAll(async () => {
      for (const step of undo.splice(0).reverse()) await step();
    });
    define({
      name,
      open: async ({ migrations = [], searchPath = migrations.map(({ schema }) => schema) } = {}) => {
        const database = await openRaw(searchPath.length === 0 ? ['public'] : searchPath, (step) => undo.push(step));
        undo.push(() => database.close());
        for (const set of migrations) await migrate(database, set);
        return database;
      },
      another: (database) => {
        if (database.url === '') return Promise.resolve(database);
        const other = openPool(database.url, database.searchPath);
        undo.push(() => other.close());
        return Promise.resolve(other);
      },
    });
  });
};

/**
 * Defines the same tests for the embedded database and, when `TEST_DATABASE_URL` names a server (a user that may create
 * databases), for real PostgreSQL.
 * @throws with `CI=true` and no `TEST_DATABASE_URL`.
 */
export const eachDatabase = (define: (harness: DatabaseHarness) => void): void => {
  // eslint-disable-next-line no-restricted-properties -- the harness belongs to the tests, which have no composition root
  const serverUrl = testServerUrl(process.env);
  block('embedded', openEmbeddedRaw, define);
  if (serverUrl !== undefined) block('postgresql', openPostgresqlRaw(serverUrl), define);
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
