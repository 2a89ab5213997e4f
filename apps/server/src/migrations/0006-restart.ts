import type { Migration } from '@pesit-node/service';

/**
 * Transfer contexts (pesit-e.md §5) live in the record of their transfer: one row for all its attempts, shared by all pods.
 *
 * `fence` is the token of the one who works on a record: it grows each time that another takes it, and every write of the
 * former one misses from then on. `instances` tells the living from the dead.
 */
export const restart: Migration = {
  name: '0006-restart',
  up: async (knex) => {
    await knex.raw(`
      alter table transfers
        add column fence integer not null default 1,
        add column restartable boolean not null default false,
        -- Names the staged file, in the receive directory of the first attempt.
        add column context uuid,
        add column directory text,
        -- PI 51.
        add column creation_date text,
        -- The delivery is under way: path, size and checksum say of what.
        add column delivering boolean not null default false,
        -- Totals at sync_point: where a sender that lost the last acknowledgement is sent to.
        add column point_bytes bigint not null default 0,
        add column point_articles bigint not null default 0,
        -- Version of a file that is read, and how each attempt placed its points.
        add column source_size bigint,
        add column source_mtime_ns numeric(20),
        add column pacings jsonb,
        add constraint transfers_restartable check (not restartable or status = 'FAILED');

      create index transfers_context_idx on transfers (transfer_id, partner_id)
        where restartable or status in ('IN_PROGRESS', 'COMPLETED');
      create index transfers_restartable_idx on transfers (end_time) where restartable;

      alter table virtual_files
        add column durability text check (durability in ('checkpoint', 'end', 'none'));

      create table instances (
        instance uuid primary key,
        node text not null,
        -- Where a process can be looked at, and by what.
        machine text not null,
        pid integer not null,
        started text not null,
        seen_at timestamptz not null default now()
      );`);
  },
};
