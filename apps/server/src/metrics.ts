import { meterKeyUse } from '@pesit-node/service';
import type { DatabaseSupervisor, Metrics, SecretBox } from '@pesit-node/service';
import type { Space, VolumeWatch } from '@pesit-node/storage';
import { spaceReadings, volumeReadings } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { LISTENER_STATUSES } from './listeners/fields.js';
import type { ListenersHere } from './listeners/listeners-here.js';
import type { ListenerStore } from './listeners/store.js';
import { SECRET_COLUMNS } from './partners/secrets.js';

interface Sources {
  readonly knex: Knex;
  readonly secrets: Pick<SecretBox, 'keyId'>;
  readonly supervisor: Pick<DatabaseSupervisor, 'ready'>;
  readonly listenerStore: Pick<ListenerStore, 'list'>;
  readonly listenersHere: Pick<ListenersHere, 'activeConnections' | 'line'>;
  readonly volumes: Pick<VolumeWatch, 'fault' | 'answerMs'>;
  /** Space on the fullest volume that files are received on. */
  readonly space: () => Promise<Space | undefined>;
}

/** The gauges of the server app: what runs here, and what the database has. */
export const serverMetrics = (
  metrics: Metrics<'server'>,
  { knex, secrets, supervisor, listenerStore, listenersHere, volumes, space }: Sources,
): void => {
  metrics.gauge('pesit_sessions_open', () => listenersHere.activeConnections);
  metrics.gauges(['pesit_storage_free_bytes', 'pesit_storage_reserve_bytes'], async () => spaceReadings(await space()));
  metrics.gauges(['pesit_volumes_up', 'pesit_volumes_answer_seconds'], () => volumeReadings(volumes));
  metrics.gauges(['service_partners', 'service_virtual_files'], async () => {
    if (!supervisor.ready) return {};
    const { rows } = await knex.raw<{ rows: { service_partners: number; service_virtual_files: number }[] }>(
      `select (select count(*)::int from partners) as service_partners,
              (select count(*)::int from virtual_files) as service_virtual_files`,
    );
    return rows[0] ?? {};
  });
  metrics.gauges(['service_listeners', 'service_listeners_up', 'pesit_listeners'], async () => {
    if (!supervisor.ready) return {};
    const statuses = (await listenerStore.list()).map(({ server_id: id }) => listenersHere.line(id).status);
    const count = (wanted: string): number => statuses.filter((status) => status === wanted).length;
    return {
      service_listeners: statuses.length,
      service_listeners_up: count('RUNNING'),
      pesit_listeners: LISTENER_STATUSES.map((status) => ({ labels: { status }, value: count(status) })),
    };
  });
  meterKeyUse(metrics, { knex, secrets, supervisor }, SECRET_COLUMNS);
};
