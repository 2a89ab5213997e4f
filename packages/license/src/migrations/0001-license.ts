import type { Migration } from '@pesit-node/service';

/**
 * The clock of the evaluation is kept twice, so that deleting one row loses nothing. A license is kept for ever: one that was
 * replaced by force has `replaced_at`. `license_events` is the audit, and holds the extensions of the evaluation.
 */
export const license: Migration = {
  name: '0001-license',
  up: async (knex) => {
    for (const table of ['license_evaluation', 'license_witness']) {
      await knex.raw(
        `create table ?? (
          id integer primary key check (id = 1),
          started_at timestamptz not null,
          counted timestamptz not null,
          highest timestamptz not null
        )`,
        [table],
      );
    }
    await knex.raw(`
      create table licenses (
        digest text primary key,
        license_id text not null,
        text text not null,
        source text not null check (source in ('API', 'FILE', 'CONTENT')),
        installed_at timestamptz not null,
        installed_by text not null,
        replaced_at timestamptz
      )`);
    await knex.raw(`
      create table license_events (
        id bigint generated always as identity primary key,
        at timestamptz not null,
        action text not null check (action in ('EVALUATION_STARTED', 'EVALUATION_EXTENDED', 'LICENSE_INSTALLED')),
        actor text not null,
        license_id text,
        forced boolean,
        days integer check (days > 0),
        counted timestamptz,
        constraint license_events_extension
          check (action <> 'EVALUATION_EXTENDED' or (days is not null and counted is not null))
      )`);
  },
};
