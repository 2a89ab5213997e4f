import type { Migration } from '@pesit-node/service';

/** PI 51 of what a partner has sent. */
export const creationDate: Migration = {
  name: '0009-creation-date',
  up: async (knex) => {
    await knex.raw('alter table transfers add column creation_date text');
  },
};
