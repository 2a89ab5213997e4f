import type { Knex } from 'knex';

import type { Database } from './types.js';
import { reasonOf } from '@pesit-node/ground';

export type SchemaName = 'pesit_server' | 'pesit_client' | 'pesit_common';

/** One step. Names sort by the order of the list, are never changed, and a published step is never edited. */
export interface Migration {
  /** `0001-partners`. */
  readonly name: string;
  /** Runs inside the transaction of all pending steps, with the schema first in the search path. */
  up(knex: Knex): Promise<void>;
}

/** A schema and its steps, oldest first. */
export interface MigrationSet {
  readonly schema: SchemaName;
  readonly migrations: readonly Migration[];
}

/** PostgreSQL older than this lacks what the migrations use (design, Configuration). */
const MIN_SERVER_VERSION = 140_000;

/** Session and transaction advisory locks share one key space per database: one key for all of this product's migrations. */
const LOCK_KEY = 7_037_481_001;

/** The database cannot be used by this version, whatever is tried again. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

const checkVersion = async (knex: Knex): Promise<void> => {
  const { rows } = await knex.raw<{ rows: { version: string; number: string }[] }>(
    "select current_setting('server_version') as version, current_setting('server_version_num') as number",
  );
  if (Number(rows[0]?.number) < MIN_SERVER_VERSION) {
    throw new MigrationError(`PostgreSQL 14 or newer is needed, this server is ${rows[0]?.version ?? 'unknown'}`);
  }
};

const applyPending = async (
  trx: Knex.Transaction,
  { schema, migrations }: MigrationSet,
): Promise<readonly string[]> => {
  // `create schema if not exists` asks for the right to create even where a DBA has made the schema.
  const exists = await trx
    .withSchema('pg_catalog')
    .from('pg_namespace')
    .where({ nspname: schema })
    .first<object | undefined>('nspname');
  if (exists === undefined) await trx.raw('create schema ??', [schema]);
  await trx.raw('set local search_path to ??', [schema]);
  if (!(await trx.schema.withSchema(schema).hasTable('migrations'))) {
    await trx.schema.withSchema(schema).createTable('migrations', (table) => {
      table.text('name').primary();
      table.timestamp('applied_at').notNullable().defaultTo(trx.fn.now());
    });
  }
  const applied = new Set(await trx.withSchema(schema).from('migrations').pluck<string[]>('name'));
  const pending = migrations.filter(({ name }) => !applied.has(name));
  for (const migration of pending) {
    const { name } = migration;
    try {
      await migration.up(trx);
    } catch (cause) {
      throw new Error(`Migration ${schema}/${name} failed: ${reasonOf(cause)}`, {
        cause,
      });
    }
    await trx.withSchema(schema).insert({ name }).into('migrations');
  }
  return pending.map(({ name }) => name);
};

/**
 * Brings one schema up to date: all pending steps in one transaction, so that a failure leaves nothing half done.
 * Pods that start together wait for each other on an advisory lock; the second finds nothing to do. Steps that this version
 * does not know (applied by a newer one during a rolling upgrade) are left alone.
 * @returns names of the steps applied by this call.
 */
export const migrate = async (database: Database, set: MigrationSet): Promise<readonly string[]> =>
  database.withUnlimitedConnection(async (knex) => {
    await checkVersion(knex);
    return knex.transaction(async (trx) => {
      await trx.raw('select pg_advisory_xact_lock(?)', [LOCK_KEY]);
      return applyPending(trx, set);
    });
  });
