import type { Migration } from '@pesit-node/service';

/** What the last sessions with a server have shown of it. */
export const seen: Migration = {
  name: '0008-seen',
  up: async (knex) => {
    await knex.raw("alter table remote_servers add column seen jsonb not null default '{}'");
  },
};
