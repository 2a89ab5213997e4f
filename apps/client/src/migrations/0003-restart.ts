import type { Migration } from '@pesit-node/service';

/**
 * Status changes that may happen (design §4, Client app). IN_PROGRESS → PENDING: given back, or another attempt will follow;
 * FAILED → PENDING: tried again on request.
 */
const TRANSITIONS = [
  'PENDING>IN_PROGRESS',
  'PENDING>CANCELLED',
  'IN_PROGRESS>PENDING',
  'IN_PROGRESS>COMPLETED',
  'IN_PROGRESS>FAILED',
  'IN_PROGRESS>CANCELLED',
  'FAILED>PENDING',
];

/** What is kept of a transfer between its attempts. One record for all of them. */
export const restart: Migration = {
  name: '0003-restart',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers
        -- The next attempt is a restart of this one (PI 15).
        add column restartable boolean not null default false,
        -- Attempts that count, since the transfer was asked for; and come-again-later answers in a row.
        add column failures integer not null default 0 check (failures >= 0),
        add column postponements integer not null default 0 check (postponements >= 0),
        add column next_attempt_at timestamptz,
        add column cancel_requested boolean not null default false,
        -- Grows with each lease: what an earlier holder still writes is recognised by its older number.
        add column fence integer not null default 0,
        -- Of a SEND: size and modification time of the source, and how the attempts placed their points.
        add column source_version jsonb,
        add column pacings jsonb,
        add column sync_point integer check (sync_point between 0 and 999999),
        add constraint transfers_wait check (next_attempt_at is null or status = 'PENDING'),
        add constraint transfers_restart check (not restartable or status not in ('COMPLETED', 'CANCELLED'))`);
    await knex.raw(`create index transfers_restartable on transfers (created_time) where restartable`);
    await knex.raw(`
      create or replace function check_transfer_status() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          raise exception 'a transfer begins as PENDING, not as %', new.status using errcode = 'check_violation';
        end if;
        if not (old.status || '>' || new.status) = any ('{${TRANSITIONS.join(',')}}') then
          raise exception 'a transfer cannot go from % to %', old.status, new.status using errcode = 'check_violation';
        end if;
        if new.status = 'IN_PROGRESS' and new.fence <= old.fence then
          raise exception 'a lease needs a fence above %', old.fence using errcode = 'check_violation';
        end if;
        return new;
      end $$`);
  },
};
