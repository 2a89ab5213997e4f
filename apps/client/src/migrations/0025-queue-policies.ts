import type { Migration } from '@pesit-node/service';

/** As in 0003-restart, and PENDING → FAILED: it was not begun before its `expires_at`. */
const TRANSITIONS = [
  'PENDING>IN_PROGRESS',
  'PENDING>CANCELLED',
  'PENDING>FAILED',
  'IN_PROGRESS>PENDING',
  'IN_PROGRESS>COMPLETED',
  'IN_PROGRESS>FAILED',
  'IN_PROGRESS>CANCELLED',
  'FAILED>PENDING',
];

/**
 * Priorities, the time by which a transfer must have begun, and order. The rows of one order (`order_key`, per remote server) are in
 * `transfers_ordered` from their insert until they no longer keep the next one waiting, which the trigger decides for every statement;
 * the indexes of the queue have all others, so that a transfer without an order makes as many entries as before.
 */
export const queuePolicies: Migration = {
  name: '0025-queue-policies',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers
        -- 0 urgent, 1 normal, 2 low.
        add column priority smallint not null default 1 check (priority between 0 and 2),
        add column expires_at timestamptz,
        add column order_key text,
        -- FAILED, it keeps the next one of its order waiting.
        add column order_holds boolean not null default true;
      drop index transfers_fresh;
      drop index transfers_delayed;
      create index transfers_fresh on transfers (server_id, priority, position)
        where status = 'PENDING' and next_attempt_at is null and order_key is null;
      create index transfers_delayed on transfers (server_id, priority, next_attempt_at)
        where status = 'PENDING' and next_attempt_at is not null and order_key is null;
      create index transfers_ordered on transfers (server_id, order_key, position) where order_key is not null;
      create index transfers_expiring on transfers (expires_at) where status = 'PENDING' and expires_at is not null;
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
        if new.status in ('COMPLETED', 'CANCELLED') or (new.status = 'FAILED' and not new.order_holds) then
          new.order_key := null;
        end if;
        return new;
      end $$`);
  },
};
