import type { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

import knexFactory from 'knex';
import type { Knex } from 'knex';
import type { Client } from 'pg';

import { typeParsers } from './pg-types.js';
import { quietKnex } from './quiet-knex.js';
import { quoted } from './quoted.js';

const CONNECT_MS = 5000;
const ACQUIRE_MS = 10_000;
/** A process that stands still within a transaction holds up the others no longer than its leases would. */
const STANDSTILL_MS = 10_000;
/** How long connections get to say goodbye before their sockets are closed. */
const GOODBYE_MS = 2000;

export interface PoolOptions {
  /** Without a word on TLS. */
  readonly url: string;
  /** Asked for each connection; false: plain. */
  readonly tls: () => ConnectionOptions | false;
  readonly searchPath: readonly string[];
  readonly max: number;
  /** Milliseconds; 0 = no limit. */
  readonly statementTimeout: number;
  /** How long a query may be unanswered before its connection is given up, milliseconds; 0 = no limit. */
  readonly silenceMs: number;
}

export interface PostgresqlPool {
  readonly knex: Knex;
  /** Ends every connection, also those whose server no longer answers. */
  readonly destroy: () => Promise<void>;
}

type Done = (error: Error | null, connection: Client) => void;

/**
 * Ends a connection whose query is not answered: a host that vanished sends neither an answer nor a reset, and the query
 * would wait for the kernel's retransmissions, a quarter of an hour.
 */
const endWhenSilent = (connection: Client, silenceMs: number): void => {
  // The driver's types leave out its socket (the TLS one, where there is TLS) and its idle flag.
  const { stream } = (connection as unknown as { readonly connection: { readonly stream: Socket } }).connection;
  const state = connection as unknown as { readonly readyForQuery: boolean };
  stream.setTimeout(silenceMs, () => {
    if (!state.readyForQuery) stream.destroy(new Error(`PostgreSQL did not answer within ${silenceMs} ms`));
  });
};

/** SQLSTATE of a write on a server that is, or has become, a standby. */
const READ_ONLY = '25006';

/**
 * A connection that is read-only is replaced after the statement that found out: after a failover it leads to the old primary,
 * and the next one asks the name for its address again. The server closes those that it ends by itself (57P01).
 */
const replaceWhenReadOnly = (connection: Client): void => {
  const state = connection as unknown as {
    readonly connection: EventEmitter<{ errorMessage: [Error & { readonly code?: string }] }>;
    __knex__disposed?: Error;
  };
  state.connection.on('errorMessage', (error) => {
    if (error.code === READ_ONLY) state.__knex__disposed = error;
  });
};

/**
 * Sets up each new connection. Done here, and not by knex's own `searchPath` and version query, because those run before
 * anything watches over the connection, and knex forgets a connection whose set-up fails.
 */
const setUp =
  ({ searchPath, silenceMs }: PoolOptions) =>
  (connection: Client, done: Done): void => {
    if (silenceMs > 0) endWhenSilent(connection, silenceMs);
    replaceWhenReadOnly(connection);
    // Compiling a statement over a long history takes PostgreSQL longer than running it.
    connection.query(`set search_path to ${searchPath.map(quoted).join(', ')}; set jit to off`).then(
      () => done(null, connection),
      (error: unknown) => {
        connection.end().catch(() => undefined);
        done(error as Error, connection);
      },
    );
  };

/** knex and its pool on one PostgreSQL. */
export const createPool = (options: PoolOptions): PostgresqlPool => {
  const sockets = new Set<Socket>();
  const openSocket = (): Socket => {
    const socket = new Socket();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  const knex = knexFactory({
    client: 'pg',
    // All that knex wants to know of the version is whether it is a recent one; `migrate` checks it.
    version: '14.0',
    connection: () =>
      ({
        connectionString: options.url,
        // Read by the driver for each connection: knex asks the function once.
        get ssl() {
          return options.tls();
        },
        connectionTimeoutMillis: CONNECT_MS,
        statement_timeout: options.statementTimeout,
        idle_in_transaction_session_timeout: STANDSTILL_MS,
        keepAlive: true,
        keepAliveInitialDelayMillis: 10_000,
        application_name: 'pesit-node',
        types: typeParsers,
        stream: openSocket,
      }) as Knex.PgConnectionConfig,
    acquireConnectionTimeout: ACQUIRE_MS,
    pool: {
      min: 0,
      max: options.max,
      // One failed attempt to connect is told to the caller at once, who knows better when to try again.
      propagateCreateError: true,
      afterCreate: setUp(options),
    },
    log: quietKnex,
  });
  const destroy = async (): Promise<void> => {
    const timer = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, GOODBYE_MS);
    try {
      await knex.destroy();
    } finally {
      clearTimeout(timer);
    }
  };
  return { knex, destroy };
};
