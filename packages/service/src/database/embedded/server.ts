import type { ChildProcess } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { chown, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import type { Logger } from '../../logging.js';
import { codeOf, makeDirectories } from '@pesit-node/ground';
import { DirectoryLockedError, heldOnAnotherMachine, lockDirectory } from '../directory-lock.js';
import { EmbeddedDatabaseError, OR_DATABASE_URL } from './error.js';
import { prepareDatabase } from './files.js';
import type { DatabaseFiles, Prepared } from './files.js';
import { Holders } from './holders.js';
import { endOrphan, hasEnded, readPidFile } from './orphan.js';
import type { PostgresPrograms } from './programs.js';
import { serverArguments } from './settings.js';
import { startWatcher } from './watcher.js';

const POLL_MS = 10;
/** A start after a crash repeats at most `max_wal_size`; beyond this the service waits for it like for any PostgreSQL. */
const READY_WITHIN_MS = 60_000;
/** How long another service may take to start or stop it; longer than both. */
const LOCK_WITHIN_MS = 90_000;
/** Processes of a PostgreSQL that was killed notice by themselves; until then a new one does not start. */
const OLD_PROCESSES_MS = 10_000;
const STOP_WITHIN_MS = 8000;
const OLD_PROCESSES = 'pre-existing shared memory block';
/** One that dies so soon after it was started again is not started at once: the service would do nothing else. */
const SHORT_LIFE_MS = 5000;
const TAIL_BYTES = 2000;

export interface EmbeddedServerOptions {
  readonly files: DatabaseFiles;
  readonly programs: PostgresPrograms;
  readonly logger: Logger;
}

/**
 * The PostgreSQL of one directory, as one of the services that use it sees it. Whichever finds it not running starts it; the
 * others join. It ends with the last of them (`Holders`). All that starts or stops it happens under one lock.
 */
export class EmbeddedServer {
  readonly #options: EmbeddedServerOptions;
  readonly #holders: Holders;
  #closed = false;
  /** When it was last started again after a loss. */
  #revivedAt = -SHORT_LIFE_MS;

  constructor(options: EmbeddedServerOptions) {
    this.#options = options;
    this.#holders = new Holders(options.files.socket);
  }

  /**
   * Resolves when PostgreSQL runs, and stays as long as this service does. Costs next to nothing when it runs already.
   * @throws {EmbeddedDatabaseError} when it cannot be started
   */
  async ensureRunning(): Promise<void> {
    if (this.#closed) throw new EmbeddedDatabaseError('The embedded database is closed');
    if (this.#holders.hold()) return;
    await this.#locked(async () => {
      if (this.#closed || this.#holders.hold()) return;
      await this.#start();
    });
  }

  /** Needs it no more; when nobody else does, PostgreSQL has stopped when this resolves. Idempotent. */
  async release(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { files, logger } = this.#options;
    await this.#locked(async () => {
      if (!this.#holders.release()) return;
      if (!(await hasEnded(files.data, STOP_WITHIN_MS))) {
        logger.warn({ at: files.root }, 'embedded database still stopping: it ends by itself');
      }
    });
  }

  async #start(): Promise<void> {
    const { files, programs, logger } = this.#options;
    await this.#refuseOtherMachines();
    const prepared = await prepareDatabase(files, programs);
    await makeDirectories(files.socket, 0o700);
    if (prepared.account !== undefined) await chown(files.socket, prepared.account, prepared.account);
    if (await endOrphan(files))
      logger.warn({ at: files.root }, 'embedded database without a watcher: stopped, starting it again');
    const until = performance.now() + OLD_PROCESSES_MS;
    for (;;) {
      const failure = await this.#launch(prepared);
      if (failure === undefined) break;
      if (!failure.includes(OLD_PROCESSES) || performance.now() > until) {
        throw new EmbeddedDatabaseError(
          `The embedded database in ${files.root} could not be started; ${files.log} ends with:\n${failure}\nMend that, ${OR_DATABASE_URL}`,
        );
      }
      await delay(POLL_MS * 10);
    }
    logger.info({ at: files.root, pid: readPidFile(files.data)?.pid }, 'embedded database started');
  }

  /** The kernel counts who holds the pipe; what another kernel counts, over a network file system, is not seen here. */
  async #refuseOtherMachines(): Promise<void> {
    const { root } = this.#options.files;
    const locks = (await readdir(root)).filter((name) => name.endsWith('.lock')).map((name) => join(root, name));
    const holders = await Promise.all(locks.map((path) => heldOnAnotherMachine(path)));
    const host = holders.find((one) => one !== undefined);
    if (host === undefined) return;
    throw new EmbeddedDatabaseError(
      `The embedded database in ${root} is used by a service on ${host}, another machine: stop that one, ${OR_DATABASE_URL}`,
    );
  }

  /** @returns what it said when it ended before it was ready */
  async #launch(prepared: Prepared): Promise<string | undefined> {
    const { files, programs } = this.#options;
    await rename(files.log, `${files.log}.old`).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
    });
    const { O_APPEND, O_CREAT, O_WRONLY } = constants;
    const log = openSync(files.log, O_WRONLY | O_CREAT | O_APPEND, 0o600);
    const pipe = this.#holders.openForWatcher();
    let watcher: ChildProcess;
    try {
      const args = serverArguments(files.data);
      watcher = startWatcher({ ...prepared, ...{ postgres: programs.postgres, args, data: files.data, pipe, log } });
    } finally {
      closeSync(pipe);
      closeSync(log);
    }
    const ended = new Promise<string>((resolve) => {
      watcher.once('exit', (code, signal) => resolve(`ended with ${signal ?? `code ${code ?? ''}`}`));
      watcher.once('error', (error) => resolve(`not started: ${error.message}`));
    });
    let end: string | undefined;
    void ended.then((how) => (end = how));
    const until = performance.now() + READY_WITHIN_MS;
    while (end === undefined && readPidFile(files.data)?.status !== 'ready' && performance.now() < until) {
      await delay(POLL_MS);
    }
    if (end !== undefined) return [await this.#logTail(), end].filter((text) => text !== '').join('\n');
    void ended.then((how) => this.#lost(how));
    return undefined;
  }

  /** Starts it at once, and not at the next look at the database: transfers wait for it. */
  async #lost(how: string): Promise<void> {
    const isClosed = (): boolean => this.#closed;
    if (isClosed()) return;
    const { files, logger } = this.#options;
    const again = performance.now() - this.#revivedAt > SHORT_LIFE_MS;
    logger.error(
      { at: files.root, reason: how, log: await this.#logTail() },
      `embedded database lost, starting it again${again ? '' : ' at the next look at it'}`,
    );
    if (!again) return;
    this.#revivedAt = performance.now();
    try {
      await this.ensureRunning();
    } catch (error) {
      if (isClosed()) return;
      logger.error({ at: files.root, err: error }, 'could not start the embedded database: trying again later');
    }
  }

  async #logTail(): Promise<string> {
    const text = await readFile(this.#options.files.log, 'utf8').catch(() => '');
    return text.slice(-TAIL_BYTES).trim();
  }

  async #locked(work: () => Promise<void>): Promise<void> {
    const path = join(this.#options.files.root, 'starting.lock');
    const until = performance.now() + LOCK_WITHIN_MS;
    for (;;) {
      try {
        const lock = await lockDirectory(path);
        try {
          await work();
          return;
        } finally {
          await lock.release();
        }
      } catch (error) {
        if (!(error instanceof DirectoryLockedError) || performance.now() > until) throw error;
        await delay(POLL_MS);
      }
    }
  }
}
