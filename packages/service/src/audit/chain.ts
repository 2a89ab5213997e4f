import type { Knex } from 'knex';

import { hashOf } from './entry.js';
import type { AuditRecord, AuditRow } from './entry.js';

/** Where the chain is: the last entry that was pruned, and the last that there is. */
export interface ChainEnds {
  readonly pruned_id: number;
  readonly pruned_hash: string;
  readonly last_id: number;
  readonly last_hash: string;
}

/** Takes the chain until the end of the transaction: other pods wait. */
const LOCK = `insert into audit_chain default values
  on conflict (only_one) do update set only_one = true returning last_id, last_hash`;

/**
 * Appends entries to the chain of the app. Nobody else appends before the transaction ends: it is to be the last that the
 * transaction does.
 */
export const appendEntries = async (trx: Knex, records: readonly AuditRecord[]): Promise<void> => {
  if (records.length === 0) return;
  const { rows } = await trx.raw<{ rows: [Pick<ChainEnds, 'last_id' | 'last_hash'>] }>(LOCK);
  let { last_id: id, last_hash: hash } = rows[0];
  const entries = records.map((record): AuditRow => {
    const previous = hash;
    id += 1;
    hash = hashOf(id, record, previous);
    return { id, ...record, previous_hash: previous, hash };
  });
  await trx('audit_entries').insert(entries);
  await trx('audit_chain').update({ last_id: id, last_hash: hash });
};

/**
 * Removes the oldest entries beyond `keep`, at most `batch` of them, and remembers where the chain begins now. One statement, which
 * docs/security.md has for those who prune as another role.
 */
const PRUNE = `with old as (
    select id from audit_entries where id <= (select last_id - ? from audit_chain) order by id limit ?
  ), gone as (delete from audit_entries using old where audit_entries.id = old.id returning audit_entries.id, hash)
  , newest as (select id, hash from gone order by id desc limit 1)
  , moved as (update audit_chain set pruned_id = newest.id, pruned_hash = newest.hash from newest)
  select count(*)::int as gone from gone`;

/** @returns how many were removed */
export const pruneEntries = async (knex: Knex, keep: number, batch: number): Promise<number> => {
  const { rows } = await knex.raw<{ rows: [{ readonly gone: number }] }>(PRUNE, [keep, batch]);
  return rows[0].gone;
};
