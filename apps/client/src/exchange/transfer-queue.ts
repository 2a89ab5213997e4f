import { EventEmitter } from 'node:events';

import { isDatabaseUnavailable } from '@pesit-node/service';
import type { Logger } from '@pesit-node/service';

import type { Job, Progress, TransferEnd, TransferRow, TransferStore } from '../transfers/store.js';
import type { RunningTransfer } from './run-transfer.js';
import { shuttingDown } from './session-pool.js';
import type { ExchangeSettings } from './settings.js';

export interface TransferQueueOptions {
  readonly store: TransferStore;
  readonly run: (job: Job, signal: AbortSignal) => RunningTransfer;
  readonly settings: Pick<ExchangeSettings, 'corePoolSize' | 'maxPoolSize' | 'queueCapacity' | 'maxConnectionsPerHost'>;
  /** False while nothing may start: rows wait, and `wake` says that it has changed. */
  readonly mayRun: () => boolean;
  /** Name of this process among those that share the database. */
  readonly node: string;
  readonly logger: Logger;
  /** Between two looks at the table that nobody asked for, milliseconds. Default 5000. */
  readonly pollMs?: number;
  /** Between two writings of progress, milliseconds. Default 2000. */
  readonly progressMs?: number;
}

interface Running {
  readonly job: Job;
  readonly abort: AbortController;
  readonly transfer: RunningTransfer;
}

/** A process that does not renew its leases for so long is dead. */
const LEASE_SECONDS = 30;
const LEASE_MS = LEASE_SECONDS * 1000;
/** How long an interrupted transfer may take to end. */
const INTERRUPT_MS = 8000;

/**
 * The queue over the table. Rows are taken one at a time, when there is a slot and reason to believe that one waits:
 * `arrived` says so at once, the poll finds what other processes queued. Up to `corePoolSize` run at a time, up to
 * `maxPoolSize` while more than `queueCapacity` wait. The database's part is the rows' status; ends are written until they are.
 */
export class TransferQueue {
  readonly #options: TransferQueueOptions;
  readonly #log: Logger;
  readonly #running = new Map<string, Running>();
  readonly #ends = new EventEmitter<Record<string, [TransferRow | undefined]>>().setMaxListeners(0);
  readonly #idle = new EventEmitter<{ idle: [] }>();
  #state: 'new' | 'running' | 'draining' | 'ended' = 'new';
  /** Rows believed PENDING; the first look tells. */
  #backlog = Number.POSITIVE_INFINITY;
  #arrivals = 0;
  /** A take failed after which the database and this process may disagree on what runs here. */
  #doubtful = false;
  #starting: Promise<void> | undefined;
  #wanted = false;
  #busy = false;
  #taking = Promise.resolve();
  #timers: NodeJS.Timeout[] = [];
  #sweepAfter = 0;

  constructor(options: TransferQueueOptions) {
    this.#options = options;
    this.#log = options.logger;
  }

  /** How many more may wait: what the queue holds, and what could start at once. */
  get room(): number {
    const { queueCapacity, maxPoolSize } = this.#options.settings;
    return queueCapacity + Math.max(0, maxPoolSize - this.#running.size);
  }

  /** Transfers that this process runs. */
  get running(): number {
    return this.#running.size;
  }

  /** Newer figures than the row's, when the transfer runs here and data flow. */
  progressOf(id: string): Progress {
    const totals = this.#running.get(id)?.transfer.totals();
    return totals === undefined ? { id } : { id, bytesTransferred: totals.dataBytes, articles: totals.articles };
  }

  /**
   * Begins to take rows; to be called whenever the database is ready. The first time, what an earlier process of this name
   * left IN_PROGRESS is ended.
   * @throws errors of the database: call it again
   */
  start(): Promise<void> {
    if (this.#state === 'new') {
      this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
      return this.#starting;
    }
    this.wake();
    return Promise.resolve();
  }

  /** A row was inserted. */
  arrived(): void {
    this.#arrivals++;
    this.#backlog++;
    this.wake();
  }

  /** Something changed that may let a row be taken. */
  wake(): void {
    this.#wanted = true;
    if (this.#busy) return;
    this.#busy = true;
    this.#taking = this.#takeWhileWanted();
  }

  /**
   * Resolves with the record when the transfer has ended in this process; undefined after `ms`, when `signal` is aborted,
   * or when the queue stops.
   */
  whenEnded(id: string, ms: number, signal: AbortSignal): Promise<TransferRow | undefined> {
    if (this.#state !== 'running') return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const done = (row?: TransferRow): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.#ends.off(id, done);
        resolve(row);
      };
      const onAbort = (): void => done();
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#ends.on(id, done);
    });
  }

