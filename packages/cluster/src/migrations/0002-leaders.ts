import type { Migration } from '@pesit-node/service';

/**
 * The newest epoch of each app in each cluster, and whose it is. `epoch` is in a unique key so that a statement that raises
 * it takes the row for itself, as a change of a key does: it waits for writes of the leader before (`for key share`), while
 * a renewal, which changes `until` alone, does not. `until` counts where there is no Redis.
 */
export const leaders: Migration = {
  name: '0002-leaders',
  up: async (knex) => {
    await knex.raw(`
      create table cluster_leaders (
        app text not null,
        cluster text not null,
        epoch bigint not null,
        instance uuid not null,
        until timestamptz not null,
        primary key (app, cluster),
        unique (app, cluster, epoch)
      )`);
  },
};
