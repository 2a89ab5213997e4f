import type { Knex } from 'knex';
import type { Client } from 'pg';

import { within } from '@pesit-node/ground';
import { databaseTls, explainTls } from './database-tls.js';
import type { DatabaseSslKeys } from './database-tls.js';
import { openListening } from './listening.js';
import { createPool } from './postgresql-pool.js';
import type { Database } from './types.js';

const PING_MS = 3000;
const STATEMENT_MS = 30_000;
/** The server ends a statement by itself first; silence beyond that means that the host is gone. */
const SILENCE_MS = STATEMENT_MS + 5000;

/** `host:port/name` of a connection URL. */
const describeUrl = (url: string): string => {
  const { hostname, port, pathname } = new URL(url);
  return `${hostname}:${port === '' ? '5432' : port}${pathname}`;
};

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
  /** Default: as the URL says. */
  readonly ssl?: DatabaseSslKeys;
  /** Default: host, port and name of the URL. */
  readonly description?: string;
  readonly searchPath: readonly string[];
  readonly poolMax: number;
  /** How long an unanswered query keeps its connection, milliseconds. Default 35,000. */
  readonly silenceMs?: number;
}

/**
 * A pool on PostgreSQL. Connects when first asked, so that it opens while the server is down; a connection that the server
 * ended is thrown away and replaced.
 * @throws {DatabaseTlsError} when files of TLS cannot be read
 */
export const openPostgresql = (options: OpenPostgresqlOptions): Database => {
  const { searchPath, poolMax, silenceMs = SILENCE_MS } = options;
  const description = options.description ?? describeUrl(options.url);
  const { url, terms } = databaseTls(options.url, options.ssl);
  // Files that are missing are said now, not when the first query is asked.
  terms();
  const pool = createPool({ url, tls: terms, searchPath, max: poolMax, statementTimeout: STATEMENT_MS, silenceMs });
  let closing: Promise<void> | undefined;
  return {
    knex: pool.knex,
    mode: 'postgresql',
    description,
    ping: (timeoutMs = PING_MS) =>
      within(
        checkWritable(pool.knex, description).catch((error: unknown) => {
          throw explainTls(error, description);
        }),
        timeoutMs,
        `PostgreSQL at ${description} does not answer within ${timeoutMs} ms`,
      ),
    withUnlimitedConnection: async (work) => {
      const unlimited = createPool({ url, tls: terms, searchPath, max: 1, statementTimeout: 0, silenceMs: 0 });
      try {
        return await work(unlimited.knex);
      } finally {
        await unlimited.destroy();
      }
    },
    listen: async (asked) => {
      try {
        return await openListening({ url, tls: terms() }, asked);
      } catch (error) {
        throw explainTls(error, description);
      }
    },
    close: () => (closing ??= pool.destroy()),
  };
};
