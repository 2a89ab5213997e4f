import type { LiveLook, LiveRow, LiveSource } from '@pesit-node/transfers';
import type { Knex } from 'knex';
import type { z } from 'zod';

import { toTransfer } from './answers.js';
import type { transferAnswer } from './schema.js';
import type { TransferStore } from './store.js';

/** Each arm is bounded, and has an index. */
const LOOK = `
  select id, status, bytes_transferred as bytes, sync_point as "syncPoint", node, now() as at,
    case when type = 'FILE' then coalesce(source_size, nullif(announced, 0)) end as expected,
    source_size is null and announced > 0 as "isAnnounced",
    concat_ws('/', status, attempts, fence, restartable, occurrences, diagnostic) as version
  from transfers where id in (
    (select id from transfers where status in ('PENDING', 'IN_PROGRESS') limit :limit)
    union (select id from transfers where direction = 'SEND' and start_time >= :since order by start_time desc, id desc limit :recent)
    union (select id from transfers where direction = 'RECEIVE' and start_time >= :since order by start_time desc, id desc limit :recent)
    union (select id from transfers where end_time >= :since order by end_time desc limit :recent)
    union select unnest(cast(:named as bigint[]))
  )
  union all select null, null, null, null, null, now(), null, null, null`;

type Row = LiveRow & { readonly at: Date };

/** The history of the server app, for live events. */
export const liveSource = (knex: Knex, store: TransferStore): LiveSource<z.output<typeof transferAnswer>> => ({
  look: async (since, named, { running: limit, recent }): Promise<LiveLook> => {
    const values = { since: since ?? 'infinity', named: [...named], limit, recent };
    const { rows } = await knex.raw<{ rows: readonly Row[] }>(LOOK, values);
    const isTransfer = ({ id }: { readonly id: unknown }): boolean => id !== null;
    return { at: rows.find((row) => !isTransfer(row))?.at ?? new Date(), rows: rows.filter(isTransfer) };
  },
  records: async (ids) => (await store.some(ids.map(Number))).map(toTransfer),
});
