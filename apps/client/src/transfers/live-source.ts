import type { LiveLook, LiveRow, LiveSource } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { toPageRecord } from './record.js';
import type { PageRecord } from './record.js';
import type { Progress } from './row.js';
import type { TransferStore } from './store.js';

/** Each arm is bounded, and has an index. */
const LOOK = `
  select id, status, bytes_transferred as bytes, sync_point as "syncPoint", node, now() as at,
    case when type = 'FILE' then coalesce(size, announced) end as expected,
    size is null and announced is not null as "isAnnounced",
    concat_ws('/', status, attempts, fence, restartable, failures, postponements, next_attempt_at, diagnostic, content) as version
  from transfers where id in (
    (select id from transfers where status = 'IN_PROGRESS' limit :limit)
    union (select id from transfers where direction = 'SEND' and created_time >= :since order by created_time desc, id desc limit :recent)
    union (select id from transfers where direction = 'RECEIVE' and created_time >= :since order by created_time desc, id desc limit :recent)
    union (select id from transfers where end_time >= :since order by end_time desc limit :recent)
    union select unnest(cast(:named as uuid[]))
  )
  union all select null, null, null, null, null, now(), null, null, null`;

type Row = LiveRow & { readonly at: Date };

/**
 * The history of the client app, for live events.
 * @param progressOf newer figures than the row's, of a transfer that runs here
 */
export const liveSource = (
  knex: Knex,
  store: Pick<TransferStore, 'some'>,
  progressOf: (id: string) => Progress,
): LiveSource<PageRecord> => ({
  look: async (since, named, { running: limit, recent }): Promise<LiveLook> => {
    const values = { since: since ?? 'infinity', named: named.map(String), limit, recent };
    const { rows } = await knex.raw<{ rows: readonly Row[] }>(LOOK, values);
    const isTransfer = ({ id }: { readonly id: unknown }): boolean => id !== null;
    return { at: rows.find((row) => !isTransfer(row))?.at ?? new Date(), rows: rows.filter(isTransfer) };
  },
  records: async (ids) => (await store.some(ids.map(String))).map((row) => toPageRecord(row, progressOf(row.id))),
});
