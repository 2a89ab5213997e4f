import type { Knex } from 'knex';

import { GENESIS } from './entry.js';

/**
 * The tables that a migration of an app creates for its audit: the entries, and one row that says where the chain begins (behind what
 * was pruned) and ends. They are part of published migrations: never edited.
 */
export const createAuditTables = async (knex: Knex): Promise<void> => {
  await knex.raw(
    `create table audit_entries (
       id bigint primary key,
       time timestamptz(3) not null,
       actor text not null,
       address text,
       action text not null,
       object_type text not null,
       object text,
       node text not null,
       details text,
       previous_hash text not null,
       hash text not null
     );
     create index audit_entries_time_idx on audit_entries (time desc, id desc);
     create index audit_entries_actor_idx on audit_entries (actor, time desc, id desc);
     create index audit_entries_object_idx on audit_entries (object_type, object, time desc, id desc);

     create table audit_chain (
       only_one boolean primary key default true check (only_one),
       pruned_id bigint not null default 0,
       pruned_hash text not null default '${GENESIS}',
       last_id bigint not null default 0,
       last_hash text not null default '${GENESIS}'
     );
     insert into audit_chain default values;`,
  );
};
