import type { Migration } from '@pesit-node/service';

/** Who asked for a transfer. */
export const createdBy: Migration = {
  name: '0024-created-by',
  up: async (knex) => {
    await knex.raw('alter table transfers add column created_by text');
  },
};
