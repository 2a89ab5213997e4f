import { AUTHORITY_SECRETS, KEYSTORE_SECRETS, sealAuthoritiesAnew, sealKeystoresAnew } from '@pesit-node/certificates';
import { HOOK_SECRETS, sealHooksAnew } from '@pesit-node/hooks';
import { rotateSecrets } from '@pesit-node/service';
import type { LoadConfigOptions, Rotation, SecretColumn } from '@pesit-node/service';

import { TICKET_SECRETS, TicketKeyStore } from '../certificates/ticket-key-store.js';
import { MIGRATIONS } from '../migrations/index.js';

/** Where this app stores secrets: hashes, which are made anew by the logins of their partners, and what is sealed. */
export const SECRET_COLUMNS: readonly SecretColumn[] = [
  ...(['password_hash', 'preconnect_password_hash'] as const).map(
    (column) => ({ table: 'partners', column, kind: 'hash', owner: 'partner_id' }) as const,
  ),
  ...KEYSTORE_SECRETS,
  ...AUTHORITY_SECRETS,
  ...TICKET_SECRETS,
  ...HOOK_SECRETS,
];

/** For `npm run rotate-secrets`: what is sealed, sealed with the first key, and which partners' hashes still hang on older keys. */
export const rotateServerSecrets = (options: Omit<LoadConfigOptions<'server'>, 'app'>): Promise<Rotation> =>
  rotateSecrets({
    ...options,
    ...{ app: 'server', schema: MIGRATIONS.schema, columns: SECRET_COLUMNS },
    sealAnew: async (knex, secrets) => {
      const keys = await sealKeystoresAnew(knex, secrets);
      const authorities = await sealAuthoritiesAnew(knex, secrets);
      const tickets = await new TicketKeyStore(knex, secrets).sealAnew();
      const hooks = await sealHooksAnew(knex, secrets);
      const all = [keys, authorities, tickets, hooks];
      return {
        sealed: all.reduce((sum, { sealed }) => sum + sealed, 0),
        unreadable: all.flatMap(({ unreadable }) => unreadable),
      };
    },
  });
