import type { Knex } from 'knex';

/** Columns that an app names in its table `transfers`, in SQL over the trigger's `new`. */
export interface HookedTransfers {
  /** Column of the partner, or of the remote server. */
  readonly peer: string;
  readonly virtualFile: string;
  /** A column that says of a FAILED one that its partner may restart it; undefined: FAILED is the end. */
  readonly restartable?: string;
  /** Columns that the record of a hook does not need: large ones. */
  readonly without: readonly string[];
}

/**
 * The tables of hooks and of their deliveries, and the triggers that order a delivery in the transaction of the outcome, whichever
 * statement writes that. They are made with the first hook that is enabled, and fire while one is: without hooks an outcome pays nothing. They are part of published migrations: never edited.
 */
export const createHookTables = async (knex: Knex, of: HookedTransfers): Promise<void> => {
  const { rows } = await knex.raw<{ rows: [{ schema: string }] }>('select quote_ident(current_schema()) as schema');
  // Named in the function: whoever changes a transfer by hand may have another search path.
  const { schema } = rows[0];
  const { restartable } = of;
  const status = `'transfer.' || lower(new.status)`;
  const event =
    restartable === undefined
      ? status
      : `case when new.status = 'FAILED' and new.${restartable} then 'transfer.interrupted' else ${status} end`;
  const ended = `new.status in ('COMPLETED', 'FAILED', 'CANCELLED')`;
  const endedNow =
    restartable === undefined
      ? 'old.status <> new.status'
      : `(old.status <> new.status or (old.${restartable} and not new.${restartable}))`;
  await knex.raw(`
    create table hooks (
      hook_id text collate "C" primary key,
      description text,
      enabled boolean not null,
      disabled_reason text,
      events text[],
      direction text,
      peers text[],
      virtual_files text[],
      -- A URL, or exec: and the name of a file.
      target text not null,
      -- Sealed.
      secret text,
      truststore_name text collate "C",
      created_at timestamptz not null default now(),
      updated_at timestamptz not null default now(),
      check (target like 'exec:%' or secret is not null)
    );

    create table hook_deliveries (
      -- webhook-id: the same over all attempts.
      id uuid primary key,
      position bigint not null generated always as identity,
      hook_id text collate "C" not null,
      event text not null,
      transfer text not null,
      -- The row of the transfer as it was then.
      record jsonb,
      state text not null default 'WAITING' check (state in ('WAITING', 'RUNNING', 'DELIVERED', 'GIVEN_UP')),
      created_at timestamptz not null default now(),
      -- Since when it is tried; \`hooks.give-up-after\` counts from here.
      tried_since timestamptz not null default now(),
      -- WAITING: when it is tried next. RUNNING: when another pod may take it over. Null: it is over.
      due_at timestamptz default now(),
      -- Grows with each time that it is taken: what an earlier holder still writes is recognised by its older number.
      attempts integer not null default 0,
      node text,
      started_at timestamptz,
      ended_at timestamptz,
      status_code integer,
      exit_code integer,
      error text,
      output text,
      check ((due_at is null) = (state in ('DELIVERED', 'GIVEN_UP'))),
      check ((due_at is null) = (ended_at is not null))
    );
    create index hook_deliveries_due_idx on hook_deliveries (hook_id, due_at) where due_at is not null;
    create index hook_deliveries_ended_idx on hook_deliveries (ended_at) where ended_at is not null;
    create index hook_deliveries_position_idx on hook_deliveries (position desc nulls last, id desc);
    create index hook_deliveries_transfer_idx on hook_deliveries (transfer);

    create function order_hooks() returns trigger language plpgsql as $$
    begin
      insert into ${schema}.hook_deliveries (id, hook_id, event, transfer, record)
      select gen_random_uuid(), h.hook_id, e.event, new.id::text, to_jsonb(new) - array[${of.without.map((name) => `'${name}'`).join(', ')}]
      from (select ${event} as event) e join ${schema}.hooks h on h.enabled
        and e.event = any (coalesce(h.events, '{transfer.completed,transfer.failed,transfer.cancelled}'))
        and coalesce(h.direction = new.direction, true)
        and coalesce(new.${of.peer} = any (h.peers), h.peers is null)
        and coalesce(new.${of.virtualFile} = any (h.virtual_files), h.virtual_files is null);
      return null;
    end $$;

    -- In the transaction that changes the hooks: waits for outcomes that are being written, and every later one sees its hook.
    create function watch_hooks() returns trigger language plpgsql as $$
    declare
      wanted boolean;
      fires boolean;
    begin
      -- The second of two who change hooks at once sees what the first one wrote.
      perform pg_advisory_xact_lock(hashtextextended('${schema}.hooks', 0));
      wanted := exists (select from ${schema}.hooks where enabled);
      fires := (select tgenabled <> 'D' from pg_trigger where tgrelid = '${schema}.transfers'::regclass and tgname = 'transfers_hooks_insert');
      if wanted and fires is null then
        create trigger transfers_hooks_insert after insert on ${schema}.transfers
          for each row when (${ended}) execute function ${schema}.order_hooks();
        create trigger transfers_hooks_update after update of status${restartable === undefined ? '' : `, ${restartable}`} on ${schema}.transfers
          for each row when (${ended} and ${endedNow}) execute function ${schema}.order_hooks();
      elsif wanted and not fires then
        alter table ${schema}.transfers enable trigger transfers_hooks_insert, enable trigger transfers_hooks_update;
      elsif fires and not wanted then
        alter table ${schema}.transfers disable trigger transfers_hooks_insert, disable trigger transfers_hooks_update;
      end if;
      return null;
    end $$;
    create trigger hooks_watch after insert or update of enabled or delete on hooks
      for each statement execute function watch_hooks()`);
};
