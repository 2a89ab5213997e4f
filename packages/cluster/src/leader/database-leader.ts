import type { Knex } from 'knex';

import { databaseFence } from './fence.js';
import type { Seat } from './fence.js';
import type { LeaseBackend } from './leader-lease.js';
import { LEADER_TTL_MS } from './timed-leader.js';

const HOLDER = `
  select instance, epoch, until > clock_timestamp() as held from pesit_common.cluster_leaders
  where app = :app and cluster = :cluster`;

/** Nobody has taken it over as long as the epoch is the same, whatever the clock says. */
const RENEW = `
  update pesit_common.cluster_leaders set until = clock_timestamp() + make_interval(secs => :seconds)
  where app = :app and cluster = :cluster and instance = :instance and epoch = :epoch
  returning epoch`;

const RELEASE = `
  update pesit_common.cluster_leaders set until = clock_timestamp()
  where app = :app and cluster = :cluster and instance = :instance`;

interface Row {
  readonly instance: string;
  readonly epoch: number;
  readonly held: boolean;
}

/** The lease of the leader in PostgreSQL, by the clock of the database: for pods without Redis. */
export const databaseLease = (knex: Knex, seat: Seat, ttlMs = LEADER_TTL_MS): LeaseBackend => {
  const { app, cluster, instance } = seat;
  const seconds = ttlMs / 1000;
  const fence = databaseFence(knex, seat, ttlMs);
  const row = async (): Promise<Row | undefined> => (await knex.raw<{ rows: Row[] }>(HOLDER, { app, cluster })).rows[0];
  return {
    acquire: async () => {
      const last = await row();
      if (last?.held === true && last.instance !== instance) return undefined;
      return fence.raise(last?.epoch ?? 0);
    },
    renew: async (epoch) =>
      (await knex.raw<{ rows: unknown[] }>(RENEW, { app, cluster, instance, epoch, seconds })).rows.length > 0,
    release: async () => {
      await knex.raw(RELEASE, { app, cluster, instance });
    },
    holder: async () => {
      const last = await row();
      return last?.held === true ? last.instance : undefined;
    },
  };
};
