import { randomBytes } from 'node:crypto';

import pg from 'pg';

/** One statement on the server's own database. */
const administer = async (serverUrl: string, sql: string): Promise<void> => {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
};

export interface FreshDatabase {
  readonly url: string;
  readonly drop: () => Promise<void>;
}

/** A new, empty database on the server of `serverUrl`, whose user may create databases. */
export const createFreshDatabase = async (serverUrl: string): Promise<FreshDatabase> => {
  const name = `pesit_test_${process.pid}_${randomBytes(4).toString('hex')}`;
  // template0: nobody is ever connected to it, so that parallel test processes do not stand in each other's way.
  await administer(serverUrl, `create database ${name} template template0`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => administer(serverUrl, `drop database if exists ${name} with (force)`) };
};
