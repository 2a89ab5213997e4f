import type { Migration } from '@pesit-node/service';

/** Compression, CRC, resynchronisation, EBCDIC, pre-connection, messages; what was seen of a server; what a partner said of a file. */
export const facilities: Migration = {
  name: '0004-facilities',
  up: async (knex) => {
    await knex.raw(`
      alter table remote_servers
        add column compression text check (compression in ('none', 'horizontal', 'vertical', 'both')),
        add column crc boolean,
        add column resync boolean,
        add column ebcdic boolean,
        add column code_page text,
        add column preconnect_id text,
        add column preconnect_password text,
        -- Terms of the last session, and how the server writes single articles.
        add column negotiated jsonb,
        add column single_article text check (single_article in ('plain', 'prefixed'))`);
    await knex.raw(`
      alter table transfers
        add column type text not null default 'FILE' check (type in ('FILE', 'MESSAGE')),
        add column reply bytea,
        -- Of a RECEIVE, as the partner has them: PI 37, 99, 61, 62.
        add column label text,
        add column free_message bytea,
        add column original_sender text,
        add column final_receiver text`);
  },
};
