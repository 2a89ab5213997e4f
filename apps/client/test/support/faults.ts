/** A database that goes away and comes back, as the driver tells it. */
import type { Database } from '@pesit-node/service';

interface Client {
  acquireConnection: () => Promise<unknown>;
  query: (connection: unknown, query: { readonly sql?: string }) => Promise<unknown>;
}

const clientOf = ({ knex }: Database): Client => knex.client as Client;

export const loseDatabase = (database: Database): void => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
  clientOf(database).acquireConnection = () => Promise.reject(refused);
};

/** Undoes every fault. */
export const findDatabase = ({ knex }: Database): void => {
  const client = knex.client as Partial<Client>;
  delete client.acquireConnection;
  delete client.query;
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

/** The next statement that matches takes effect, but its answer never comes; resolves when that has happened. */
export const loseAnswer = (database: Database, statement: RegExp): Promise<void> => {
  const client = clientOf(database);
  const query = client.query.bind(client);
  return new Promise((resolve) => {
    client.query = async (connection, given) => {
      const result = await query(connection, given);
      if (!statement.test(given.sql ?? '')) return result;
      delete (client as Partial<Client>).query;
      resolve();
      throw new Error('Connection terminated unexpectedly');
    };
  });
};
