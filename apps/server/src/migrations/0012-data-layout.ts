import type { Migration } from '@pesit-node/service';

/** Partners that take one article in each DTF, or one FPDU in each entity; null: several. */
export const dataLayout: Migration = {
  name: '0012-data-layout',
  up: async (knex) => {
    await knex.raw('alter table partners add column multi_article boolean, add column concatenation boolean');
  },
};
