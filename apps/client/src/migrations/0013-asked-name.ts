import type { Migration } from '@pesit-node/service';

/** A file that is asked for by its name: in PI 12 where the partner can read it there, and compared with PI 37 everywhere. */
export const askedName: Migration = {
  name: '0013-asked-name',
  up: async (knex) => {
    await knex.raw('alter table remote_servers add column select_by_name boolean');
    await knex.raw('alter table transfers add column name_confirmed boolean');
  },
};
