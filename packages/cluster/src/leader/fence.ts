import type { Knex } from 'knex';

import type { PodIdentity } from '../members.js';

/** This process does not lead, or no longer: its write was refused. */
export class NotLeaderError extends Error {
  override readonly name = 'NotLeaderError';
}

/** The newest epoch, which alone may write. */
export interface Fence {
  /** 0 before the first leader. @throws when the database cannot be asked. */
  newest(): Promise<number>;
  /**
   * Takes the epoch after `from` for this process; waits for writes of the leader before that are under way.
   * @returns it; undefined when `from` is no longer the newest. @throws when the database cannot be asked.
   */
  raise(from: number): Promise<number | undefined>;
}

export type Seat = Pick<PodIdentity, 'app' | 'cluster' | 'instance'>;

const NEWEST = 'select epoch from pesit_common.cluster_leaders where app = :app and cluster = :cluster';

const RAISE = `
  insert into pesit_common.cluster_leaders as l (app, cluster, epoch, instance, until)
  values (:app, :cluster, 1, :instance, clock_timestamp() + make_interval(secs => :seconds))
  on conflict (app, cluster) do update
    set epoch = l.epoch + 1, instance = excluded.instance, until = excluded.until
    where l.epoch = :from
  returning epoch`;

/** @param leaseMs of a lease that begins with the epoch, milliseconds. Default 0: the lease is elsewhere. */
export const databaseFence = (knex: Knex, { app, cluster, instance }: Seat, leaseMs = 0): Fence => {
  const epochOf = async (statement: string, values: Record<string, string | number>): Promise<number | undefined> =>
    (await knex.raw<{ rows: { epoch: number }[] }>(statement, { app, cluster, ...values })).rows[0]?.epoch;
  return {
    newest: async () => (await epochOf(NEWEST, {})) ?? 0,
    raise: (from) => epochOf(RAISE, { instance, from, seconds: leaseMs / 1000 }),
  };
};

/**
 * Writes as the leader: the transaction of `work` is refused unless `epoch` is the newest and this process's, and no newer one
 * begins before it has ended. So keep it short; of a leader that stands still within it the database ends it after 10 s (`createPool`).
 * @param epoch that of the lease when the work began; undefined is refused
 * @throws {NotLeaderError}
 */
export const fenced = <T>(
  knex: Knex,
  { app, cluster, instance }: Seat,
  epoch: number | undefined,
  work: (trx: Knex.Transaction) => Promise<T>,
): Promise<T> =>
  knex.transaction(async (trx) => {
    const { rows } = await trx.raw<{ rows: unknown[] }>(
      `select from pesit_common.cluster_leaders
       where app = :app and cluster = :cluster and instance = :instance and epoch = :epoch for key share`,
      { app, cluster, instance, epoch: epoch ?? 0 },
    );
    if (rows.length > 0) return work(trx);
    const shown = epoch === undefined ? 'no epoch' : `epoch ${String(epoch)}`;
    throw new NotLeaderError(
      `not written: this process has ${shown}, and another one may lead the cluster ${cluster} by now`,
    );
  });
