import type { Knex } from 'knex';

import type { TraceOwners } from './store.js';

/**
 * The tables that a migration of an app creates for its traces: the switch in the table of owners, sessions, and their text in parts.
 * It is part of published migrations: never edited.
 * @param type of the owners' key, e.g. `integer`
 */
export const createTraceTables = async (knex: Knex, { table, key, type }: TraceOwners & { type: string }) => {
  await knex.raw(
    `alter table ${table} add column trace_until timestamptz;

     create table session_traces (
       id uuid primary key,
       owner ${type} not null references ${table} (${key}) on delete cascade,
       node text not null,
       about jsonb not null,
       transfers jsonb not null default '[]',
       started_at timestamptz not null,
       last_at timestamptz not null,
       ended_at timestamptz,
       outcome text,
       lines integer not null default 0,
       bytes integer not null default 0
     );
     create index session_traces_owner_idx on session_traces (owner, started_at desc, id desc);
     create index session_traces_started_idx on session_traces (started_at desc, id desc);

     create table session_trace_parts (
       trace uuid not null references session_traces (id) on delete cascade,
       number integer not null,
       first_line integer not null,
       lines integer not null,
       content text not null,
       primary key (trace, number)
     )`,
  );
};