  /** Takes no more, lets what runs end for up to `drainMs`, then interrupts it. Callers that wait are answered at once. */
  async stop(drainMs: number): Promise<void> {
    this.#state = 'draining';
    for (const id of this.#ends.eventNames()) this.#ends.emit(id, undefined);
    await this.#taking;
    if (!(await this.#emptied(drainMs))) {
      this.#log.warn({ running: this.#running.size }, 'transfers still run: interrupting them');
      for (const { abort } of this.#running.values()) abort.abort(shuttingDown());
      if (!(await this.#emptied(INTERRUPT_MS))) {
        this.#log.error({ running: [...this.#running.keys()] }, 'transfers could not be ended in order');
      }
    }
    this.#state = 'ended';
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
  }

  async #start(): Promise<void> {
    const { store, node, pollMs = 5000, progressMs = 2000 } = this.#options;
    this.#logOrphans(
      await store.failOrphans(
        { node },
        'the service was stopped or killed while it ran: whether the partner has the file is not known here',
      ),
    );
    // Stopped meanwhile: nothing begins.
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#sweepAfter = performance.now() + LEASE_MS;
    this.#timers = [
      setInterval(() => void this.#poll(), pollMs),
      setInterval(() => void this.#writeProgress(), progressMs),
    ];
    this.wake();
  }

  /** @returns whether nothing runs any more */
  async #emptied(ms: number): Promise<boolean> {
    if (this.#running.size === 0) return true;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#idle.off('idle', done);
        resolve(this.#running.size === 0);
      };
      const timer = setTimeout(done, ms);
      this.#idle.on('idle', done);
    });
  }

  async #takeWhileWanted(): Promise<void> {
    while (this.#wanted) {
      this.#wanted = false;
      try {
        await this.#take();
      } catch (error) {
        this.#databaseFailed(error, 'no transfer taken');
        // The database may have given one all the same. How many wait is unknown now; the poll looks again.
        this.#doubtful = true;
        this.#backlog = Number.POSITIVE_INFINITY;
      }
    }
    this.#busy = false;
  }

  async #take(): Promise<void> {
    const { store, node, settings } = this.#options;
    const { corePoolSize, maxPoolSize, queueCapacity, maxConnectionsPerHost: maxPerServer } = settings;
    if (this.#doubtful) {
      await store.giveBackUnknown(node, [...this.#running.keys()]);
      this.#doubtful = false;
    }
    while (this.#state === 'running' && this.#backlog > 0 && this.#options.mayRun()) {
      const active = this.#running.size;
      const minBacklog = active < corePoolSize ? 1 : queueCapacity + 1;
      if (active >= maxPoolSize || this.#backlog < minBacklog) return;
      const arrivals = this.#arrivals;
      const { job, backlog } = await store.take({ node, leaseSeconds: LEASE_SECONDS, maxPerServer, minBacklog });
      // Rows that came while the statement ran may not be counted in it.
      this.#backlog = backlog - (job === undefined ? 0 : 1) + (this.#arrivals - arrivals);
      if (job === undefined) return;
      this.#run(job);
    }
  }

  #run(job: Job): void {
    const abort = new AbortController();
    const transfer = this.#options.run(job, abort.signal);
    this.#running.set(job.id, { job, abort, transfer });
    void transfer.ended.then(async (end) => {
      const row = await this.#record(job, end);
      this.#running.delete(job.id);
      if (end.status === 'PENDING') this.#backlog++;
      else this.#ends.emit(job.id, row);
      if (this.#running.size === 0) this.#idle.emit('idle');
      this.wake();
    });
  }

  /** Writes the end of a transfer, however long the database is away: the partner knows it as ended. */
  async #record(job: Job, end: TransferEnd): Promise<TransferRow | undefined> {
    const { store, node, pollMs = 5000 } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        const row = await store.end(job.id, node, end);
        if (row !== undefined) return row;
        const found = await store.find(job.id);
        // An earlier try was written, and its answer lost.
        if (attempt > 1 && found?.status === end.status) return found;
        this.#log.error({ transferId: job.id, end: end.status }, 'the record was ended by another process meanwhile');
        return found;
      } catch (error) {
        this.#databaseFailed(error, 'end of a transfer not written yet');
        if (!isDatabaseUnavailable(error) || this.#state === 'ended') return undefined;
        await new Promise((resolve) => setTimeout(resolve, Math.min(pollMs, 1000)).unref());
      }
    }
  }

  async #poll(): Promise<void> {
    if (this.#state !== 'running') return;
    try {
      if (performance.now() > this.#sweepAfter) {
        const ended = await this.#options.store.failOrphans(
          'expired',
          'the process that ran it is gone: whether the partner has the file is not known here',
        );
        this.#logOrphans(ended);
      }
      this.#backlog = Number.POSITIVE_INFINITY;
      this.wake();
    } catch (error) {
      this.#databaseFailed(error, 'queue not looked at');
    }
  }

  async #writeProgress(): Promise<void> {
    if (this.#running.size === 0) return;
    try {
      const running = [...this.#running.keys()].map((id) => this.progressOf(id));
      await this.#options.store.progress(this.#options.node, LEASE_SECONDS, running);
    } catch (error) {
      this.#databaseFailed(error, 'progress not written');
    }
  }

  #logOrphans(ids: readonly string[]): void {
    if (ids.length > 0) this.#log.warn({ transfers: ids }, 'transfers of a dead process ended as FAILED');
  }

  #databaseFailed(error: unknown, what: string): void {
    // Other processes were away from it as well: their leases get time to be renewed before anybody ends their transfers.
    this.#sweepAfter = performance.now() + LEASE_MS;
    if (isDatabaseUnavailable(error)) this.#log.debug({ err: error }, what);
    else this.#log.error({ err: error }, what);
  }
}
