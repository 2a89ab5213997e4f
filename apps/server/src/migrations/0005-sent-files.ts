import type { Migration } from '@pesit-node/service';

/**
 * Which files each partner has read: one that is still the same (path, size, time) is not offered again. Apart from the
 * history, so that a file does not go out twice when its record is old enough to be removed.
 */
export const sentFiles: Migration = {
  name: '0005-sent-files',
  up: async (knex) => {
    await knex.raw(`
      create table sent_files (
        partner_id text collate "C" not null,
        path text collate "C" not null,
        size bigint not null,
        mtime_ns numeric(20) not null,
        transfer integer not null,
        sent_at timestamptz not null default now(),
        primary key (partner_id, path)
      )`);
  },
};
