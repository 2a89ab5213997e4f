import type { Migration } from '@pesit-node/service';

/** Whether certificates that remote servers present were revoked. */
export const revocation: Migration = {
  name: '0021-revocation',
  up: async (knex) => {
    await knex.raw(`
      alter table remote_servers
        add column revocation text not null default 'off' check (revocation in ('off', 'soft', 'hard'))`);
  },
};
