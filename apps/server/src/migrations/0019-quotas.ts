import type { Migration } from '@pesit-node/service';

/**
 * How much of a partner may wait here to be fetched, and what does: files that were received while it had a quota, and are still
 * there as far as is known.
 */
export const quotas: Migration = {
  name: '0019-quotas',
  up: async (knex) => {
    await knex.raw(`
      alter table partners
        add column quota_bytes bigint check (quota_bytes > 0),
        add column quota_files integer check (quota_files > 0);

      -- Of a file that is received: what it will have at least (PI 42).
      alter table transfers add column announced bigint not null default 0;

      create table waiting_files (
        transfer bigint primary key,
        partner_id text collate "C" not null,
        -- The receive directory: when that is away nothing is known of its files.
        directory text not null,
        path text collate "C" not null,
        size bigint not null,
        looked_at timestamptz not null default now()
      );
      create index waiting_files_partner_idx on waiting_files (partner_id, looked_at);
      create index waiting_files_looked_idx on waiting_files (looked_at);
      create index waiting_files_path_idx on waiting_files using hash (path);`);
  },
};
