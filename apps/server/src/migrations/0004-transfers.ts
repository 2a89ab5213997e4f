import type { Migration } from '@pesit-node/service';

/**
 * The inbound history. No foreign keys: a record outlives the partner and the virtual file that it names.
 * Statuses move only as the trigger says. A final status is final, with one exception: a record whose commit could not be
 * confirmed to the partner is withdrawn (`withdrawn`), because the partner was told that the transfer failed.
 */
export const transfers: Migration = {
  name: '0004-transfers',
  up: async (knex) => {
    await knex.raw(`
      create table transfers (
        id integer generated always as identity primary key,
        type text not null default 'FILE' check (type in ('FILE', 'MESSAGE')),
        partner_id text collate "C" not null,
        direction text not null check (direction in ('SEND', 'RECEIVE')),
        virtual_file_id text collate "C",
        filename text,
        path text collate "C",
        size bigint check (size >= 0),
        status text not null check (status in ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED')),
        start_time timestamptz not null default now(),
        end_time timestamptz,
        transfer_id integer check (transfer_id between 0 and 16777215),
        listener text collate "C" not null,
        node text not null,
        instance uuid not null,
        session_id text not null,
        remote_address text not null,
        bytes_transferred bigint not null default 0,
        articles bigint not null default 0,
        sync_point integer not null default 0,
        attempts integer not null default 1 check (attempts > 0),
        checksum text,
        diagnostic text,
        error_message text,
        label text,
        free_message bytea,
        original_sender text,
        final_receiver text,
        withdrawn boolean not null default false,
        constraint transfers_end check ((end_time is null) = (status in ('PENDING', 'IN_PROGRESS'))),
        constraint transfers_reason check (status <> 'FAILED' or diagnostic is not null)
      )`);
    for (const columns of ['partner_id', 'direction', 'status', 'virtual_file_id', 'listener']) {
      await knex.raw('create index ?? on transfers (??, start_time desc, id desc)', [
        `transfers_${columns}_idx`,
        columns,
      ]);
    }
    await knex.raw(`
      create index transfers_start_time_idx on transfers (start_time desc, id desc);
      create index transfers_running_idx on transfers (instance) where status in ('PENDING', 'IN_PROGRESS');

      create function check_transfer_status() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          if new.status in ('COMPLETED', 'CANCELLED') then
            raise exception 'a transfer cannot begin as %', new.status using errcode = 'check_violation';
          end if;
        elsif new.status <> old.status
          and (old.status || '>' || new.status) not in (
            'PENDING>IN_PROGRESS', 'PENDING>FAILED', 'PENDING>CANCELLED',
            'IN_PROGRESS>COMPLETED', 'IN_PROGRESS>FAILED', 'IN_PROGRESS>CANCELLED',
            'FAILED>IN_PROGRESS')
          and not (old.status = 'COMPLETED' and new.status = 'FAILED' and new.withdrawn) then
            raise exception 'transfer % cannot go from % to %', old.id, old.status, new.status
              using errcode = 'check_violation';
        end if;
        return new;
      end $$;

      create trigger transfers_status before insert or update of status on transfers
        for each row execute function check_transfer_status();`);
    // PI 13 of a read is given by the server: 1..16,777,215 (pesit-e.md §5).
    await knex.raw('create sequence transfer_ids minvalue 1 maxvalue 16777215 cycle');
  },
};
