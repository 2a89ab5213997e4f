import type { Knex } from 'knex';

import type { Listening, ListeningOptions } from './listening.js';

export type DatabaseMode = 'embedded' | 'postgresql';

/** An open database: a PostgreSQL of the operator's, or one that the service runs itself (`embedded`). */
export interface Database {
  /** int8 and whole numeric values come as numbers when they are safe integers, else as text; timestamptz as `Date`. */
  readonly knex: Knex;
  readonly mode: DatabaseMode;
  /** For logs and health: host, port and name, or the directory of the embedded one; never a password. */
  readonly description: string;
  /** One round trip. @throws when the database does not answer within `timeoutMs` (default 3000). */
  ping(timeoutMs?: number): Promise<void>;
  /** Runs `work` on a connection without time limits of its own, as migrations need. */
  withUnlimitedConnection<T>(work: (knex: Knex) => Promise<T>): Promise<T>;
  /**
   * Opens a connection beside the pool that hears notifications, and is closed by whoever opens it.
   * @throws when the database cannot be reached
   */
  listen(options: ListeningOptions): Promise<Listening>;
  /** Ends every connection of the pool; the embedded database stops unless the other app uses it. Idempotent. */
  close(): Promise<void>;
}
