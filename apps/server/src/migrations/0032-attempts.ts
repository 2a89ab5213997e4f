import type { Migration } from '@pesit-node/service';

/**
 * The attempts of a transfer one by one, in its own record: no statement and no row more, and retention needs none. The last
 * attempt is the record itself, with what was negotiated (`terms`, written with the end). When another attempt takes the record, the
 * same statement moves the one before into `former_attempts` (the newest 50); null, and without cost, for what went well at once.
 * `attempt_time`: when the last one began; null: with the transfer.
 */
export const attempts: Migration = {
  name: '0032-attempts',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers add column attempt_time timestamptz, add column terms jsonb, add column former_attempts jsonb`);
  },
};
