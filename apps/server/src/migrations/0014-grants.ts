import type { Migration } from '@pesit-node/service';

/** Which partner is tied to which virtual files and listeners: identifiers and globs; null: nothing is said. */
export const grants: Migration = {
  name: '0014-grants',
  up: async (knex) => {
    await knex.raw('alter table partners add column allowed_files text[], add column allowed_listeners text[]');
    await knex.raw('alter table virtual_files add column allowed_partners text[]');
  },
};
