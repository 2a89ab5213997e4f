import type { Migration } from '@pesit-node/service';

/** What partners may ask for beside plain files: compression, EBCDIC, messages, pre-connections; and what was seen of them. */
export const facilities: Migration = {
  name: '0007-facilities',
  up: async (knex) => {
    await knex.raw(`
      alter table virtual_files
        add column compression text not null default 'none'
          check (compression in ('none', 'horizontal', 'vertical', 'both')),
        add column ebcdic boolean not null default false,
        add column code_page text;

      alter table partners
        add column preconnect_id text collate "C" check (length(preconnect_id) between 1 and 8),
        add column preconnect_password_hash text,
        -- What its last sessions have shown of it.
        add column seen jsonb not null default '{}';
      create index partners_preconnect_idx on partners (preconnect_id) where preconnect_id is not null;

      alter table transfers
        -- PI 11: 0 for a file; of a message what it is.
        add column file_type integer not null default 0,
        add column compression text,
        -- PI 91, and PI 16 of it.
        add column message bytea,
        add column data_code integer;
      create index transfers_messages_idx on transfers (start_time desc, id desc) where type = 'MESSAGE';

      create or replace function check_transfer_status() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          -- A message is complete when it is here.
          if new.status = 'CANCELLED' or (new.status = 'COMPLETED' and new.type <> 'MESSAGE') then
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
      end $$;`);
  },
};
