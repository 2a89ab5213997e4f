import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

import { codeOf } from '@pesit-node/ground';
import { EmbeddedDatabaseError } from './error.js';

const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;

/**
 * The named pipe that the services of one embedded database hold open for writing, and its watcher for reading. The kernel counts:
 * when the last service is gone, however it ended, the watcher reads the end of the pipe and stops PostgreSQL; and when the
 * watcher is gone, the pipe cannot be opened for writing. Nothing is ever written to it. No other program inherits an end,
 * because Node opens files so that they close when a program is started.
 */
export class Holders {
  readonly #path: string;
  #own: number | undefined;

  constructor(socketDirectory: string) {
    this.#path = join(socketDirectory, 'holders');
  }

  /** Holds the database from now on. @returns whether a watcher runs */
  hold(): boolean {
    try {
      const fresh = openSync(this.#path, O_WRONLY | O_NONBLOCK);
      this.#drop();
      this.#own = fresh;
      return true;
    } catch (error) {
      if (codeOf(error) === 'ENXIO' || codeOf(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** Makes the pipe where it is missing, holds it, and opens the end that a new watcher inherits; the caller closes that. */
  openForWatcher(): number {
    this.#make();
    // A pipe opens for reading once there is a writer, and for writing once there is a reader; with both at once it never waits.
    const both = openSync(this.#path, O_RDWR | O_NONBLOCK);
    try {
      const reader = openSync(this.#path, O_RDONLY);
      this.hold();
      return reader;
    } finally {
      closeSync(both);
    }
  }

  /** Holds it no longer. @returns whether nobody else does either, so that the watcher stops PostgreSQL now */
  release(): boolean {
    this.#drop();
    let reader: number;
    try {
      reader = openSync(this.#path, O_RDONLY | O_NONBLOCK);
    } catch {
      return true;
    }
    try {
      return readSync(reader, Buffer.alloc(1)) === 0;
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return false;
      throw error;
    } finally {
      closeSync(reader);
    }
  }

  #drop(): void {
    if (this.#own !== undefined) closeSync(this.#own);
    this.#own = undefined;
  }

  #make(): void {
    try {
      closeSync(openSync(this.#path, O_RDONLY | O_NONBLOCK));
      return;
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
    const { status, stderr, error } = spawnSync('mkfifo', ['-m', '600', this.#path], {
      env: { PATH: '/usr/local/bin:/usr/bin:/bin' },
      encoding: 'utf8',
    });
    if (status === 0) return;
    throw new EmbeddedDatabaseError(
      `The embedded database needs a named pipe at ${this.#path}, and it cannot be made: ${(error?.message ?? stderr).trim()}`,
    );
  }
}
