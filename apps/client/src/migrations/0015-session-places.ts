import type { Migration } from '@pesit-node/service';

/**
 * Sessions with a remote server that limits them, counted over all pods: one row each, a lease that its pod renews. A wish says
 * that a pod found no place: whoever has an idle session gives its place up. Both tables stay as small as the limits are.
 */
export const sessionPlaces: Migration = {
  name: '0015-session-places',
  up: async (knex) => {
    await knex.raw(`
      create table session_places (
        server_id integer not null references remote_servers (id) on delete cascade,
        -- 1 to maxConnections of the server: no two sessions have the same.
        place integer not null,
        session uuid not null unique,
        node text not null,
        instance uuid not null,
        until timestamptz not null,
        primary key (server_id, place)
      )`);
    await knex.raw(`
      create table session_wishes (
        server_id integer primary key references remote_servers (id) on delete cascade,
        until timestamptz not null
      )`);
  },
};
