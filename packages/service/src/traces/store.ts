import type { Knex } from 'knex';

import { fetchPage } from '../http/paging.js';
import type { Page, Paging } from '../http/paging.js';
import { TRACE_LIMITS } from './limits.js';
import { asTime } from './recording.js';
import type { RecordingChange, TraceOwner } from './recording.js';

/** The table of an app whose rows can be traced: it has a column `trace_until`. */
export interface TraceOwners {
  readonly table: string;
  readonly key: string;
}

/** A row of `session_traces`. */
export interface TraceRow {
  readonly id: string;
  readonly owner: TraceOwner;
  readonly node: string;
  readonly about: Readonly<Record<string, string>>;
  readonly transfers: readonly string[];
  readonly started_at: Date;
  readonly last_at: Date;
  readonly ended_at: Date | null;
  readonly outcome: string | null;
  readonly lines: number;
  readonly bytes: number;
}

/** A piece of a session's text, and how many of its lines were before it. */
export interface TracePiece {
  readonly firstLine: number;
  readonly lines: number;
  readonly text: string;
}

/** Traces in the database of an app: the switch beside the owner, sessions, and their text in parts. */
export class TraceStore {
  readonly #knex: Knex;
  readonly #owners: TraceOwners;

  constructor(knex: Knex, owners: TraceOwners) {
    this.#knex = knex;
    this.#owners = owners;
  }

  /** @returns until when sessions are recorded, perhaps in the past; null: never or switched off; undefined: no such owner */
  async until(owner: TraceOwner): Promise<Date | null | undefined> {
    const { table, key } = this.#owners;
    const row = await this.#knex(table)
      .where(key, owner)
      .first<{ trace_until: Date | null } | undefined>('trace_until');
    return row?.trace_until;
  }

  /** @param minutes from now on; 0 = off. @returns as `until` */
  async switch(owner: TraceOwner, minutes: number): Promise<Date | null | undefined> {
    const { table, key } = this.#owners;
    const { rows } = await this.#knex.raw<{ rows: { trace_until: Date | null }[] }>(
      `update ?? set trace_until = case when ?::integer > 0 then now() + make_interval(mins => ?::integer) end
       where ?? = ? returning trace_until`,
      [table, minutes, minutes, key, owner],
    );
    return rows[0]?.trace_until;
  }

  /** The sessions of an owner. */
  async page<T>(owner: TraceOwner, paging: Paging, map: (row: TraceRow) => T): Promise<Page<T>> {
    return fetchPage<TraceRow, T>(this.#knex('session_traces').where({ owner }), paging, { tieBreak: 'id', map });
  }

  async find(owner: TraceOwner, id: string): Promise<TraceRow | undefined> {
    return this.#knex<TraceRow>('session_traces').where({ owner, id }).first();
  }

  /** Those of an owner, oldest first. */
  async sessions(owner: TraceOwner): Promise<readonly TraceRow[]> {
    return this.#knex<TraceRow>('session_traces').where({ owner }).orderBy('started_at').orderBy('id');
  }

  async text(id: string): Promise<readonly TracePiece[]> {
    return this.#knex('session_trace_parts')
      .where({ trace: id })
      .orderBy('number')
      .select<TracePiece[]>('first_line as firstLine', 'lines', 'content as text');
  }

  async remove(owner: TraceOwner, id: string): Promise<boolean> {
    return (await this.#knex('session_traces').where({ owner, id }).delete()) > 0;
  }

  /** @param knex in whose transaction. Default: none */
  async removeOlder(days: number, knex = this.#knex): Promise<number> {
    return knex('session_traces').whereRaw('started_at < now() - make_interval(days => ?)', [days]).delete();
  }

  /**
   * Writes changes, and removes what is more than the bounds allow.
   * @param node name of this process
   * @returns until when each session is still recorded; those of an owner that is switched off or gone, and
   *   those that were removed, are not in it
   */
  async write(changes: readonly RecordingChange[], node: string): Promise<ReadonlyMap<string, Date>> {
    return this.#knex.transaction(async (trx) => {
      const until = await this.#switchedOn(trx, changes);
      await insertSessions(
        trx,
        changes.filter(({ isNew, start }) => isNew && until.has(start.owner)),
        node,
      );
      const there = await updateSessions(trx, changes);
      const written = changes.filter(({ start }) => there.has(start.id));
      await writeParts(trx, written);
      await bound(trx, [...until.keys()]);
      return new Map(
        written.flatMap(({ start: { id, owner } }) => {
          const limit = until.get(owner);
          return limit === undefined ? [] : [[id, limit]];
        }),
      );
    });
  }

  async #switchedOn(trx: Knex, changes: readonly RecordingChange[]): Promise<ReadonlyMap<TraceOwner, Date>> {
    const { table, key } = this.#owners;
    const owners = [...new Set(changes.map(({ start }) => start.owner))];
    const rows = await trx(table)
      .whereIn(key, owners)
      .whereNotNull('trace_until')
      .forKeyShare()
      .select<{ owner: TraceOwner; trace_until: Date }[]>(`${key} as owner`, 'trace_until');
    return new Map(rows.map(({ owner, trace_until: limit }) => [owner, limit]));
  }
}

