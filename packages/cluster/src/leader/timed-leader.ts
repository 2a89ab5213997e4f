import { EventEmitter } from 'node:events';

import { LeaseClock } from '@pesit-node/service';
import type { LeaseTime, Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';

import type { ClusterEvents } from '../events.js';
import type { LeaderEvents, LeaderLease, LeaseBackend } from './leader-lease.js';

export interface TimedLeaderOptions extends Partial<LeaseTime> {
  readonly backend: LeaseBackend;
  /** Tells the others of a lease that is free; hears of one. */
  readonly events: ClusterEvents;
  /** Runs the renewals. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** Whether this process can do the work of the leader now; while it cannot, it leaves it to others. Default: it can. */
  readonly isFit?: (() => boolean) | undefined;
  /** As the backend grants it, milliseconds. Default 10,000. */
  readonly ttlMs?: number;
}

export const LEADER_TTL_MS = 10_000;
/** Between two looks, as a share of the lease: 1 s of 10. */
const LOOKS = 0.1;
/** The leader gives up 1 s of 10: its work is in short transactions. */
const MARGIN = 0.1;
/** A Redis or database that does not answer must not hold up the end of the process: the lease runs out by itself. */
const STOP_MS = 2000;

/**
 * A leader for as long as its lease lasts (`LeaseClock`), whatever else it hears. A write that comes later, because the process
 * stood still in between, is refused by `fenced`.
 */
export class TimedLeader extends EventEmitter<LeaderEvents> implements LeaderLease {
  readonly #options: Required<Omit<TimedLeaderOptions, keyof LeaseTime | 'isFit'>>;
  readonly #isFit: () => boolean;
  readonly #clock: LeaseClock;
  readonly #unsubscribe: () => void;
  #renewals: PeriodicHandle | undefined;
  #epoch: number | undefined;
  #work: Promise<void> = Promise.resolve();
  #hasAsked = false;
  #stopping: Promise<void> | undefined;

  constructor({ monotonic, alarm, isFit = () => true, ...options }: TimedLeaderOptions) {
    super();
    this.#options = { ttlMs: LEADER_TTL_MS, ...options };
    this.#isFit = isFit;
    this.#clock = new LeaseClock({
      ...{ leaseMs: this.#options.ttlMs, margin: MARGIN },
      over: () => this.#ended('its lease could not be renewed in time'),
      time: { ...(monotonic && { monotonic }), ...(alarm && { alarm }) },
    });
    this.#unsubscribe = options.events.subscribe('leadership', () =>
      this.#renewals === undefined ? undefined : this.refresh(),
    );
  }

  get isLeader(): boolean {
    return this.epoch !== undefined;
  }

  get epoch(): number | undefined {
    return this.#clock.isHeld ? this.#epoch : undefined;
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
    if (!this.#isFit()) {
      await this.#giveUp();
      return;
    }
    if (!this.#clock.isDue) return;
    this.#hasAsked = true;
    const { backend } = this.#options;
    const since = this.#clock.now();
    const epoch = this.epoch;
    if (epoch === undefined) {
      const gained = await backend.acquire();
      if (gained !== undefined) this.#hold(gained, since);
      return;
    }
    const renewed = await backend.renew(epoch);
    if (this.#epoch !== epoch) return;
    if (renewed) this.#clock.granted(since);
    else this.#lose('another process has its lease, or nobody has');
  }

  async #giveUp(): Promise<void> {
    if (this.epoch === undefined) return;
    const { backend, events } = this.#options;
    this.#lose('it cannot do the work of the leader for now');
    await backend.release();
    events.tell('leadership');
  }

  #hold(epoch: number, since: number): void {
    // Granted too late to be used: the next look asks anew.
    if (this.#stopping !== undefined || !this.#clock.granted(since)) return;
    this.#epoch = epoch;
    this.#options.logger.info({ epoch }, 'this pod is the leader now');
    this.emit('gain', epoch);
  }

  #lose(reason: string): void {
    if (this.#clock.end()) this.#ended(reason);
  }

  #ended(reason: string): void {
    const epoch = this.#epoch;
    this.#epoch = undefined;
    this.#options.logger.info({ epoch, reason }, 'this pod is no longer the leader');
    this.emit('loss');
  }
}
