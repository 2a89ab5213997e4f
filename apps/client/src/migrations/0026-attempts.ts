import type { Migration } from '@pesit-node/service';

/**
 * The attempts of a transfer one by one, in its own record: no statement and no row more, and retention needs none. An attempt that
 * went well is the record itself, with where it was made and over which terms (`attempt_place`). One that ended otherwise is put into
 * `former_attempts` by the statement that ends it (the newest 50); null, and without cost, for what went well at once.
 * `attempt_time`: when the last one began.
 */
export const attempts: Migration = {
  name: '0026-attempts',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers add column attempt_time timestamptz, add column attempt_place jsonb, add column former_attempts jsonb`);
  },
};
