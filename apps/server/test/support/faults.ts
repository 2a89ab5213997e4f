import { open } from 'node:fs/promises';

import type { Database } from '@pesit-node/service';

interface Client {
  acquireConnection: () => Promise<unknown>;
  query: (connection: unknown, query: { readonly sql?: string }) => Promise<unknown>;
}

const clientOf = (database: Database): Client => database.knex.client as Client;

const refused = (): Error => Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });

/** The database cannot be reached any more, as the driver tells it. */
export const loseDatabase = (database: Database): void => {
  clientOf(database).acquireConnection = () => Promise.reject(refused());
};

/** It can be reached again; undoes every fault. */
export const findDatabase = (database: Database): void => {
  const client = database.knex.client as Partial<Client>;
  delete client.acquireConnection;
  delete client.query;
};

/** The next statement that matches takes effect, but its answer is lost; `after` says what happens then. */
export const loseAnswer = (database: Database, statement: RegExp, after: () => void = () => undefined): void => {
  const client = clientOf(database);
  const query = client.query.bind(client);
  client.query = async (connection, given) => {
    const result = await query(connection, given);
    if (!statement.test(given.sql ?? '')) return result;
    delete (client as Partial<Client>).query;
    after();
    throw new Error('Connection terminated unexpectedly');
  };
};

/** The next statement that matches waits until it is released. */
export const holdStatement = (
  database: Database,
  statement: RegExp,
): { readonly held: Promise<void>; readonly release: () => void } => {
  const client = clientOf(database);
  const query = client.query.bind(client);
  let reached!: () => void;
  let release!: () => void;
  const held = new Promise<void>((resolve) => (reached = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  client.query = async (connection, given) => {
    if (statement.test(given.sql ?? '')) {
      delete (client as Partial<Client>).query;
      reached();
      await released;
    }
    return query(connection, given);
  };
  return { held, release };
};

/** Every write to a file fails as on a full disk, until the returned function is called. */
export const fillDisk = async (anyFile: string): Promise<() => void> => {
  const handle = await open(anyFile);
  const prototype = Object.getPrototypeOf(handle) as { writev: () => Promise<unknown> };
  await handle.close();
  const { writev } = prototype;
  prototype.writev = () =>
    Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }));
  return () => {
    prototype.writev = writev;
  };
};

type Vectored = (buffers: readonly Buffer[], position: number) => Promise<unknown>;

/** The bytes of each vectored read and write of a file from now on, until `stop` is called. */
export const measureFiles = async (anyFile: string) => {
  const handle = await open(anyFile);
  const prototype = Object.getPrototypeOf(handle) as { readv: Vectored; writev: Vectored };
  await handle.close();
  const { readv, writev } = prototype;
  const sizes = { read: [] as number[], written: [] as number[] };
  const noting = (original: Vectored, noted: number[]): Vectored =>
    function (this: unknown, buffers, position) {
      noted.push(buffers.reduce((sum, { length }) => sum + length, 0));
      return original.call(this, buffers, position);
    };
  prototype.readv = noting(readv, sizes.read);
  prototype.writev = noting(writev, sizes.written);
  return { ...sizes, stop: () => Object.assign(prototype, { readv, writev }) };
};
