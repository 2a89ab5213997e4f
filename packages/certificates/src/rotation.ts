import type { Rotation, SecretBox, SecretColumn } from '@pesit-node/service';
import type { Knex } from 'knex';

import { sealAuthoritiesAnew } from './authority/store.js';
import { KeystoreStore } from './keystore-store.js';

/** Where private keys are stored. */
export const KEYSTORE_SECRETS = [
  { table: 'keystores', column: 'private_key', kind: 'sealed', owner: 'name' },
] as const satisfies readonly SecretColumn[];

/** For `npm run rotate-secrets`: the private keys, sealed with the first key. */
export const sealKeystoresAnew = async (
  knex: Knex,
  secrets: SecretBox,
): Promise<Pick<Rotation, 'sealed' | 'unreadable'>> => {
  const { sealed, unreadable } = await new KeystoreStore(knex, secrets).sealAnew();
  return { sealed, unreadable: unreadable.map((name) => `keystore ${name}`) };
};

/** Where the keys of the local CA are. */
export const AUTHORITY_SECRETS = [
  { table: 'authorities', column: 'private_key', kind: 'sealed', owner: 'id' },
] as const satisfies readonly SecretColumn[];

export { sealAuthoritiesAnew };
