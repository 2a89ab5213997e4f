import type { Migration } from '@pesit-node/service';

/** What partners may write and read. Null in a column means that the administrator left it to the default. */
export const virtualFiles: Migration = {
  name: '0002-virtual-files',
  up: async (knex) => {
    await knex.raw(`
      create table virtual_files (
        file_id text collate "C" primary key check (length(file_id) between 1 and 76),
        name text,
        description text,
        direction text not null check (direction in ('RECEIVE', 'SEND', 'BOTH')),
        enabled boolean not null,
        receive_directory text,
        send_directory text,
        filename_pattern text,
        receive_filename_pattern text,
        overwrite boolean not null,
        record_length integer check (record_length between 1 and 65535),
        record_format integer check (record_format in (0, 128)),
        text boolean not null,
        created_at timestamptz not null default now(),
        updated_at timestamptz not null default now()
      )`);
  },
};
