import { EventEmitter } from 'node:events';

import type { ClusterEvents } from '@pesit-node/cluster';
import { settledWithin } from '@pesit-node/ground';
import { isDatabaseUnavailable, LeaseWatch } from '@pesit-node/service';
import type { EventStream, Logger } from '@pesit-node/service';
import { TRANSFER_ASIDE, TRANSFER_BEGAN } from '@pesit-node/transfers';
import type { Facts, TransferAside } from '@pesit-node/transfers';

import { TRANSFER_TAKEN } from '../exchange/events.js';
import { isOver } from '../transfers/row.js';
import type { Job, Progress, TransferRow } from '../transfers/row.js';
import type { TransferStore } from '../transfers/store.js';
import { AttemptEnds } from './attempt-ends.js';
import { Interruption } from './interruption.js';
import { LEASE_MS, Leases } from './leases.js';
import { QueueHints } from './queue-hints.js';
import { beginQueueWork } from './queue-work.js';
import type { QueueWorkOptions, RunningQueueWork } from './queue-work.js';
import type { RunningTransfer } from '../exchange/run-transfer.js';
import type { ExchangeSettings } from '../exchange/settings.js';
import { WaitingCallers } from './waiting-callers.js';

export interface TransferQueueOptions extends QueueWorkOptions {
  readonly store: TransferStore;
  readonly run: (job: Job, signal: AbortSignal, requireLease: () => Promise<void>) => RunningTransfer;
  readonly settings: Pick<
    ExchangeSettings,
    'corePoolSize' | 'maxPoolSize' | 'queueCapacity' | 'maxConnectionsPerHost' | 'retry' | 'spoolRetention'
  >;
  /** False while nothing may start: rows wait, and `wake` says that it has changed. */
  readonly mayRun: () => boolean;
  /** See `LeasesOptions`. */
  readonly mayRenew?: () => boolean;
  /** Name of this process among those that share the database. */
  readonly node: string;
  readonly events: EventStream;
  /** Topic `queue`: transfers wait that another pod may take. */
  readonly clusterEvents: ClusterEvents;
  readonly logger: Logger;
  /** A process that does not renew its leases for so long is dead, milliseconds. Default 30,000. */
  readonly leaseMs?: number;
}

interface Running {
  readonly job: Job;
  readonly abort: AbortController;
  readonly transfer: RunningTransfer;
}

/** Rows that one statement takes, at most. */
const MOST_TAKEN = 64;

/** Rows that one statement ends, at most, because their time is over. */
const MOST_EXPIRED = 500;
const EXPIRED =
  'given up because its expiresAt has come before an attempt could complete it: no further one is made; retry it to send it in spite of that';

/** A row that is due later than in so many milliseconds is left to the poll. */
const LONGEST_ALARM_MS = 3_600_000;

/** How long an interrupted transfer may take to end. */
const INTERRUPT_MS = 8000;
/** How long giving back those that did not end may take. */
const GIVE_BACK_MS = 2000;

/**
 * The queue over the table. Rows are taken, several at a time, when there are slots and reason to believe that one waits:
 * `arrived` says so at once, a timer when the next attempt of one is due, another pod when it has rows that it does not take
 * (`QueueHints`), and the poll finds what nobody told of. Up to `corePoolSize` run at a time, up to `maxPoolSize` while more than `queueCapacity` wait, or for a server
 * of whose transfers none runs: those of a slow partner do not keep it waiting. The database's part is the rows' status; ends
 * are written until they are, and under the lease of the attempt alone.
 */
