import type { Migration } from '@pesit-node/service';

/** What a partner proves itself with, as a name: another one whenever that changes, or rights are taken away. */
export const credentials: Migration = {
  name: '0018-credentials',
  up: async (knex) => {
    await knex.raw('alter table partners add column credentials uuid not null default gen_random_uuid()');
  },
};
