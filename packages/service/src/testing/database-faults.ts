/** Faults of a database, injected where knex hands statements to the driver. */
import type { Database } from '../database/types.js';

interface Client {
  acquireConnection: () => Promise<unknown>;
  query: (connection: unknown, query: { readonly sql?: string }) => Promise<unknown>;
}

const clientOf = ({ knex }: Database): Client => knex.client as Client;

/** From here on the database cannot be reached, as the driver tells it. */
export const loseDatabase = (database: Database): void => {
  const refused = (): Error =>
    Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
  clientOf(database).acquireConnection = () => Promise.reject(refused());
};

/** It can be reached again; undoes every fault. */
export const findDatabase = (database: Database): void => {
  const client = clientOf(database) as Partial<Client>;
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

interface Hold {
  readonly held: Promise<void>;
  readonly release: () => void;
}

const hold = (database: Database, statement: RegExp, what: 'statement' | 'answer'): Hold => {
  const client = clientOf(database);
  const query = client.query.bind(client);
  let reached!: () => void;
  let release!: () => void;
  const held = new Promise<void>((resolve) => (reached = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  client.query = async (connection, given) => {
    if (!statement.test(given.sql ?? '')) return query(connection, given);
    delete (client as Partial<Client>).query;
    const result = what === 'answer' ? await query(connection, given) : undefined;
    reached();
    await released;
    return result ?? query(connection, given);
  };
  return { held, release };
};

/** The next statement that matches waits until it is released. */
export const holdStatement = (database: Database, statement: RegExp): Hold => hold(database, statement, 'statement');

/** The next statement that matches takes effect; its answer waits until it is released. */
export const holdAnswer = (database: Database, statement: RegExp): Hold => hold(database, statement, 'answer');
