import type { Migration } from '@pesit-node/service';

/** Who may connect. Identifiers are compared exactly, and sorted the same whatever the locale of the database. */
export const partners: Migration = {
  name: '0001-partners',
  up: async (knex) => {
    await knex.raw(`
      create table partners (
        partner_id text collate "C" primary key check (length(partner_id) between 1 and 24),
        name text,
        description text,
        password_hash text not null,
        enabled boolean not null,
        access_type text not null check (access_type in ('READ', 'WRITE', 'BOTH')),
        max_connections integer check (max_connections > 0),
        last_connection timestamptz,
        transfer_count bigint not null default 0,
        created_at timestamptz not null default now(),
        updated_at timestamptz not null default now()
      )`);
  },
};
