import type { Knex } from 'knex';

export type DatabaseMode = 'embedded' | 'postgresql';

/** An open database, whichever of the two it is. Queries look the same on both. */
export interface Database {
  /** int8 and whole numeric values come as numbers when they are safe integers, else as text; timestamptz as `Date`. */
  readonly knex: Knex;
  readonly mode: DatabaseMode;
  /** For logs and health: host, port and name, or the directory; never a password. */
  readonly description: string;
  /** One round trip. @throws when the database does not answer within `timeoutMs` (default 3000). */
  ping(timeoutMs?: number): Promise<void>;
  /** Runs `work` on a connection without time limits of its own, as migrations need. */
  withUnlimitedConnection<T>(work: (knex: Knex) => Promise<T>): Promise<T>;
  /** Ends every connection; the embedded database is stopped and its lock given back. Idempotent. */
  close(): Promise<void>;
}
