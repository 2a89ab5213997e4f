import type { Migration } from '@pesit-node/service';

/** Bytes a second with a remote server, on each pod; null: no limit. */
export const rate: Migration = {
  name: '0027-rate',
  up: async (knex) => {
    await knex.raw('alter table remote_servers add column max_bytes_per_second bigint');
  },
};
