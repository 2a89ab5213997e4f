import type { Logger } from '../logging.js';
import { openEmbedded } from './embedded.js';
import { openPostgresql } from './postgresql.js';
import type { Database } from './types.js';

export interface OpenDatabaseOptions {
  /** `database.url`; empty = embedded. */
  readonly url: string;
  /** `data.directory`, for the embedded database. */
  readonly dataDirectory: string;
  /** Names the embedded database's directory, `<dataDirectory>/database-<name>`: the two apps never share one. */
  readonly name: string;
  /** Schemas that unqualified table names are looked up in, in this order. */
  readonly searchPath: readonly string[];
  /** `database.pool-max`, for PostgreSQL. Default 10. */
  readonly poolMax?: number;
  readonly logger: Logger;
}

/**
 * Opens the database of one app. PostgreSQL need not be up (`DatabaseSupervisor` waits for it); the embedded one is started,
 * which takes seconds the first time.
 * @throws {DirectoryLockedError} when another process has the embedded database.
 */
export const openDatabase = async (options: OpenDatabaseOptions): Promise<Database> => {
  const { url, dataDirectory, name, searchPath, poolMax = 10, logger } = options;
  return url === ''
    ? openEmbedded({ dataDirectory, name, searchPath, logger })
    : openPostgresql({ url, searchPath, poolMax });
};
