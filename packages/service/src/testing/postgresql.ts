import { createHash, randomBytes } from 'node:crypto';

import pg from 'pg';

import type { MigrationSet } from '../database/migrate.js';

/** FILE_COPY costs a fifth of what PostgreSQL takes by itself since 15; before, there was nothing else and no word for it. */
const HOW_TO_COPY = "select current_setting('server_version_num')::int >= 150000 as is_asked";

/** Works on the server's own database. */
const administer = async <T>(serverUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

const copyDatabase = async (client: pg.Client, name: string, template: string): Promise<void> => {
  const { rows } = await client.query<{ is_asked: boolean }>(HOW_TO_COPY);
  await client.query(`create database ${name} template ${template} ${rows[0]?.is_asked ? 'strategy file_copy' : ''}`);
};

const urlOf = (serverUrl: string, name: string): string => Object.assign(new URL(serverUrl), { pathname: name }).href;

export interface FreshDatabase {
  readonly url: string;
  readonly drop: () => Promise<void>;
}

/**
 * A new database on the server of `serverUrl`, whose user may create databases: a copy of `template`, by default an empty one.
 * Nobody is ever connected to a template, so that parallel test processes do not stand in each other's way.
 */
export const createFreshDatabase = async (serverUrl: string, template = 'template0'): Promise<FreshDatabase> => {
  const name = `pesit_test_${process.pid}_${randomBytes(4).toString('hex')}`;
  await administer(serverUrl, (client) => copyDatabase(client, name, template));
  return {
    url: urlOf(serverUrl, name),
    drop: () =>
      administer(serverUrl, async (client) => {
        await client.query(`drop database if exists ${name} with (force)`);
      }),
  };
};

/** The name that a template with these migrations has in one run: their code does not change while it lasts. */
const templateName = (run: string, sets: readonly MigrationSet[]): string => {
  const steps = sets.map(({ schema, migrations }) => [
    schema,
    ...migrations.map((step) => [step.name, step.up.toString()]),
  ]);
  const hash = createHash('sha256').update(JSON.stringify(steps)).digest('hex').slice(0, 16);
  return `pesit_test_${run}_${hash}`;
};

/**
 * The name of a database to be copied, with these migrations: made by the first who asks, for all test processes of the run.
 * `scripts/test.mjs` removes it.
 * @param run of small letters and digits
 * @param prepare applies the migrations to the database of this URL, and closes its connections
 */
export const templateWith = async (
  serverUrl: string,
  run: string,
  sets: readonly MigrationSet[],
  prepare: (url: string) => Promise<void>,
): Promise<string> => {
  const name = templateName(run, sets);
  await administer(serverUrl, async (client) => {
    await client.query('select pg_advisory_lock(hashtext($1))', [name]);
    const { rows } = await client.query<{ datallowconn: boolean }>(
      'select datallowconn from pg_database where datname = $1',
      [name],
    );
    if (rows[0]?.datallowconn === false) return;
    // Half made: by a process that was killed.
    await client.query(`drop database if exists ${name} with (force)`);
    await copyDatabase(client, name, 'template0');
    await prepare(urlOf(serverUrl, name));
    await client.query(`alter database ${name} with allow_connections false`);
  });
  return name;
};