export class TransferQueue {
  readonly #options: TransferQueueOptions;
  readonly #log: Logger;
  readonly #leases: Leases;
  readonly #others: LeaseWatch;
  readonly #running = new Map<string, Running>();
  readonly #callers: WaitingCallers;
  readonly #hints: QueueHints;
  #unsubscribe: (() => void) | undefined;
  readonly #ends: AttemptEnds;
  readonly #idle = new EventEmitter<{ idle: [] }>();
  #state: 'new' | 'running' | 'draining' | 'ended' = 'new';
  /** Rows believed due; the first look tells. */
  #backlog = Number.POSITIVE_INFINITY;
  /** Rows believed to take a place in the queue, those that wait for their next attempt among them. */
  #queued = Number.POSITIVE_INFINITY;
  #arrivals = 0;
  /** Rows came that the other pods have not been told of. */
  #isNews = false;
  /** A row may be due whose server has nothing running. */
  #neglects = true;
  /** A take failed after which the database and this process may disagree on what runs here. */
  #doubtful = false;
  #starting: Promise<void> | undefined;
  #wanted = false;
  #busy = false;
  #taking = Promise.resolve();
  #work: RunningQueueWork | undefined;
  /** For the next attempts of what ran here. */
  readonly #alarms = new Set<NodeJS.Timeout>();

