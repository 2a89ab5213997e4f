import type { Migration } from '@pesit-node/service';

/** Servers that take one FPDU in each entity; null: several. */
export const concatenation: Migration = {
  name: '0010-concatenation',
  up: async (knex) => {
    await knex.raw('alter table remote_servers add column concatenation boolean');
  },
};
