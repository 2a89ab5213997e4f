import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import knexFactory from 'knex';
import type { Knex } from 'knex';

import type { Logger } from '../logging.js';
import { lockDirectory } from './directory-lock.js';
import { startPgliteWorker } from './pglite-process.js';
import type { PgliteInstance } from './pglite-process.js';
import { PgliteStream } from './pglite-stream.js';
import { typeParsers } from './pg-types.js';
import { quietKnex } from './quiet-knex.js';
import type { Database } from './types.js';
import { within } from '../deferred.js';

const PING_MS = 3000;
/** A query outside the transaction that holds the one connection fails after this long, rather than wait for ever. */
const ACQUIRE_MS = 10_000;

/** knex over the ordinary driver over a stream to PGlite; one connection, because PGlite is one session. */
const createKnex = (acquire: () => Promise<PgliteInstance>, searchPath: readonly string[]): Knex =>
  knexFactory({
    client: 'pg',
    // knex's type of a connection does not know the driver's `stream` and `types`.
    connection: {
      user: 'postgres',
      stream: () => new PgliteStream(acquire),
      types: typeParsers,
    } as Knex.PgConnectionConfig,
    searchPath,
    pool: { min: 0, max: 1 },
    acquireConnectionTimeout: ACQUIRE_MS,
    log: quietKnex,
  });

export interface EmbeddedOptions {
  /** Starts an instance; called again when one has aborted. */
  readonly start: () => Promise<PgliteInstance>;
  readonly description: string;
  readonly searchPath: readonly string[];
  readonly logger: Logger;
  /** Called after the last instance is closed. */
  readonly release?: () => Promise<void>;
}

/** The embedded database over any way to run PGlite. An aborted instance is replaced at the next connection. */
export const embeddedDatabase = async (options: EmbeddedOptions): Promise<Database> => {
  const { start, logger } = options;
  let current: Promise<PgliteInstance> | undefined;
  let closing: Promise<void> | undefined;

  const acquire = (): Promise<PgliteInstance> => {
    if (closing !== undefined) return Promise.reject(new Error('The embedded database is closed'));
    current ??= launch();
    return current;
  };
  const launch = async (): Promise<PgliteInstance> => {
    try {
      const instance = await start();
      void instance.ended.then((reason) => {
        current = undefined;
        if (closing === undefined) logger.error({ err: reason }, 'embedded database lost, starting it again');
      });
      return instance;
    } catch (error) {
      current = undefined;
      throw error;
    }
  };

  const knex = createKnex(acquire, options.searchPath);
  const close = async (): Promise<void> => {
    const instance = await current?.catch(() => undefined);
    await knex.destroy();
    await instance?.close();
    await options.release?.();
  };
  const database: Database = {
    knex,
    mode: 'embedded',
    description: options.description,
    ping: async (timeoutMs = PING_MS) => {
      await within(Promise.resolve(knex.raw('select 1')), timeoutMs, 'The embedded database does not answer');
    },
    withUnlimitedConnection: (work) => work(knex),
    close: () => (closing ??= close()),
  };
  try {
    await acquire();
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
};

export interface OpenEmbeddedOptions {
  /** `data.directory`. */
  readonly dataDirectory: string;
  /** Whose database: the two apps have one each, side by side. */
  readonly name: string;
  readonly searchPath: readonly string[];
  readonly logger: Logger;
}

/** PGlite in a worker thread on `<dataDirectory>/database-<name>`, under its lock. */
export const openEmbedded = async ({
  dataDirectory,
  name,
  searchPath,
  logger,
}: OpenEmbeddedOptions): Promise<Database> => {
  const directory = join(dataDirectory, `database-${name}`);
  const lock = await lockDirectory(`${directory}.lock`);
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // PGlite makes its files readable for all whatever the umask: the directory must keep others out.
    await chmod(directory, 0o700);
    return await embeddedDatabase({
      start: () => startPgliteWorker(directory),
      description: directory,
      searchPath,
      logger,
      release: () => lock.release(),
    });
  } catch (error) {
    await lock.release();
    throw error;
  }
};
