import type { Migration } from '@pesit-node/service';

/** Servers that take one article in each DTF. */
export const multiArticle: Migration = {
  name: '0006-multi-article',
  up: async (knex) => {
    await knex.raw('alter table remote_servers add column multi_article boolean');
  },
};
