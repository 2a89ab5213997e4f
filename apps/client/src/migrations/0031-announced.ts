import type { Migration } from '@pesit-node/service';

/** Bytes that the partner announces for a file that is received (PI 42), in whole kilobytes; null: it does not, or none is received. */
export const announced: Migration = {
  name: '0031-announced',
  up: async (knex) => {
    await knex.raw('alter table transfers add column announced bigint');
  },
};
