import { meterKeyUse } from '@pesit-node/service';
import type { DatabaseSupervisor, Metrics, SecretBox } from '@pesit-node/service';
import type { Space, VolumeWatch } from '@pesit-node/storage';
import { spaceReadings, volumeReadings } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import type { Exchange } from './exchange/exchange.js';
import type { ContactStatus } from './remote-servers/fields.js';
import { SECRET_COLUMNS } from './remote-servers/rotation.js';
import { DUE } from './transfers/row.js';

interface Sources {
  readonly knex: Knex;
  readonly secrets: Pick<SecretBox, 'keyId'>;
  readonly supervisor: Pick<DatabaseSupervisor, 'ready'>;
  readonly exchange: Pick<Exchange, 'pool'>;
  readonly volumes: Pick<VolumeWatch, 'fault' | 'answerMs'>;
  /** Space on the volume of the trees. */
  readonly space: () => Promise<Space | undefined>;
}

const STATUSES = ['UNKNOWN', 'CONNECTED', 'UNREACHABLE', 'REFUSED'] as const satisfies readonly ContactStatus[];

interface QueueRow {
  readonly due: number;
  readonly delayed: number;
  readonly held: number;
  readonly oldest: number;
}

/** The gauges of the client app: what runs here, and what the database has. */
export const clientMetrics = (
  metrics: Metrics<'client'>,
  { knex, secrets, supervisor, exchange, volumes, space }: Sources,
): void => {
  metrics.gauge('pesit_sessions_open', () => exchange.pool.open);
  metrics.gauges(['pesit_storage_free_bytes', 'pesit_storage_reserve_bytes'], async () => spaceReadings(await space()));
  metrics.gauges(['pesit_volumes_up', 'pesit_volumes_answer_seconds'], () => volumeReadings(volumes));
  metrics.gauges(['pesit_queue_depth', 'pesit_queue_oldest_seconds'], async () => {
    if (!supervisor.ready) return {};
    const { rows } = await knex.raw<{ rows: QueueRow[] }>(
      `select (count(*) filter (where enabled and ${DUE}))::int as due,
              (count(*) filter (where enabled and not (${DUE})))::int as delayed, (count(*) filter (where not enabled))::int as held,
              coalesce(extract(epoch from now() - min(coalesce(next_attempt_at, created_time))
                filter (where enabled and ${DUE})), 0)::float8 as oldest
       from transfers join (select id as server_id, enabled from remote_servers) s using (server_id) where status = 'PENDING'`,
    );
    const [{ due, delayed, held, oldest }] = rows as [QueueRow];
    return {
      pesit_queue_depth: [
        { labels: { state: 'due' }, value: due },
        { labels: { state: 'delayed' }, value: delayed },
        { labels: { state: 'held' }, value: held },
      ],
      pesit_queue_oldest_seconds: oldest,
    };
  });
  metrics.gauge('pesit_remote_servers', async () => {
    if (!supervisor.ready) return undefined;
    const { rows } = await knex.raw<{ rows: { status: ContactStatus; total: number }[] }>(
      'select status, count(*)::int as total from remote_servers group by status',
    );
    const totals = new Map(rows.map(({ status, total }) => [status, total]));
    return STATUSES.map((status) => ({ labels: { status }, value: totals.get(status) ?? 0 }));
  });
  metrics.gauge('pesit_remote_servers_circuit_open', async () => {
    if (!supervisor.ready) return undefined;
    const { rows } = await knex.raw<{ rows: { total: number }[] }>(
      'select count(*)::int as total from remote_servers where circuit_until is not null',
    );
    return rows[0]?.total;
  });
  meterKeyUse(metrics, { knex, secrets, supervisor }, SECRET_COLUMNS);
};
