import type { Migration } from '@pesit-node/service';

/**
 * Who runs on this database. `position` is the order of arrival, whatever the clocks say: the oldest keep their place. A row
 * of `cluster_pods` is one process with a lease; one of `clusters` stays, so that a cluster that was stopped for a night is
 * as old as before.
 */
export const cluster: Migration = {
  name: '0001-cluster',
  up: async (knex) => {
    await knex.raw(`
      create table clusters (
        app text not null,
        name text not null,
        position bigint generated always as identity,
        since timestamptz not null default now(),
        primary key (app, name)
      )`);
    await knex.raw(`
      create table cluster_pods (
        instance uuid primary key,
        app text not null,
        cluster text not null,
        namespace text not null,
        pod text not null,
        position bigint generated always as identity,
        since timestamptz not null default now(),
        seen_at timestamptz not null default now()
      )`);
  },
};
