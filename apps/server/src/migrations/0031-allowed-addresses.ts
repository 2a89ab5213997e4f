import type { Migration } from '@pesit-node/service';

/** From where a partner may connect; null: from everywhere. */
export const allowedAddresses: Migration = {
  name: '0031-allowed-addresses',
  up: async (knex) => {
    await knex.raw('alter table partners add column allowed_addresses text[]');
  },
};
