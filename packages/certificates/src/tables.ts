import type { Knex } from 'knex';

/**
 * The tables that a migration of an app creates for its stores. `version` is another one after each change, so that a pod sees with one
 * look which of its copies are old. It is part of published migrations: never edited.
 */
export const createStoreTables = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    create sequence store_versions;

    create table keystores (
      name text collate "C" primary key,
      certificate text not null,
      private_key text not null,
      managed boolean not null default false,
      version bigint not null default nextval('store_versions'),
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    );

    create table truststores (
      name text collate "C" primary key,
      certificates text not null,
      crls text,
      crl_urls jsonb not null default '[]',
      version bigint not null default nextval('store_versions'),
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now()
    )`);
};

/** Remembers what the log has said of stores that expire: once each, whichever pod says it. It is part of published migrations: never edited. */
export const createExpiryTables = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    create table expiry_warnings (
      kind text not null,
      name text not null,
      expires_at timestamptz not null,
      threshold integer not null,
      at timestamptz not null default now(),
      primary key (kind, name, expires_at, threshold)
    )`);
};

/** CRLs that were fetched from the URLs of truststores. It is part of published migrations: never edited. */
export const createFetchedCrlTables = async (knex: Knex): Promise<void> => {
  await knex.raw(`
    alter table truststores drop column crl_urls;
    alter table truststores add column crl_urls text[] not null default '{}';

    create table fetched_crls (
      truststore text collate "C" not null references truststores (name) on delete cascade,
      url text not null,
      crl bytea,
      fetched_at timestamptz,
      this_update timestamptz,
      next_update timestamptz,
      number text,
      entries integer,
      bytes integer,
      etag text,
      last_modified text,
      failures integer not null default 0,
      error text,
      next_try timestamptz not null,
      primary key (truststore, url)
    )`);
};
