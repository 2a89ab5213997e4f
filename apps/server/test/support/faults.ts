/** Faults that a test injects: a database that goes away and comes back, a disk that fills up. */
import type { Database } from '@pesit-node/service';
import { nodeFiles } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';

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

/** Files that are opened from now on, until `stop`: the bytes of each read and write of them, and a disk that may be full. */
export const watchFiles = () => {
  const files = nodeFiles as { open: FileOperations['open'] };
  const { open } = files;
  const watched = {
    read: [] as number[],
    written: [] as number[],
    /** Every write fails. */
    isFull: false,
    stop: (): void => {
      files.open = open;
      watched.isFull = false;
    },
  };
  const bytesOf = (buffers: readonly Buffer[]): number => buffers.reduce((sum, { length }) => sum + length, 0);
  files.open = async (path, flags, mode) => {
    const file = await open(path, flags, mode);
    return {
      ...file,
      readv: (buffers, position) => {
        watched.read.push(bytesOf(buffers));
        return file.readv(buffers, position);
      },
      writev: (buffers, position) => {
        if (watched.isFull) {
          return Promise.reject(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }));
        }
        watched.written.push(bytesOf(buffers));
        return file.writev(buffers, position);
      },
    };
  };
  return watched;
};
