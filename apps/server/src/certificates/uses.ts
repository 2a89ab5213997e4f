import type { StoreUse, StoreUses } from '@pesit-node/certificates';
import type { Hooks } from '@pesit-node/hooks';
import type { Config } from '@pesit-node/service';

import type { ListenerService } from '../listeners/service.js';

type StoreNames = Pick<
  Config<'server'>,
  'ssl.keystore-name' | 'ssl.truststore-name' | 'server.ssl.enabled' | 'server.ssl.keystore-name'
>;

/** The things of this app that name a keystore or a truststore. */
export const storeUses =
  (listeners: Pick<ListenerService, 'list'>, hooks: Pick<Hooks['store'], 'list'>, config: StoreNames): StoreUses =>
  async () => {
    const use = (kind: StoreUse['kind'], store: string | null, what: string, name: string): readonly StoreUse[] =>
      store === null || store === '' ? [] : [{ kind, store, what, name }];
    const { rows } = await listeners.list();
    return [
      ...rows.flatMap(({ row }) => [
        ...use('keystore', row.keystore_name, 'listener', row.server_id),
        ...use('truststore', row.truststore_name, 'listener', row.server_id),
      ]),
      ...(await hooks.list()).flatMap((row) => use('truststore', row.truststore_name, 'hook', row.hook_id)),
      ...use('keystore', config['ssl.keystore-name'], 'configuration', 'ssl.keystore-name'),
      ...(config['server.ssl.enabled']
        ? use('keystore', config['server.ssl.keystore-name'], 'configuration', 'server.ssl.keystore-name')
        : []),
      ...use('truststore', config['ssl.truststore-name'], 'configuration', 'ssl.truststore-name'),
    ];
  };
