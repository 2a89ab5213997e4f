import type { Migration } from '@pesit-node/service';

/** A restart means the newest transfer of its identity, however that one ended: an older one is given up by it. */
export const newestContext: Migration = {
  name: '0009-newest-context',
  up: async (knex) => {
    await knex.raw(`
      drop index transfers_context_idx;
      create index transfers_context_idx on transfers (transfer_id, partner_id) where context is not null;`);
  },
};
