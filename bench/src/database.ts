/** The databases of the apps under test. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** How the apps keep their records: a private PostgreSQL over TCP, or the embedded one of each app. Both flush every commit. */
export type DatabaseKind = 'postgresql' | 'embedded';

/** Where scripts/bench.mjs says that PostgreSQL is; unset where the machine has none. */
export const DATABASE_URL = 'BENCH_DATABASE_URL';

/**
 * Environment of an app with a new, empty database.
 *
 * @throws Error when PostgreSQL is asked for and there is none
 */
export const freshDatabase = async (kind: DatabaseKind, name: string): Promise<Readonly<Record<string, string>>> => {
  if (kind === 'embedded') return {};
  const server = process.env[DATABASE_URL];
  if (server === undefined)
    throw new Error('--database postgresql: no PostgreSQL 14 or later was found on this machine');
  const database = `${name}_${randomBytes(6).toString('hex')}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`create database ${database}`);
  } finally {
    await client.end();
  }
  const url = new URL(server);
  url.pathname = `/${database}`;
  return { DATABASE_URL: url.href, SECRETS_KEY: randomBytes(32).toString('base64') };
};
