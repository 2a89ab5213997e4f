import type { Migration } from '@pesit-node/service';

/** Equal refusals of a partner, beyond a rate, are one record that counts them. */
export const refusals: Migration = {
  name: '0016-refusals',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers
        add column occurrences bigint not null default 1 check (occurrences > 0),
        -- Null: once.
        add column last_occurrence timestamptz`);
  },
};