  constructor(options: TransferQueueOptions) {
    this.#options = options;
    this.#log = options.logger;
    this.#callers = new WaitingCallers(options.events);
    this.#hints = new QueueHints(options.clusterEvents);
    this.#ends = new AttemptEnds({
      ...options,
      failed: (error, what) => this.#databaseFailed(error, what),
      isStopped: () => this.#state === 'ended',
    });
    this.#leases = new Leases({
      renew: (seconds, running) => options.store.renew(seconds, running),
      progressOf: (id) => this.progressOf(id),
      failed: () => this.#others.failed(),
      leaseMs: options.leaseMs,
      mayRenew: options.mayRenew,
    });
    this.#others = new LeaseWatch(options.leaseMs ?? LEASE_MS);
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
    const transfer = this.#running.get(id)?.transfer;
    const totals = transfer?.totals();
    if (totals === undefined) return { id };
    const { syncPoint = 0, announced } = transfer?.observed.progress() ?? {};
    return {
      id,
      bytesTransferred: totals.dataBytes,
      articles: totals.articles,
      ...(syncPoint > 0 ? { syncPoint } : {}),
      ...(announced === undefined ? {} : { announced }),
    };
  }

  /**
   * Begins to take rows; to be called whenever the database is ready. The first time, what an earlier process of this name
   * left IN_PROGRESS is queued again.
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

  /** A row of the server came, or is due again. */
  arrived(row: Pick<TransferRow, 'server_id'> & Partial<Pick<TransferRow, 'next_attempt_at'>>): void {
    const early = (row.next_attempt_at?.getTime() ?? 0) - Date.now();
    if (early > 0) this.#wakeIn(early, row);
    else this.#due(row);
  }

  #due({ server_id: server }: Pick<TransferRow, 'server_id'>): void {
    this.#isNews = true;
    this.#arrivals++;
    this.#backlog++;
    this.#queued++;
    this.#look(server);
    this.wake();
  }

  /** A transfer that does not run here is over: its record. */
  over(row: TransferRow): void {
    this.#ends.overElsewhere(row);
  }

  /** Rows may have become due that nobody told of: the database knows. */
  recount(): void {
    this.#lookAnew();
    this.wake();
  }

  /** Rows have become due, for whichever pod has room. */
  release(): void {
    this.#hints.tell();
    this.recount();
  }

  /** Ends a transfer for good if it runs here. */
  cancel(id: string): void {
    this.#running.get(id)?.abort.abort(new Interruption('cancelled'));
  }

  /** Gives back what runs here, for another process to continue it: nothing can make its way in this one. */
  handOver(): void {
    for (const { abort } of this.#running.values()) abort.abort(new Interruption('no volume'));
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
   * or when the queue stops. The queue may begin meanwhile: requests are taken before.
   */
  whenEnded(id: string, ms: number, signal: AbortSignal): Promise<TransferRow | undefined> {
    const isStopped = this.#state === 'draining' || this.#state === 'ended';
    return isStopped ? Promise.resolve(undefined) : this.#callers.wait(id, ms, signal);
  }

  /** Takes no more, lets what runs end for up to `drainMs`, then interrupts it. Callers that wait are answered at once. */
  async stop(drainMs: number): Promise<void> {
    this.#state = 'draining';
    this.#callers.dismiss();
    for (const alarm of this.#alarms) clearTimeout(alarm);
    this.#unsubscribe?.();
    const looked = this.#work?.endLooks();
    await this.#taking;
    if (!(await this.#emptied(drainMs))) {
      this.#log.warn(
        { running: this.#running.size },
        'interrupting the transfers that still run: the drain time is over',
      );
      for (const { abort } of this.#running.values()) abort.abort(new Interruption('stopped'));
      if (!(await this.#emptied(INTERRUPT_MS))) {
        this.#log.error(
          { running: [...this.#running.keys()] },
          'transfers did not end in time: another process, or the next start, takes them back',
        );
        await settledWithin(this.#giveBack(), GIVE_BACK_MS);
      }
    }
    this.#state = 'ended';
    // The others may take what was given back, and what came meanwhile.
    this.#hints.tell();
    this.#hints.stop();
    await this.#work?.endRenewals();
    await looked;
  }

  /** Files that still run are another process's from now on: it need not wait until the leases are over. Messages are not sent twice. */
  async #giveBack(): Promise<void> {
    const left = [...this.#running.values()].filter(({ job }) => job.type === 'FILE');
    const { diagnostic, message: errorMessage } = new Interruption('stopped');
    const end = { status: 'PENDING', counts: 'none', delay: 0, restartable: true, diagnostic, errorMessage } as const;
    for (const { job } of left) this.#leases.end(job.id);
    await Promise.allSettled(
      left.map(({ job }) => this.#options.store.end(job, { ...end, errorCode: 'TRANSFER_FAILED' }, [])),
    );
  }

  async #start(): Promise<void> {
    const { node } = this.#options;
    await this.#requeueOrphans({ node }, 'the service was stopped or killed while it ran');
    // Stopped meanwhile: nothing begins.
    if (this.#state !== 'new') return;
    this.#state = 'running';
    this.#work = beginQueueWork(this.#options, {
      look: () => this.#poll(),
      takeOver: () => this.#requeueExpired(),
      renewLeases: () => this.#leases.renew(),
      failed: () => this.#others.failed(),
    });
    this.#unsubscribe = this.#hints.subscribe(() => this.recount());
    this.wake();
  }

  /** @returns whether all transfers have ended */
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
        this.#databaseFailed(error, 'could not take a transfer from the queue');
        // The database may still have given one. How many wait is unknown now; the poll looks again.
        this.#doubtful = true;
        this.#lookAnew();
      }
    }
    this.#busy = false;
    // No pod is told of what this one takes by itself.
    if (this.#isNews && this.#backlog > 0) this.#hints.tell();
    this.#isNews = false;
  }

  async #take(): Promise<void> {
    const { store, node, settings, events } = this.#options;
    const { corePoolSize, maxPoolSize, queueCapacity, maxConnectionsPerHost: maxPerServer } = settings;
    if (this.#doubtful) {
      await store.giveBackUnknown(node, [...this.#running.keys()]);
      this.#doubtful = false;
    }
    while (this.#state === 'running' && this.#backlog > 0 && this.#options.mayRun()) {
      const active = this.#running.size;
      const freely = Math.max(0, corePoolSize - active);
      const minQueued = queueCapacity + 1;
      if (active >= maxPoolSize || (this.#queued < (freely > 0 ? 1 : minQueued) && !this.#neglects)) return;
      const slots = Math.min(MOST_TAKEN, maxPoolSize - active);
      this.#neglects = false;
      const arrivals = this.#arrivals;
      const since = performance.now();
      const leaseSeconds = this.#leases.seconds;
      const countTo = queueCapacity + maxPoolSize + 1;
      const asked = { node, leaseSeconds, maxPerServer, slots, freely, minQueued, countTo };
      const { jobs, backlog, queued } = await store.take(asked);
      // Rows that came while the statement ran may not be counted in it.
      const others = this.#arrivals - arrivals - jobs.length;
      this.#backlog = backlog + others;
      this.#queued = queued + others;
      if (jobs.length === 0) return;
      if (!this.#options.mayRun()) {
        // Blocked while the statement was on its way: the transfers wait like the others.
        await store.giveBackUnknown(node, [...this.#running.keys()]);
        this.#lookAnew();
        return;
      }
      for (const job of jobs) {
        // They come by how many run with them: behind one with some, none has nothing.
        this.#look(job.server_id);
        if (job.waited_ms !== null) events.publish(TRANSFER_TAKEN, { waitedMs: job.waited_ms });
        this.#run(job, since);
      }
    }
  }

  /** The next look at the table is for all that may be there. */
  #lookAnew(): void {
    this.#backlog = this.#queued = Number.POSITIVE_INFINITY;
    this.#neglects = true;
  }

  /** More rows of the server may be due, and more servers be like it. */
  #look(server: number | null): void {
    this.#neglects ||= ![...this.#running.values()].some(({ job }) => job.server_id === server);
  }

  #run(job: Job, since: number): void {
    const { id, fence } = job;
    const abort = new AbortController();
    this.#leases.begin(id, fence, abort, since);
    const transfer = this.#options.run(job, abort.signal, () => this.#leases.require(id));
    this.#running.set(id, { job, abort, transfer });
    const { observed } = transfer;
    const { events } = this.#options;
    events.publish(TRANSFER_BEGAN, { session: undefined, transfer: observed, facts: {} });
    void transfer.ended.then(async (end) => {
      const row = await this.#ends.record(job, end);
      this.#leases.end(id);
      this.#running.delete(id);
      this.#ends.publish(observed, end, row);
      if (row !== undefined && isOver(row)) {
        await this.#ends.over(row, transfer);
      } else if (row?.status === 'PENDING') {
        this.#wakeIn('delay' in end ? end.delay : 0, row);
      }
      this.#look(job.server_id);
      if (this.#running.size === 0) this.#idle.emit('idle');
      this.wake();
    });
  }

  /** The row is due in so many milliseconds. */
  #wakeIn(delay: number, row: Pick<TransferRow, 'server_id'>): void {
    this.#queued++;
    // The poll will find it.
    if (delay > LONGEST_ALARM_MS) return;
    if (delay === 0) {
      this.#isNews = true;
      this.#backlog++;
      return;
    }
    const alarm = setTimeout(() => {
      this.#alarms.delete(alarm);
      this.#due(row);
    }, delay).unref();
    this.#alarms.add(alarm);
  }

  async #poll(): Promise<void> {
    const { store } = this.#options;
    await this.#expire();
    await this.#callers.look(async (id) => (this.#running.has(id) ? undefined : store.find(id)));
    this.recount();
  }

  /** Ends those that should have begun by now. */
  async #expire(): Promise<void> {
    let rows;
    do {
      rows = await this.#options.store.expire(MOST_EXPIRED, EXPIRED);
      for (const row of rows) {
        this.#aside(row.id, 'not begun in time', { expiresAt: row.expires_at });
        this.over(row);
      }
    } while (rows.length === MOST_EXPIRED);
  }

  async #requeueExpired(): Promise<void> {
    const asked = performance.now();
    await this.#options.store.hear();
    this.#others.heard(asked);
    if (!this.#others.mayJudge) return;
    const found = await this.#requeueOrphans('expired', 'the process that ran it is gone');
    if (found > 0) this.release();
  }

  /** @returns how many it found */
  async #requeueOrphans(which: { readonly node: string } | 'expired', message: string): Promise<number> {
    const { store, settings } = this.#options;
    const rows = await store.requeueOrphans(which, settings.retry.attempts, message);
    for (const row of rows) {
      this.#aside(row.id, 'taken back', { status: row.status, reason: message });
      if (isOver(row)) this.over(row);
    }
    return rows.length;
  }

  #aside(id: string, aside: TransferAside, facts: Facts, error?: unknown): void {
    this.#options.events.publish(TRANSFER_ASIDE, { session: undefined, id, aside, error, facts });
  }

  #databaseFailed(error: unknown, what: string): void {
    this.#others.failed();
    if (isDatabaseUnavailable(error)) this.#log.debug({ err: error }, what);
    else this.#log.error({ err: error }, what);
  }
}
