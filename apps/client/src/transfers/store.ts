import { Batches, History, HistoryStatistics } from '@pesit-node/service';
import type { HistoryPage, Statistics } from '@pesit-node/service';
import { DIRECTIONS, TRANSFER_STATUSES } from '@pesit-node/transfers';
import type { TransferStatus } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { HISTORY, SUMMED } from './history.js';
import { insert } from './insert-statement.js';
import type { Incoming } from './insert-statement.js';
import { leaseStore } from './lease-store.js';
import { contentStore } from './content-store.js';
import { BEHIND, columnsOf, DUE, PAGE_COLUMNS, QUEUED, SERVER_ENABLED, SHARE_QUEUE } from './row.js';
import type { NewTransfer, TransferDetailRow, TransferRow } from './row.js';
import type { HistoryFilter, HistoryQuery, StatisticsQuery } from './schema.js';

/** A transfer that was asked for with a key. */
export interface KeyedRow extends TransferRow {
  readonly request_hash: string | null;
}

const CANCEL = `
  update transfers set cancel_requested = true,
    status = case status when 'PENDING' then 'CANCELLED' else status end,
    end_time = case status when 'PENDING' then now() end,
    restartable = restartable and status <> 'PENDING',
    next_attempt_at = null, diagnostic = '2-216', error_code = null, error_message = :message, diagnostic_complement = null
  where id = :id and status in ('PENDING', 'IN_PROGRESS')
  returning ${columnsOf('transfers')}`;

const AGAIN = `
  update transfers set status = 'PENDING', end_time = null, next_attempt_at = null, failures = 0, postponements = 0,
    cancel_requested = false, expires_at = case when expires_at > now() then expires_at end
  where id = :id and (status = 'FAILED' or status = 'PENDING') and server_id is not null and content is distinct from 'REMOVED'
  returning ${columnsOf('transfers')}`;

const RELEASE = `
  update transfers set order_key = null where id = :id and status = 'FAILED' and order_key is not null
  returning ${columnsOf('transfers')}`;

/**
 * Inserts what comes at the same time. Where a key came before, its request took the room of another one: whoever was left out tries
 * alone then.
 */
const insertTogether =
  (knex: Knex) =>
  async (incoming: readonly Incoming[]): Promise<readonly (TransferRow | 'alone' | undefined)[]> => {
    const rows = await insert(incoming, 'together', knex);
    const isDoubtful = incoming.some(({ transfer }, i) => transfer.idempotency !== undefined && rows[i] === undefined);
    return isDoubtful ? rows.map((row) => row ?? 'alone') : rows;
  };

/** In their order, too: the next one sees whether there is room left. */
const insertAlone = (knex: Knex) => {
  let last: Promise<unknown> = Promise.resolve();
  return (one: Incoming): Promise<TransferRow | undefined> => {
    const made = last.then(async () => (await insert([one], 'alone', knex))[0]);
    last = made.catch(() => undefined);
    return made;
  };
};

