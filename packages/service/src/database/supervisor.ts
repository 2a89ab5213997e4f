import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import type { HealthComponent } from '../health/registry.js';
import type { Logger } from '../logging.js';
import { migrate } from './migrate.js';
import type { MigrationSet } from './migrate.js';
import type { Database } from './types.js';
import { isError, reasonOf } from '@pesit-node/ground';

export interface SupervisorOptions {
  readonly database: Database;
  /** Applied in this order whenever the database has come (back). */
  readonly migrations: readonly MigrationSet[];
  readonly logger: Logger;
  /** Between two checks while all is well, milliseconds. Default 5000. */
  readonly checkEveryMs?: number;
  /** First and longest wait between two attempts while it is lost, milliseconds; doubled each time. Default 250 and 10,000. */
  readonly retryMs?: { readonly first: number; readonly longest: number };
  /** How long a check may take. Default 3000. */
  readonly pingTimeoutMs?: number;
}

interface SupervisorEvents {
  /** The database answers and is migrated: at start, and after each loss. */
  ready: [];
  /** It no longer answers; the reason. */
  lost: [Error];
}

/**
 * Watches the database of an app: waits for it at start, migrates it, notices when it goes and when it comes back.
 * The app runs all the while; only its readiness follows.
 */
export class DatabaseSupervisor extends EventEmitter<SupervisorEvents> {
  readonly #options: Required<SupervisorOptions>;
  readonly #stop = new AbortController();
  #loop: Promise<void> | undefined;
  #ready = false;
  #reason: string | undefined = 'not started yet';

  constructor(options: SupervisorOptions) {
    super();
    this.#options = { checkEveryMs: 5000, retryMs: { first: 250, longest: 10_000 }, pingTimeoutMs: 3000, ...options };
  }

  /** Whether queries can be expected to work: reachable and migrated. */
  get ready(): boolean {
    return this.#ready;
  }

  /** Why it is not ready, for the operator; `undefined` when it is. */
  get statusReason(): string | undefined {
    return this.#reason;
  }

  /** Begins to watch; returns at once. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /** Ends the watch; does not close the database. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#ready = false;
    this.#reason = 'stopped';
    await this.#loop;
  }

  /** Resolves when the database is ready, at once if it is. @throws AbortError when `signal` is aborted first. */
  async whenReady(signal?: AbortSignal): Promise<void> {
    if (this.#ready) return;
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.off('ready', onReady);
        reject(signal?.reason as Error);
      };
      const onReady = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      this.once('ready', onReady);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** For `HealthRegistry`: component `database`. Answered without login, so it does not say where the database is: the log does. */
  health(): HealthComponent {
    const { mode } = this.#options.database;
    return {
      status: this.#ready ? 'UP' : 'DOWN',
      details: { mode, ...(this.#reason === undefined ? {} : { reason: this.#reason }) },
    };
  }

  async #run(): Promise<void> {
    const { checkEveryMs, retryMs, database, pingTimeoutMs } = this.#options;
    let wait = retryMs.first;
    while (!this.#stop.signal.aborted) {
      try {
        if (this.#ready) await database.ping(pingTimeoutMs);
        else await this.#attempt();
        wait = retryMs.first;
      } catch (error) {
        this.#lost(error);
      }
      const pause = this.#ready ? checkEveryMs : wait;
      if (!this.#ready) wait = Math.min(wait * 2, retryMs.longest);
      await delay(pause, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
  }

  async #attempt(): Promise<void> {
    const { database, migrations, logger, pingTimeoutMs } = this.#options;
    await database.ping(pingTimeoutMs);
    for (const set of migrations) {
      const applied = await migrate(database, set);
      if (applied.length > 0) logger.info({ schema: set.schema, applied }, 'database migrated');
    }
    if (this.#stop.signal.aborted) return;
    this.#ready = true;
    this.#reason = undefined;
    logger.info({ mode: database.mode, at: database.description }, 'database ready');
    this.emit('ready');
  }

  #lost(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    const { database, logger } = this.#options;
    const reason = reasonOf(error);
    const wasReady = this.#ready;
    this.#ready = false;
    if (wasReady) this.emit('lost', isError(error) ? error : new Error(reason));
    // Said once a cause, not once an attempt.
    if (reason !== this.#reason)
      logger.error({ at: database.description, reason }, 'database not available, trying again');
    this.#reason = reason;
  }
}
