import { EventEmitter } from 'node:events';

import type { Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';

import type { ClusterEvents } from '../events.js';
import type { LeaderEvents, LeaderLease, LeaseBackend } from './leader-lease.js';

export interface TimedLeaderOptions {
  readonly backend: LeaseBackend;
  /** Tells the others of a lease that is free; hears of one. */
  readonly events: ClusterEvents;
  /** Runs the renewals. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** As the backend grants it, milliseconds. Default 10,000. */
  readonly ttlMs?: number;
  /** Milliseconds of a clock that nobody can set. */
  readonly monotonic?: () => number;
  /** Calls once after so many milliseconds. @returns takes it back. */
  readonly alarm?: (delayMs: number, ring: () => void) => () => void;
}

export const LEADER_TTL_MS = 10_000;
/** Shares of the lease: 3 s, 1 s and 1 s of 10. */
const RENEWALS = 0.3;
const LOOKS = 0.1;
/** How much sooner a leader gives up than its lease runs out: clocks differ, and what it has begun takes a while. */
const MARGIN = 0.1;
/** A Redis or database that does not answer must not hold up the end of the process: the lease runs out by itself. */
const STOP_MS = 2000;

interface Term {
  readonly epoch: number;
  /** By the monotonic clock, as all here: when the last renewal that succeeded was asked for. */
  readonly renewedAt: number;
  readonly until: number;
}

const alarmByTimer = (delayMs: number, call: () => void): (() => void) => {
  const timer = setTimeout(call, delayMs).unref();
  return () => {
    clearTimeout(timer);
  };
};

/**
 * A leader for as long as its lease lasts, counted from before it was asked for, less a margin: it gives up before the lease
 * can run out, whatever else it hears. A write that comes later, because the process stood still in between, is
 * refused by `fenced`.
 */
export class TimedLeader extends EventEmitter<LeaderEvents> implements LeaderLease {
  readonly #options: Required<TimedLeaderOptions>;
  readonly #unsubscribe: () => void;
  #renewals: PeriodicHandle | undefined;
  #term: Term | undefined;
  #silence: () => void = () => undefined;
  #work: Promise<void> = Promise.resolve();
  #hasAsked = false;
  #stopping: Promise<void> | undefined;

  constructor(options: TimedLeaderOptions) {
    super();
    this.#options = { ttlMs: LEADER_TTL_MS, monotonic: () => performance.now(), alarm: alarmByTimer, ...options };
    this.#unsubscribe = options.events.subscribe('leadership', () =>
      this.#renewals === undefined ? undefined : this.refresh(),
    );
  }

  get isLeader(): boolean {
    return this.epoch !== undefined;
  }

  get epoch(): number | undefined {
    const term = this.#term;
    return term !== undefined && this.#options.monotonic() < term.until ? term.epoch : undefined;
  }

  start(): void {
    if (this.#stopping !== undefined || this.#renewals !== undefined) return;
    this.#renewals = this.#options.periodic.add({
      name: 'election of the leader',
      intervalMs: this.#options.ttlMs * LOOKS,
      jitter: 0.1,
      run: () => this.refresh(),
    });
  }

  refresh(): Promise<void> {
    this.#work = this.#work.then(async () => {
      try {
        await this.#look();
      } catch (error) {
        // The links to Redis and to the database tell of it.
        this.#options.logger.debug({ reason: (error as Error).message }, 'could not ask for the lease of the leader');
      }
    });
    return this.#work;
  }

  holder(): Promise<string | undefined> {
    return this.#options.backend.holder();
  }

  stop(): Promise<void> {
    const limit = new Promise<void>((resolve) => setTimeout(resolve, STOP_MS).unref());
    return (this.#stopping ??= Promise.race([this.#stop(), limit]));
  }

  async #stop(): Promise<void> {
    const { backend, events, logger } = this.#options;
    this.#unsubscribe();
    this.#lose('it stops');
    await this.#renewals?.remove();
    // A lease that was asked for may yet be granted.
    await this.#work;
    if (!this.#hasAsked) return;
    try {
      await backend.release();
      events.tell('leadership');
    } catch (error) {
      logger.debug(
        { reason: (error as Error).message },
        'could not give back the lease of the leader: it runs out by itself',
      );
    }
  }

  async #look(): Promise<void> {
    if (this.#stopping !== undefined) return;
    this.#giveUpInTime();
    this.#hasAsked = true;
    const { backend, monotonic, ttlMs } = this.#options;
    const begun = monotonic();
    const term = this.#term;
    if (term === undefined) {
      const epoch = await backend.acquire();
      if (epoch !== undefined) this.#hold(epoch, begun);
      return;
    }
    if (begun - term.renewedAt < ttlMs * (RENEWALS - LOOKS / 2)) return;
    const renewed = await backend.renew(term.epoch);
    if (this.#term !== term) return;
    if (renewed) this.#hold(term.epoch, begun);
    else this.#lose('another process has its lease, or nobody has');
  }

  #hold(epoch: number, begun: number): void {
    const { monotonic, alarm, logger, ttlMs } = this.#options;
    const until = begun + ttlMs * (1 - MARGIN);
    // Granted too late to be used; the next look asks anew.
    if (this.#stopping !== undefined || monotonic() >= until) return;
    const first = this.#term === undefined;
    this.#term = { epoch, renewedAt: begun, until };
    this.#silence();
    this.#silence = alarm(until - monotonic(), () => this.#giveUpInTime());
    if (!first) return;
    logger.info({ epoch }, 'this pod is the leader now');
    this.emit('gain', epoch);
  }

  /** An alarm may ring early: it is set again. */
  #giveUpInTime(): void {
    const { monotonic, alarm } = this.#options;
    const term = this.#term;
    if (term === undefined) return;
    const left = term.until - monotonic();
    this.#silence();
    if (left > 0) this.#silence = alarm(Math.ceil(left), () => this.#giveUpInTime());
    else this.#lose('its lease could not be renewed in time');
  }

  #lose(reason: string): void {
    const term = this.#term;
    if (term === undefined) return;
    this.#term = undefined;
    this.#silence();
    this.#options.logger.info({ epoch: term.epoch, reason }, 'this pod is no longer the leader');
    this.emit('loss');
  }
}
