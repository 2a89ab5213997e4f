import type { Migration } from '@pesit-node/service';

/** Status changes that may happen (design §4, Client app). IN_PROGRESS → PENDING: given back before the partner knew of it. */
const TRANSITIONS = [
  'PENDING>IN_PROGRESS',
  'PENDING>CANCELLED',
  'IN_PROGRESS>PENDING',
  'IN_PROGRESS>COMPLETED',
  'IN_PROGRESS>FAILED',
  'IN_PROGRESS>CANCELLED',
  'FAILED>IN_PROGRESS',
];

export const transfers: Migration = {
  name: '0002-transfers',
  up: async (knex) => {
    // PI 13 of what this node writes: one sequence for all partners, so that it is unique for each (pesit-e.md §5).
    await knex.raw('create sequence pesit_transfer_id as integer minvalue 1 maxvalue 16777215 cycle');
    await knex.raw(`
      create table transfers (
        id uuid primary key,
        position bigint not null generated always as identity,
        status text not null check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED')),
        direction text not null check (direction in ('SEND', 'RECEIVE')),
        server_id integer references remote_servers on delete set null,
        server_name text not null,
        partner_id text not null,
        filename text not null,
        remote_filename text,
        virtual_file text,
        source_path text,
        settings jsonb not null,
        created_time timestamptz not null default now(),
        start_time timestamptz,
        end_time timestamptz,
        size bigint,
        bytes_transferred bigint not null default 0,
        articles bigint not null default 0,
        checksum text,
        local_path text,
        diagnostic text,
        error_code text,
        error_message text,
        pesit_transfer_id integer check (pesit_transfer_id between 0 and 16777215),
        attempts integer not null default 0,
        node text,
        lease_until timestamptz,
        constraint transfers_of_a_server check (server_id is not null or status not in ('PENDING', 'IN_PROGRESS')),
        check ((status in ('PENDING', 'IN_PROGRESS')) = (end_time is null)),
        check (status <> 'IN_PROGRESS' or (node is not null and lease_until is not null)),
        check (status <> 'FAILED' or error_code is not null)
      )`);
    await knex.raw(`create index transfers_pending on transfers (position) where status = 'PENDING'`);
    await knex.raw(`create index transfers_running on transfers (server_id) where status = 'IN_PROGRESS'`);
    await knex.raw('create index transfers_created on transfers (created_time desc, id)');
    await knex.raw('create index transfers_server on transfers (server_id)');
    await knex.raw(`
      create function check_transfer_status() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          raise exception 'a transfer begins as PENDING, not as %', new.status using errcode = 'check_violation';
        end if;
        if not (old.status || '>' || new.status) = any ('{${TRANSITIONS.join(',')}}') then
          raise exception 'a transfer cannot go from % to %', old.status, new.status using errcode = 'check_violation';
        end if;
        return new;
      end $$`);
    await knex.raw(`
      create trigger transfers_begin before insert on transfers
      for each row when (new.status <> 'PENDING') execute function check_transfer_status()`);
    await knex.raw(`
      create trigger transfers_status before update of status on transfers
      for each row when (old.status <> new.status) execute function check_transfer_status()`);
  },
};
