import type { Knex } from 'knex';

import type { ChainEnds } from './chain.js';
import { hashOf } from './entry.js';
import type { AuditRow } from './entry.js';

/** Entries that are read at a time. */
const BATCH = 1000;
/** Problems that are told; more are counted. */
const SHOWN = 100;

export interface AuditVerdict {
  /** Entries that were looked at. */
  readonly entries: number;
  /** Id of the first that is kept; null: none is. */
  readonly first: number | null;
  readonly last: Pick<ChainEnds, 'last_id' | 'last_hash'>;
  /** Sentences, each with the ids that it is about. */
  readonly problems: readonly string[];
  /** Problems beyond those. */
  readonly more: number;
}

/** An entry that somebody remembers. */
export interface KnownEntry {
  readonly id: number;
  readonly hash: string;
}

/**
 * Looks at every entry: whether its number follows the one before, whether it was made behind it, whether it is as it was written;
 * and whether the chain begins and ends where it is said to. Reads one snapshot, beside services that append.
 * @param known entries that have to be there as they are known, unless they were pruned
 */
export const verifyAudit = (knex: Knex, known: readonly KnownEntry[] = []): Promise<AuditVerdict> =>
  knex.transaction(
    async (trx) => {
      const problems: string[] = [];
      let more = 0;
      const say = (problem: string): void => {
        if (problems.length < SHOWN) problems.push(problem);
        else more += 1;
      };
      const ends = (await trx('audit_chain').first()) as ChainEnds | undefined;
      if (ends === undefined) throw new Error('audit_chain has no row: what the chain was is not known');
      let [id, hash] = [ends.pruned_id, ends.pruned_hash];
      let first: number | null = null;
      let entries = 0;
      for (;;) {
        const rows = (await trx('audit_entries').where('id', '>', id).orderBy('id').limit(BATCH)) as AuditRow[];
        for (const row of rows) {
          first ??= row.id;
          entries += 1;
          if (row.id !== id + 1) say(gap(id + 1, row.id - 1));
          else if (row.previous_hash !== hash) say(`entry ${row.id} does not follow entry ${id} as it is now`);
          if (hashOf(row.id, row, row.previous_hash) !== row.hash) say(`entry ${row.id} was changed`);
          [id, hash] = [row.id, row.hash];
        }
        if (rows.length < BATCH) break;
      }
      if (id < ends.last_id) say(gap(id + 1, ends.last_id));
      else if (id > ends.last_id) say(`entries after ${ends.last_id} were not appended by a service`);
      else if (hash !== ends.last_hash) say(`entry ${id}, the last, is not the one that was appended`);
      const older = (await trx('audit_entries').where('id', '<=', ends.pruned_id).count({ total: '*' })) as [
        { readonly total: number },
      ];
      if (older[0].total > 0) say(`${older[0].total} entries up to ${ends.pruned_id} are there, which were pruned`);
      for (const { id: wanted, hash: expected } of known) {
        if (wanted < ends.pruned_id) continue;
        const row = (await trx('audit_entries').where({ id: wanted }).first()) as AuditRow | undefined;
        const found = row?.hash ?? (wanted === ends.pruned_id ? ends.pruned_hash : undefined);
        if (found !== expected) say(`entry ${wanted} is not the one that was known`);
      }
      const { last_id, last_hash } = ends;
      return { entries, first, last: { last_id, last_hash }, problems, more };
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  );

const gap = (from: number, to: number): string =>
  from === to ? `entry ${from} is missing` : `entries ${from} to ${to} are missing`;
