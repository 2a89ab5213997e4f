import type { Migration } from '@pesit-node/service';

/** Whether certificates that partners present to a listener were revoked. */
export const revocation: Migration = {
  name: '0028-revocation',
  up: async (knex) => {
    await knex.raw(`
      alter table listeners
        add column revocation text not null default 'off' check (revocation in ('off', 'soft', 'hard'))`);
  },
};
