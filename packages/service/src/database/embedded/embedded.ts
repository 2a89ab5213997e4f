import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';

import type { Logger } from '../../logging.js';
import { lockDirectory } from '../directory-lock.js';
import { openPostgresql } from '../postgresql.js';
import type { Database } from '../types.js';
import { EmbeddedDatabaseError } from './error.js';
import { databaseFiles, prepareRoot, readPassword, refusePredecessor, ROLE } from './files.js';
import { findPrograms } from './programs.js';
import { EmbeddedServer } from './server.js';
import { MAX_POOL } from './settings.js';

/** Room for a path in `sockaddr_un` on the smaller of Linux and macOS, and the name that PostgreSQL gives the socket. */
const LONGEST_SOCKET_PATH = 103;
const SOCKET_NAME = '/.s.PGSQL.5432';

export interface OpenEmbeddedOptions {
  /** `database.directory`. */
  readonly directory: string;
  /** Which app: one of each may use the database at a time. */
  readonly name: string;
  /** Where earlier versions kept the embedded database of this app. */
  readonly predecessor: string;
  readonly searchPath: readonly string[];
  readonly poolMax: number;
  readonly logger: Logger;
}

/**
 * The directory of the socket by a name that fits: a longer one is reached through a descriptor of it, which Linux shows as a path.
 * @returns also what gives the descriptor back
 */
const reachSocket = (directory: string): { readonly path: string; readonly close: () => void } => {
  if (Buffer.byteLength(directory + SOCKET_NAME) <= LONGEST_SOCKET_PATH)
    return { path: directory, close: () => undefined };
  if (process.platform !== 'linux') {
    throw new EmbeddedDatabaseError(
      `The path of the embedded database's socket, ${directory}${SOCKET_NAME}, is longer than the ${LONGEST_SOCKET_PATH} bytes ` +
        'that this system allows: choose a shorter --database.directory',
    );
  }
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${descriptor}`, close: () => closeSync(descriptor) };
};

/**
 * A PostgreSQL of our own in `directory`, started unless it runs, and ended with the last service that uses it.
 * @throws {EmbeddedDatabaseError} when it cannot be used, in words
 * @throws {DirectoryLockedError} when the same app runs on it already
 */
export const openEmbedded = async (options: OpenEmbeddedOptions): Promise<Database> => {
  const { directory, name, predecessor, searchPath, poolMax, logger } = options;
  const programs = findPrograms();
  const files = databaseFiles(directory);
  refusePredecessor(files, predecessor);
  await prepareRoot(files);
  const lock = await lockDirectory(join(directory, `${name}.lock`));
  const server = new EmbeddedServer({ files, programs, logger });
  try {
    await server.ensureRunning();
    const socket = reachSocket(files.socket);
    const url = new URL(`postgresql://${ROLE}:${await readPassword(files)}@localhost/${ROLE}`);
    url.searchParams.set('host', socket.path);
    const database = openPostgresql({
      ...{ url: url.href, description: directory, searchPath, poolMax: Math.min(poolMax, MAX_POOL) },
    });
    const close = async (): Promise<void> => {
      try {
        await database.close();
      } finally {
        socket.close();
        await server.release();
        await lock.release();
      }
    };
    let closing: Promise<void> | undefined;
    return {
      ...database,
      mode: 'embedded',
      ping: async (timeoutMs) => {
        await server.ensureRunning();
        await database.ping(timeoutMs);
      },
      close: () => (closing ??= close()),
    };
  } catch (error) {
    await server.release();
    await lock.release();
    throw error;
  }
};
