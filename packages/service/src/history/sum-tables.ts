import type { Knex } from 'knex';

/**
 * A step of the migrations of both apps, never to be edited: the tables of `HistorySums`, in the schema that is first in the search path.
 *
 * `transfer_sum_spans` has the hours, days and weeks that were added up, `transfer_sums` what they came to (`durations` as `durations.ts`
 * has them), and `transfer_sum_marks` when the records began that changed since.
 *
 * The triggers mark a record from an hour after the end of its own hour on: a transfer of this hour or the last passes their conditions
 * alone, and writes nothing. Counting in the statements that begin and end a transfer would make all transfers of a partner wait for one row,
 * and each of them write a row for each kind of sum. A mark is a row of its own: nobody waits for another's.
 *
 * @param time the timestamptz column of `transfers` that its records are listed by; it never changes
 */
export const createSumTables = async (knex: Knex, time: string): Promise<void> => {
  const settled = `date_bin('1 hour', now() - interval '1 hour', timestamptz 'epoch')`;
  const isEnded = (row: 'old' | 'new'): string => `${row}.status in ('COMPLETED', 'FAILED', 'CANCELLED')`;
  await knex.raw(`
    create table transfer_sum_spans (
      hours smallint not null,
      since timestamptz not null,
      made_at timestamptz not null default now(),
      primary key (hours, since)
    );
    create table transfer_sums (
      hours smallint not null,
      since timestamptz not null,
      dimension text not null,
      value text collate "C",
      direction text not null,
      status text not null,
      diagnostic text collate "C",
      transfers bigint not null,
      bytes bigint not null,
      millis bigint not null,
      durations numeric
    );
    create index transfer_sums_idx on transfer_sums (hours, since, dimension, value);
    create table transfer_sum_marks (since timestamptz not null);
    create index transfer_sum_marks_idx on transfer_sum_marks (since);

    create function mark_transfer_hour() returns trigger language plpgsql set search_path from current as $$
    begin
      insert into transfer_sum_marks (since) values (date_bin('1 hour', new.${time}, timestamptz 'epoch'));
      return null;
    end $$;
    create function mark_hours_of_removed_transfers() returns trigger language plpgsql set search_path from current as $$
    begin
      insert into transfer_sum_marks (since)
        select distinct date_bin('1 hour', ${time}, timestamptz 'epoch') from gone where ${time} < ${settled};
      return null;
    end $$;

    create trigger transfers_sum_inserted after insert on transfers for each row
      when (new.${time} < ${settled} and ${isEnded('new')})
      execute function mark_transfer_hour();
    create trigger transfers_sum_updated after update on transfers for each row
      when (new.${time} < ${settled} and (${isEnded('old')} or ${isEnded('new')}))
      execute function mark_transfer_hour();
    create trigger transfers_sum_removed after delete on transfers referencing old table as gone for each statement
      execute function mark_hours_of_removed_transfers();`);
};
