import type { Migration } from '@pesit-node/service';

/** Logical PeSIT servers as configured; whether one runs is a matter of the process. Null: the configuration's default. */
export const listeners: Migration = {
  name: '0003-listeners',
  up: async (knex) => {
    await knex.raw(`
      create table listeners (
        server_id text collate "C" primary key check (length(server_id) between 1 and 24),
        port integer not null check (port between 1 and 65535),
        auto_start boolean not null,
        max_connections integer not null check (max_connections > 0),
        read_timeout integer not null check (read_timeout > 0),
        receive_directory text,
        send_directory text,
        strict_server_id boolean not null,
        tcpip_header text not null check (tcpip_header in ('auto', 'length-prefixed', 'raw')),
        max_entity_size integer check (max_entity_size between 256 and 65535),
        sync_interval integer check (sync_interval between 0 and 65535),
        sync_window integer check (sync_window between 0 and 255),
        total_transfers bigint not null default 0,
        created_at timestamptz not null default now(),
        updated_at timestamptz not null default now()
      )`);
  },
};
