/** The embedded database cannot be used; the message says why and what to do. */
export class EmbeddedDatabaseError extends Error {
  override readonly name = 'EmbeddedDatabaseError';
}

/** The last way out of every such problem. */
export const OR_DATABASE_URL = 'or set DATABASE_URL to a PostgreSQL 14 or newer';
