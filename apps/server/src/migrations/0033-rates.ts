import type { Migration } from '@pesit-node/service';

/** Bytes a second of a partner and of a listener, on each pod; null: no limit. */
export const rates: Migration = {
  name: '0033-rates',
  up: async (knex) => {
    await knex.raw(`
      alter table partners add column max_bytes_per_second bigint;
      alter table listeners add column max_bytes_per_second bigint`);
  },
};
