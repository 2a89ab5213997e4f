import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

import type { Logger } from '@pesit-node/service';
import type { Knex } from 'knex';

export interface InstancesOptions {
  readonly knex: Knex;
  readonly logger: Logger;
  /** UUID of this process. */
  readonly instance: string;
  /** Name of this machine or pod. */
  readonly node: string;
  /** Nobody else can work on this database: whoever is not this process is gone. */
  readonly exclusive: boolean;
  /** How long a process that is not heard of counts as living, milliseconds. Default 10,000. */
  readonly leaseMs?: number;
}

const LEASE_MS = 10_000;
/** Renewals in the time of a lease: one that is late harms nobody. */
const RENEWALS = 3;

const quietly = (read: () => string): string | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};

/** The boot and the pid namespace: within them a pid and its start time name one process for ever. */
const thisMachine = (): string => {
  const boot = quietly(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? hostname();
  const namespace = quietly(() => readlinkSync('/proc/self/ns/pid')) ?? '';
  return createHash('sha256').update(`${boot} ${namespace}`).digest('hex').slice(0, 12);
};

/** Start time in clock ticks since the boot (proc(5) stat, field 22); undefined when the process is gone or ended. */
const startOf = (pid: number | 'self'): string | undefined => {
  const stat = quietly(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields === undefined || /^[ZXx]$/.test(fields[0] ?? '') ? undefined : fields[19];
};

const MACHINE = thisMachine();
/** Without /proc nothing can be said of others, and nothing is said of us. */
const STARTED = startOf('self');

/**
 * Which processes live. Each renews a lease that covers all its transfers: one short statement every few seconds, none a
 * transfer. A process of this machine that is gone is known at once, any other when its lease is over.
 */
export class Instances {
  readonly #options: Required<InstancesOptions>;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  /** Since when every renewal of this process has succeeded in time; while the database was away nobody could renew. */
  #renewingSince: number | undefined;
  #renewedAt = 0;

  constructor(options: InstancesOptions) {
    this.#options = { leaseMs: LEASE_MS, ...options };
  }

  get leaseMs(): number {
    return this.#options.leaseMs;
  }

  /**
   * Whether nobody can take this process for gone. False after it stood still (a suspended machine), or could not reach the
   * database: until the next renewal its transfers may be those of another.
   */
  get isCurrent(): boolean {
    return performance.now() - this.#renewedAt < (this.#options.leaseMs * (RENEWALS - 1)) / RENEWALS;
  }

  /** Takes the lease and renews it from now on. @throws when the database cannot be asked */
  async start(): Promise<void> {
    await this.#renew();
    this.#timer ??= setInterval(() => {
      this.#renewing ??= this.#renew()
        .catch((error: unknown) => {
          this.#options.logger.debug({ reason: (error as Error).message }, 'lease of this process not renewed');
        })
        .finally(() => (this.#renewing = undefined));
    }, this.#options.leaseMs / RENEWALS).unref();
  }

  /** Gives the lease back: what is left open counts as left behind from now on. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
    if (this.#renewedAt === 0) return;
    const { knex, instance, logger } = this.#options;
    await knex('instances')
      .where({ instance })
      .delete()
      .catch((error: unknown) => {
        logger.debug({ reason: (error as Error).message }, 'lease of this process not given back: it will run out');
      });
  }

  /** Of these processes, those that are gone for sure. This one is never among them. */
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

  /** Forgets processes that ended long ago. */
  async forgetOld(): Promise<void> {
    await this.#options.knex('instances').whereRaw("seen_at < now() - interval '1 day'").delete();
  }

  #isGone({ machine, pid, started, age }: Seen): boolean {
    if (machine === MACHINE && STARTED !== undefined) return startOf(pid) !== started;
    const watching = this.#renewingSince === undefined ? 0 : performance.now() - this.#renewingSince;
    return age > this.#options.leaseMs && watching > this.#options.leaseMs;
  }

  async #renew(): Promise<void> {
    const { knex, instance, node, leaseMs } = this.#options;
    const before = performance.now();
    await knex.raw(
      `insert into instances (instance, node, machine, pid, started) values (?, ?, ?, ?, ?)
       on conflict (instance) do update set seen_at = now()`,
      [instance, node, MACHINE, process.pid, STARTED ?? ''],
    );
    const inTime = this.#renewedAt !== 0 && before - this.#renewedAt < leaseMs;
    if (!inTime) this.#renewingSince = before;
    // When the database wrote it, it was not earlier.
    this.#renewedAt = before;
  }
}

interface Seen {
  readonly instance: string;
  readonly machine: string;
  readonly pid: number;
  readonly started: string;
  /** Milliseconds since its last renewal. */
  readonly age: number;
}