/** The requests for transfers, and the history. One statement each; the statuses are guarded by triggers. */
const requestStore = (
  knex: Knex,
  underWay?: () => number,
  history = new History(knex, HISTORY),
  inserted = new Batches({ run: insertTogether(knex), underWay }),
  alone = insertAlone(knex),
) => ({
  /**
   * @param room how many may be queued before this one, of its server alone while the circuit of that is open
   * @returns undefined when the server is not there or disabled, or there is no room
   * @throws a unique violation (`transfers_idempotency_key`) when a request with this key was queued before
   */
  insert: async (transfer: NewTransfer, room: number): Promise<TransferRow | undefined> => {
    const one = { transfer, room };
    const answer = await inserted.add(one);
    return answer === 'alone' ? alone(one) : answer;
  },

  /**
   * How many take a place in the queue, and how many of them wait for their next attempt.
   * @param alone the server whose circuit is open; undefined: the queue of all others
   */
  countQueued: async (alone: number | undefined): Promise<{ readonly total: number; readonly delayed: number }> => {
    const { rows } = await knex.raw<{ rows: [{ readonly total: number; readonly delayed: number }] }>(
      `select count(*)::integer as total, (count(*) filter (where not (${DUE})))::integer as delayed
       from transfers where ${QUEUED} and case when cast(:alone as integer) is null
         then server_id in (select id from remote_servers where ${SHARE_QUEUE}) else server_id = :alone end`,
      { alone: alone ?? null },
    );
    return rows[0];
  },

  find: (id: string): Promise<TransferDetailRow | undefined> =>
    knex('transfers')
      .where({ id })
      .first<TransferDetailRow | undefined>('*', knex.raw(SERVER_ENABLED), knex.raw(BEHIND)),

  /** As a page has them; those that are not there are left out. */
  some: (ids: readonly string[]): Promise<readonly TransferRow[]> =>
    knex('transfers')
      .whereRaw('id = any (cast(? as uuid[]))', [[...ids]])
      .orderBy(['created_time', 'id'])
      .select<readonly TransferRow[]>(knex.raw(PAGE_COLUMNS), knex.raw(SERVER_ENABLED)),

  /** Statuses of those ids that are known. */
  statusesOf: async (ids: readonly string[]): Promise<ReadonlyMap<string, TransferStatus>> => {
    const rows: readonly Pick<TransferRow, 'id' | 'status'>[] = await knex('transfers')
      // One value, however many there are: a statement takes 65,535.
      .whereRaw('id = any (cast(? as uuid[]))', [[...ids]])
      .select('id', 'status');
    return new Map(rows.map(({ id, status }) => [id, status]));
  },

  /**
   * Records that the data a restart of a FAILED transfer needs are about to be removed: a retry begins anew from now on.
   * @returns false when the transfer may still run: its data stay
   */
  notRestartable: async (id: string): Promise<boolean> => {
    await knex('transfers').where({ id, status: 'FAILED', direction: 'RECEIVE' }).update({ restartable: false });
    const running = knex('transfers').where({ id }).whereIn('status', ['PENDING', 'IN_PROGRESS']);
    return (await running.first<object | undefined>('id')) === undefined;
  },

  /** The transfer of an earlier request with this key. @returns its record, and the hash of what it asked for */
  findByKey: async (key: string): Promise<KeyedRow | undefined> =>
    (await knex('transfers').where({ idempotency_key: key }).first()) as KeyedRow | undefined,

  /** @throws ApiError 400 as `History.page` */
  page: async <T>(query: HistoryQuery, map: (row: TransferRow) => T): Promise<HistoryPage<T>> =>
    history.page(query, query, { columns: [knex.raw(PAGE_COLUMNS), knex.raw(SERVER_ENABLED), knex.raw(BEHIND)], map }),

  /** All that the filter leaves, newest first; see `History.batches`. */
  batches: <T>(filter: HistoryFilter, map: (row: TransferRow) => T): AsyncGenerator<readonly T[]> =>
    history.batches(filter, { columns: [knex.raw(PAGE_COLUMNS), knex.raw(SERVER_ENABLED), knex.raw(BEHIND)], map }),

  /** @throws ApiError 400 as `HistoryStatistics.totals` */
  statistics: ({ groupBy, ...filter }: StatisticsQuery): Promise<Statistics> =>
    new HistoryStatistics(knex, SUMMED).totals(filter, groupBy, TRANSFER_STATUSES, DIRECTIONS),

  /**
   * Ends what waits; of what runs the process that runs it is told, when it renews its lease.
   * @returns undefined when the transfer has ended
   */
  cancel: async (id: string, message: string): Promise<TransferRow | undefined> =>
    (await knex.raw<{ rows: TransferRow[] }>(CANCEL, { id, message })).rows[0],

  /** Lets those go that wait for a FAILED one of their order. @returns undefined when none does for this one */
  release: async (id: string): Promise<TransferRow | undefined> =>
    (await knex.raw<{ rows: TransferRow[] }>(RELEASE, { id })).rows[0],

  /** Lets a FAILED transfer be tried again, and one that waits for its next attempt at once. @returns undefined when it cannot */
  again: async (id: string): Promise<TransferRow | undefined> =>
    (await knex.raw<{ rows: TransferRow[] }>(AGAIN, { id })).rows[0],
});

/**
 * The transfers in the database: requests and history, the queue, and the contents that came with requests.
 * @param underWay transfers that this process runs; default: none is known, each is written at once
 */
export const transferStore = (knex: Knex, underWay?: () => number) => ({
  ...requestStore(knex, underWay),
  ...leaseStore(knex, underWay),
  ...contentStore(knex),
});

export type TransferStore = ReturnType<typeof transferStore>;