const insertSessions = async (trx: Knex, changes: readonly RecordingChange[], node: string): Promise<void> => {
  if (changes.length === 0) return;
  const rows = changes.map(({ start: { id, owner, about, startedAt }, lastAt }) => ({
    ...{ id, owner, node, about: JSON.stringify(about) },
    ...{ started_at: asTime(startedAt), last_at: asTime(lastAt) },
  }));
  await trx('session_traces').insert(rows).onConflict('id').ignore();
};

/** @returns the sessions that are there */
const updateSessions = async (trx: Knex, changes: readonly RecordingChange[]): Promise<ReadonlySet<string>> => {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `update session_traces t
     set lines = v.lines, bytes = v.bytes, last_at = v.last_at, ended_at = v.ended_at, outcome = v.outcome,
         transfers = v.transfers
     from jsonb_to_recordset(?::jsonb) as v
       (id uuid, lines bigint, bytes bigint, last_at timestamptz, ended_at timestamptz, outcome text, transfers jsonb)
     where t.id = v.id returning t.id`,
    [
      JSON.stringify(
        changes.map(({ start: { id }, lines, bytes, lastAt, endedAt, outcome, transfers }) => ({
          ...{ id, lines, bytes, transfers, last_at: asTime(lastAt), outcome: outcome ?? null },
          ended_at: endedAt === undefined ? null : asTime(endedAt),
        })),
      ),
    ],
  );
  return new Set(rows.map(({ id }) => id));
};

const writeParts = async (trx: Knex, changes: readonly RecordingChange[]): Promise<void> => {
  const parts = changes.flatMap(({ start, parts: changed }) =>
    changed.map(({ number, firstLine, lines, text }) => ({
      ...{ trace: start.id, number, first_line: firstLine, lines, content: text },
    })),
  );
  for (let at = 0; at < parts.length; at += PARTS_AT_ONCE) {
    const rows = parts.slice(at, at + PARTS_AT_ONCE);
    await trx('session_trace_parts').insert(rows).onConflict(['trace', 'number']).merge(['lines', 'content']);
  }
  const dropped = changes.filter((change) => change.dropped.length > 0);
  for (const { start, dropped: numbers } of dropped)
    await trx('session_trace_parts').where('trace', start.id).whereIn('number', numbers).delete();
};

/** Statements of some megabytes at most. */
const PARTS_AT_ONCE = 50;

/** Removes the oldest sessions of these owners, and of all, that are too many or too large together. */
const bound = async (trx: Knex, owners: readonly TraceOwner[]): Promise<void> => {
  await trx.raw(
    `delete from session_traces where id in (
       select id from (
         select id, row_number() over newest as n, sum(bytes) over newest as total from session_traces
         where owner = any(?) window newest as (partition by owner order by started_at desc, id desc)
       ) counted where n > ? or (total > ? and n > 1))`,
    [[...owners] as string[], TRACE_LIMITS.sessionsOfOwner, TRACE_LIMITS.bytesOfOwner],
  );
  await trx.raw(
    `delete from session_traces where id in (
       select id from (
         select id, sum(bytes) over (order by started_at desc, id desc) as total from session_traces
       ) counted where total > ?)`,
    [TRACE_LIMITS.bytes],
  );
};
