/** What a failover leaves in the pool: connections to the server that was the primary. */
import { afterEach, beforeAll, expect, test } from '@jest/globals';

import type { Database } from '@pesit-node/service';
import { withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { openPostgresql } from '../../src/database/postgresql.js';

const CONNECTIONS = 4;

withDatabase((harness) => {
  let real: TestDatabase;
  let database: Database | undefined;

  beforeAll(async () => {
    real = await harness.open({ searchPath: ['public'] });
    await real.knex.schema.createTable('marks', (table) => table.integer('id'));
  });
  afterEach(() => database?.close());

  const open = (): Database =>
    (database = openPostgresql({ url: real.url, searchPath: ['public'], poolMax: CONNECTIONS }));

  /** Uses all connections of the pool at once. @returns how each fared: `done`, or the SQLSTATE */
  const insertOnAll = (knex: Database['knex']): Promise<readonly string[]> =>
    Promise.all(
      Array.from({ length: CONNECTIONS }, () =>
        knex.raw('insert into marks select 1 from pg_sleep(0.2)').then(
          () => 'done',
          (error: unknown) => String((error as { readonly code?: string }).code),
        ),
      ),
    );

  test('a connection that turns out to be read-only is used once, and replaced', async () => {
    const name = new URL(real.url).pathname.slice(1);
    await real.knex.raw('alter database ?? set default_transaction_read_only = on', [name]);
    const { knex } = open();
    // All are open before the first comes free.
    const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => knex.transaction()));
    for (const transaction of all) await transaction.rollback();
    await real.knex.raw('alter database ?? reset default_transaction_read_only', [name]);
    expect(await insertOnAll(knex)).toEqual(Array(CONNECTIONS).fill('25006'));
    expect(await insertOnAll(knex)).toEqual(Array(CONNECTIONS).fill('done'));
  });

  test('a transaction of one ends with its error, and its connection is replaced, too', async () => {
    const name = new URL(real.url).pathname.slice(1);
    await real.knex.raw('alter database ?? set default_transaction_read_only = on', [name]);
    const { knex } = open();
    await knex.raw('select 1');
    await real.knex.raw('alter database ?? reset default_transaction_read_only', [name]);
    const write = (): Promise<unknown> => knex.transaction(async (trx) => trx('marks').insert({ id: 2 }));
    await expect(write()).rejects.toMatchObject({ code: '25006' });
    await write();
    expect(await real.knex('marks').where({ id: 2 })).toHaveLength(1);
  });
});
