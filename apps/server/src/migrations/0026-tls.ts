import type { Migration } from '@pesit-node/service';

/** TLS of a listener: a port of its own beside the plain one, or alone; and what binds a partner to its certificates. */
export const tls: Migration = {
  name: '0026-tls',
  up: async (knex) => {
    await knex.raw(`
      alter table listeners
        alter column port drop not null,
        add column tls_port integer check (tls_port between 1 and 65535),
        add column ssl_enabled boolean not null default false,
        add column ssl_client_auth text not null default 'NONE' check (ssl_client_auth in ('NONE', 'WANT', 'NEED')),
        add column keystore_name text collate "C",
        add column truststore_name text collate "C",
        add constraint listeners_a_port check (port is not null or ssl_enabled);

      alter table partners
        add column tls_required boolean not null default false,
        add column certificate_fingerprint text[],
        add column certificate_subject text[],
        add column certificate_san text[]`);
  },
};
