import type { Migration } from '@pesit-node/service';

/** What each pod says of itself with every renewal; null until it has said so. */
export const podFacts: Migration = {
  name: '0003-pod-facts',
  up: async (knex) => {
    await knex.raw(`
      alter table cluster_pods
        add column address text,
        add column version text,
        add column ready boolean,
        add column sessions integer`);
  },
};
