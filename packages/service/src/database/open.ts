import { join } from 'node:path';

import type { Logger } from '../logging.js';
import type { DatabaseSslKeys } from './database-tls.js';
import { openEmbedded } from './embedded/embedded.js';
import { openPostgresql } from './postgresql.js';
import type { Database } from './types.js';

export interface OpenDatabaseOptions {
  /** `database.url`; empty = embedded. */
  readonly url: string;
  /** TLS with it. Default: as the URL says. */
  readonly ssl?: DatabaseSslKeys;
  /** `data.directory`, where earlier versions kept their embedded databases. */
  readonly dataDirectory: string;
  /** `database.directory`, of the embedded database. Default: `database` in `dataDirectory`. */
  readonly directory?: string;
  /** Which app: of each, one service at a time may use an embedded database. */
  readonly name: string;
  /** Schemas that unqualified table names are looked up in, in this order. */
  readonly searchPath: readonly string[];
  /** `database.pool-max`. Default 10. */
  readonly poolMax?: number;
  readonly logger: Logger;
}

/**
 * Opens the database of one app. PostgreSQL need not be up (`DatabaseSupervisor` waits for it); the embedded one is started,
 * which takes a second the first time.
 * @throws {DatabaseTlsError} when files of TLS cannot be read
 * @throws {EmbeddedDatabaseError} when the embedded database cannot be used, in words
 * @throws {DirectoryLockedError} when a service of the same app has the embedded database
 */
export const openDatabase = async (options: OpenDatabaseOptions): Promise<Database> => {
  const { url, dataDirectory, name, searchPath, poolMax = 10, logger } = options;
  if (url !== '') return openPostgresql({ url, searchPath, poolMax, ...(options.ssl && { ssl: options.ssl }) });
  return openEmbedded({
    ...{ directory: options.directory ?? join(dataDirectory, 'database'), name, searchPath, poolMax, logger },
    predecessor: join(dataDirectory, `database-${name}`),
  });
};
