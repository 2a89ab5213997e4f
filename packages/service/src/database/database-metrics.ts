import type { Knex } from 'knex';

import type { Metrics } from '../metrics/metrics.js';
import type { DatabaseSupervisor } from './supervisor.js';

/** As much of knex's pool as tells how busy it is. */
interface Pool {
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

/** The gauges of the database: whether it answers, its connections, and what waits for one. */
export const databaseMetrics = (
  metrics: Metrics,
  { knex, supervisor }: { readonly knex: Knex; readonly supervisor: Pick<DatabaseSupervisor, 'ready'> },
): void => {
  metrics.gauge('pesit_database_up', () => Number(supervisor.ready));
  metrics.gauges(['pesit_database_connections', 'pesit_database_waiting'], () => {
    const { pool } = knex.client as { readonly pool?: Pool };
    if (pool === undefined) return {};
    return {
      pesit_database_connections: [
        { labels: { state: 'used' }, value: pool.numUsed() },
        { labels: { state: 'idle' }, value: pool.numFree() },
      ],
      pesit_database_waiting: pool.numPendingAcquires(),
    };
  });
};
