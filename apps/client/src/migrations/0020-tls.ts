import type { Migration } from '@pesit-node/service';

/** TLS to a remote server: where, as whom, and whom to trust. */
export const tls: Migration = {
  name: '0020-tls',
  up: async (knex) => {
    await knex.raw(`
      alter table remote_servers
        add column tls_enabled boolean not null default false,
        add column tls_port integer check (tls_port between 1 and 65535),
        add column keystore_name text collate "C",
        add column truststore_name text collate "C",
        add column tls_server_name text,
        add column certificate_fingerprint text[]`);
  },
};
