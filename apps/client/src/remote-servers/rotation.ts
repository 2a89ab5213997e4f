import { KEYSTORE_SECRETS, sealKeystoresAnew } from '@pesit-node/certificates';
import { HOOK_SECRETS, sealHooksAnew } from '@pesit-node/hooks';
import { rotateSecrets } from '@pesit-node/service';
import type { LoadConfigOptions, Rotation, SecretColumn } from '@pesit-node/service';

import { CLIENT_MIGRATIONS } from '../migrations/index.js';
import { remoteServerStore } from './store.js';
import type { Progress } from './store.js';

/** Where this app stores secrets. */
export const SECRET_COLUMNS: readonly SecretColumn[] = [
  ...(['password', 'preconnect_password'] as const).map(
    (column) => ({ table: 'remote_servers', column, kind: 'sealed', owner: 'name' }) as const,
  ),
  ...KEYSTORE_SECRETS,
  ...HOOK_SECRETS,
];

/** For `npm run rotate-secrets`: the passwords of remote servers and the private keys, sealed with the first key. */
export const rotateClientSecrets = (
  options: Omit<LoadConfigOptions<'client'>, 'app'>,
  progress?: Progress,
): Promise<Rotation> =>
  rotateSecrets({
    ...options,
    ...{ app: 'client', schema: CLIENT_MIGRATIONS.schema, columns: SECRET_COLUMNS },
    sealAnew: async (knex, secrets) => {
      const passwords = await remoteServerStore(knex, secrets).sealAnew({ rotate: true, progress });
      const keys = await sealKeystoresAnew(knex, secrets);
      const hooks = await sealHooksAnew(knex, secrets);
      return {
        sealed: passwords.sealed + keys.sealed + hooks.sealed,
        unreadable: [...passwords.unreadable, ...keys.unreadable, ...hooks.unreadable],
      };
    },
  });
