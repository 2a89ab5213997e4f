import type { Socket } from 'node:net';

import knexFactory from 'knex';
import type { Knex } from 'knex';
import type { Client } from 'pg';

import type { Logger } from '../logging.js';
import { typeParsers } from './pg-types.js';
import { quietKnex } from './quiet-knex.js';
import type { Database } from './types.js';
import { within } from '../deferred.js';

const PING_MS = 3000;
const CONNECT_MS = 5000;
const ACQUIRE_MS = 10_000;
const STATEMENT_MS = 30_000;
/** The server ends a statement by itself first; silence beyond that means that the host is gone. */
const SILENCE_MS = STATEMENT_MS + 5000;

/** `host:port/name` of a connection URL. */
export const describeUrl = (url: string): string => {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}:${port === '' ? '5432' : port}${pathname}`;
};

/**
 * Ends a connection whose query is not answered: a host that vanished sends neither an answer nor a reset, and the query
 * would wait for the kernel's retransmissions, a quarter of an hour.
 */
const endWhenSilent = (connection: Client, silenceMs: number): void => {
  // The driver's types leave out its socket and its idle flag.
  const { stream } = (connection as unknown as { readonly connection: { readonly stream: Socket } }).connection;
  const state = connection as unknown as { readonly readyForQuery: boolean };
  stream.setTimeout(silenceMs, () => {
    if (!state.readyForQuery) stream.destroy(new Error(`PostgreSQL did not answer within ${silenceMs} ms`));
  });
};

interface PoolOptions {
  readonly url: string;
  readonly searchPath: readonly string[];
  readonly max: number;
  /** Milliseconds; 0 = no limit. */
  readonly statementTimeout: number;
  readonly silenceMs: number;
}

const createKnex = ({ url, searchPath, max, statementTimeout, silenceMs }: PoolOptions): Knex =>
  knexFactory({
    client: 'pg',
    connection: {
      connectionString: url,
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: statementTimeout,
      idle_in_transaction_session_timeout: 60_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
      application_name: 'pesit-node',
      types: typeParsers,
    } as Knex.PgConnectionConfig,
    searchPath,
    acquireConnectionTimeout: ACQUIRE_MS,
    pool: {
      min: 0,
      max,
      // One failed attempt to connect is told to the caller at once, who knows better when to try again.
      propagateCreateError: true,
      afterCreate: (connection: Client, done: (error: Error | null, connection: Client) => void) => {
        if (silenceMs > 0) endWhenSilent(connection, silenceMs);
        done(null, connection);
      },
    },
    log: quietKnex,
  });

/** knex's own client, as far as its types leave it out: how the pool hands out and takes back connections. */
interface PoolClient {
  acquireConnection(): Promise<Client & { __knex__disposed?: Error }>;
  releaseConnection(connection: Client): Promise<void>;
}

/** After a failover a connection may still lead to the old primary, now a standby: it is thrown away, the next may be right. */
const checkWritable = async (knex: Knex, description: string): Promise<void> => {
  const pool = knex.client as PoolClient;
  const connection = await pool.acquireConnection();
  try {
    const { rows } = await connection.query<{ readOnly: string }>(
      `select current_setting('transaction_read_only') as "readOnly"`,
    );
    if (rows[0]?.readOnly === 'off') return;
    const error = new Error(`PostgreSQL at ${description} is read-only, a standby perhaps`);
    connection.__knex__disposed = error;
    throw error;
  } finally {
    await pool.releaseConnection(connection);
  }
};

export interface OpenPostgresqlOptions {
  readonly url: string;
  readonly searchPath: readonly string[];
  readonly poolMax: number;
  readonly logger: Logger;
  /** How long an unanswered query keeps its connection. Default 35 s. */
  readonly silenceMs?: number;
}

/**
 * A pool on PostgreSQL. Connects when first asked, so that it opens while the server is down; a connection that the server
 * ended is thrown away and replaced.
 */
export const openPostgresql = ({
  url,
  searchPath,
  poolMax,
  silenceMs = SILENCE_MS,
}: OpenPostgresqlOptions): Database => {
  const description = describeUrl(url);
  const knex = createKnex({ url, searchPath, max: poolMax, statementTimeout: STATEMENT_MS, silenceMs });
  let closing: Promise<void> | undefined;
  return {
    knex,
    mode: 'postgresql',
    description,
    ping: (timeoutMs = PING_MS) =>
      within(
        checkWritable(knex, description),
        timeoutMs,
        `PostgreSQL at ${description} does not answer within ${timeoutMs} ms`,
      ),
    withUnlimitedConnection: async (work) => {
      const unlimited = createKnex({ url, searchPath, max: 1, statementTimeout: 0, silenceMs: 0 });
      try {
        return await work(unlimited);
      } finally {
        await unlimited.destroy();
      }
    },
    close: () => (closing ??= knex.destroy()),
  };
};
