import { rotateSecrets } from '@pesit-node/service';
import type { LoadConfigOptions, Rotation, SecretColumn } from '@pesit-node/service';

import { CLIENT_MIGRATIONS } from '../migrations/index.js';
import { remoteServerStore } from './store.js';
import type { Progress } from './store.js';

/** Where this app stores secrets. */
export const SECRET_COLUMNS = (['password', 'preconnect_password'] as const).map(
  (column) => ({ table: 'remote_servers', column, kind: 'sealed', owner: 'name' }) as const satisfies SecretColumn,
);

/** For `npm run rotate-secrets`: the passwords of remote servers, sealed with the first key. */
export const rotateClientSecrets = (
  options: Omit<LoadConfigOptions<'client'>, 'app'>,
  progress?: Progress,
): Promise<Rotation> =>
  rotateSecrets({
    ...options,
    ...{ app: 'client', schema: CLIENT_MIGRATIONS.schema, columns: SECRET_COLUMNS },
    sealAnew: (knex, secrets) => remoteServerStore(knex, secrets).sealAnew({ rotate: true, progress }),
  });
