import type { Migration } from '@pesit-node/service';

/**
 * What is wanted of each listener, on every pod: `wanted` = it is to run; another `generation` = each pod restarts it once;
 * another `revision` = something of it was changed. Both numbers are never used twice, so that a listener that was deleted
 * and created again is not taken for the one before. `listener_pods` is what each pod says of its listeners; a line counts
 * as long as its pod lives (`pesit_common.cluster_pods`).
 */
export const wantedListeners: Migration = {
  name: '0021-wanted-listeners',
  up: async (knex) => {
    await knex.raw('create sequence listener_changes');
    await knex.raw(`
      alter table listeners
        add column wanted boolean not null default false,
        add column generation bigint not null default nextval('listener_changes'),
        add column revision bigint not null default nextval('listener_changes')`);
    await knex.raw('update listeners set wanted = auto_start');
    await knex.raw(`
      create table listener_pods (
        server_id text collate "C" not null,
        instance uuid not null,
        status text not null check (status in ('STOPPED', 'STARTING', 'RUNNING', 'STOPPING', 'FAILED')),
        status_reason text,
        next_attempt_at timestamptz,
        sessions integer not null,
        refused bigint not null,
        since timestamptz,
        standby boolean not null,
        reported_at timestamptz not null default now(),
        primary key (server_id, instance)
      )`);
  },
};
