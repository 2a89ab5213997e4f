import type { Migration } from '@pesit-node/service';

/** The marks of shared directories, and why a pod is not ready. */
export const volumes: Migration = {
  name: '0004-volumes',
  up: async (knex) => {
    await knex.raw(`
      create table volume_marks (
        app text not null,
        cluster text not null,
        directory text not null,
        id text not null,
        node text not null,
        at timestamptz not null default now(),
        primary key (app, cluster, directory)
      )`);
    await knex.raw('alter table cluster_pods add column not_ready_reason text');
  },
};
