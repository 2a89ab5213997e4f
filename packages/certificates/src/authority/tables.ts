import type { Knex } from 'knex';

/**
 * The local CA, those that it replaced, and every certificate that they issued. `managed` of an issued certificate is how its
 * keystore is renewed. It is part of published migrations: never edited.
 */
export const createAuthorityTables = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    create table authorities (
      id integer generated always as identity primary key,
      certificate text not null,
      private_key text not null,
      permitted_domains jsonb not null default '[]',
      crl_url text,
      ocsp_url text,
      crl bytea,
      crl_number integer not null default 0,
      crl_next_update timestamptz,
      created_at timestamptz not null default now(),
      replaced_at timestamptz
    );
    create unique index authorities_one on authorities ((true)) where replaced_at is null;

    create table issued_certificates (
      serial text primary key,
      authority integer not null references authorities (id),
      name text not null,
      kind text not null,
      certificate text not null,
      keystore text,
      request jsonb not null,
      not_before timestamptz not null,
      not_after timestamptz not null,
      revoked_at timestamptz,
      reason text,
      issued_at timestamptz not null default now()
    );
    create index issued_certificates_keystore_idx on issued_certificates (keystore, issued_at desc);
    create index issued_certificates_revoked_idx on issued_certificates (authority) where revoked_at is not null`);
};
