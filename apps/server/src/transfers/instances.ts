import { EventEmitter } from 'node:events';

import { LeaseClock, LeaseWatch, renewalMs } from '@pesit-node/service';
import type { Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';
import { isRunning, THIS_PROCESS } from '@pesit-node/ground';
import type { ProcessName } from '@pesit-node/ground';
import type { Knex } from 'knex';

export interface InstancesOptions {
  readonly knex: Knex;
  /** Runs the renewals. */
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** UUID of this process. */
  readonly instance: string;
  /** Name of this machine or pod. */
  readonly node: string;
  /** Nobody else can work on this database: whoever is not this process is gone. */
  readonly exclusive: boolean;
  /** Whether transfers can make their way here; while they cannot, the lease is not renewed, so that others continue them. Default: they can. */
  readonly mayRenew?: () => boolean;
  /** How long a process that is not heard of counts as living, milliseconds. Default 10,000. */
  readonly leaseMs?: number;
}

const LEASE_MS = 10_000;
/** Share that is given up at the end: partners wait for what is written then, and two renewals have failed. */
const MARGIN = 1 / 3;

export interface InstancesEvents {
  /** This process has its lease again after it was over: its transfers may be those of another. */
  again: [];
}

/**
 * Which processes live. Each renews a lease that covers all its transfers: one short statement every few seconds, none a
 * transfer. A process of this machine that has ended is known at once, any other when its lease is over, whether it exists or not: one
 * that stands still keeps no transfer.
 */
export class Instances extends EventEmitter<InstancesEvents> {
  readonly #options: Required<InstancesOptions>;
  #renewals: PeriodicHandle | undefined;
  readonly #clock: LeaseClock;
  readonly #others: LeaseWatch;
  #isKnown = false;
  #lastTerm: number | undefined;

  constructor(options: InstancesOptions) {
    super();
    this.#options = { leaseMs: LEASE_MS, mayRenew: () => true, ...options };
    const { leaseMs } = this.#options;
    this.#clock = new LeaseClock({ leaseMs, margin: MARGIN });
    this.#others = new LeaseWatch(leaseMs);
  }

  get leaseMs(): number {
    return this.#options.leaseMs;
  }

  /**
   * Number of the time without a gap in which nobody can have taken this process for gone; undefined while somebody can, because it
   * stood still or could not reach the database. A transfer that began in another term may be somebody else's by now.
   */
  get term(): number | undefined {
    return this.#clock.term;
  }

  /** Takes the lease and renews it from now on; may be called again. @throws when the database cannot be asked */
  async start(): Promise<void> {
    await this.#renew();
    this.#renewals ??= this.#options.periodic.add({
      name: 'renewal of the lease of this process',
      intervalMs: renewalMs(this.#options.leaseMs),
      jitter: 0.1,
      first: 'after an interval',
      run: () => (this.#options.mayRenew() ? this.#renew() : undefined),
    });
  }

  /** Gives the lease back: what is left open counts as left behind from now on. */
  async stop(): Promise<void> {
    await this.#renewals?.remove();
    this.#clock.end();
    if (!this.#isKnown) return;
    const { knex, instance, logger } = this.#options;
    await knex('instances')
      .where({ instance })
      .delete()
      .catch((error: unknown) => {
        logger.debug(
          { reason: (error as Error).message },
          'could not give back the lease of this process: it expires by itself',
        );
      });
  }

  /** Those of the given processes that are gone for sure. This one is never among them. */
  async goneAmong(instances: readonly string[]): Promise<ReadonlySet<string>> {
    const { knex, instance: self, exclusive } = this.#options;
    const gone = new Set(instances.filter((instance) => instance !== self));
    if (exclusive || gone.size === 0) return gone;
    const { rows } = await knex.raw<{ rows: Seen[] }>(
      `select instance, machine, pid, started, extract(epoch from now() - seen_at)::float8 * 1000 as age
       from instances where instance = any(?::uuid[])`,
      [[...gone]],
    );
    for (const row of rows) if (!this.#isGone(row)) gone.delete(row.instance);
    return gone;
  }

  /** Forgets processes that ended long ago. @param knex in whose transaction. Default: none */
  async forgetOld(knex = this.#options.knex): Promise<void> {
    await knex('instances').whereRaw("seen_at < now() - interval '1 day'").delete();
  }

  #isGone({ age, ...other }: Seen): boolean {
    // Without /proc nothing can be said of others: their leases tell.
    if (other.machine === THIS_PROCESS.machine && THIS_PROCESS.started !== '0' && !isRunning(other)) return true;
    return age > this.#options.leaseMs && this.#others.mayJudge;
  }

  async #renew(): Promise<void> {
    const { knex, instance, node } = this.#options;
    const { machine, pid, started } = THIS_PROCESS;
    const since = this.#clock.now();
    await knex.raw(
      `insert into instances (instance, node, machine, pid, started) values (?, ?, ?, ?, ?)
       on conflict (instance) do update set seen_at = now()`,
      [instance, node, machine, pid, started],
    );
    this.#isKnown = true;
    const before = this.#lastTerm;
    this.#clock.granted(since);
    this.#lastTerm = this.#clock.term ?? before;
    if (before !== undefined && this.#lastTerm !== before) this.emit('again');
    this.#others.heard(since);
  }
}

interface Seen extends ProcessName {
  readonly instance: string;
  /** Milliseconds since its last renewal. */
  readonly age: number;
}
