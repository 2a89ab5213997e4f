import { SUCCESS } from '@pesit-node/protocol';
import { hotStatement, jsonRows } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { RecordHandle, TransferCompletion, TransferProgress } from './record.js';
import { WAITING_CTES } from './waiting-files.js';

/** The end of one transfer. */
export interface CompletedRow {
  readonly record: RecordHandle;
  readonly completion: TransferCompletion;
}

/**
 * For the planner, which keeps a plan that it made while the table was new: the rows are few, so that it looks each up by its number;
 * and no index of those that are under way helps, whose entries of transfers that have ended it would read, too.
 */
const FEW = 'g.n = abs(g.n)';
const UNDER_WAY = `t.status || '' = 'IN_PROGRESS'`;

/**
 * COMPLETED of several transfers, each under its fence, and all that is committed with it. The rows that they share, of partners and
 * listeners, are changed once, with the sum, and locked in the order of their keys: pods never wait for each other in a circle.
 * @param locked what to do when somebody else has a row
 */
const completeStatement = (locked: 'skip locked' | ''): string => `
  with open as (
    select g.* from json_to_recordset(cast(:rows as json)) as g (n integer, id bigint, fence integer, size bigint, checksum text,
      path text, filename text, compression text, bytes_transferred bigint, articles bigint, sync_point integer,
      point_bytes bigint, point_articles bigint, terms jsonb, mtime numeric)
    cross join lateral (
      select from transfers t where t.id = g.id and t.fence = g.fence and ${UNDER_WAY} for no key update ${locked}
    ) t
    where ${FEW}
  ), done as (
    update transfers t set status = 'COMPLETED', end_time = now(), diagnostic = '${SUCCESS}', delivering = false,
      size = g.size, checksum = g.checksum, path = g.path, filename = g.filename, bytes_transferred = g.bytes_transferred,
      articles = g.articles, sync_point = g.sync_point, compression = g.compression, point_bytes = g.point_bytes,
      point_articles = g.point_articles, terms = g.terms
    from open g where t.id = g.id
    returning t.id, t.partner_id, t.listener, t.direction, t.directory, t.path, t.size, g.mtime, g.n
  ), partner_rows as (
    select partner_id from partners where partner_id in (select partner_id from done) order by partner_id for no key update
  ), partner as (
    update partners p set transfer_count = p.transfer_count + sum.more
    from partner_rows r join (select partner_id, count(*) as more from done group by partner_id) sum using (partner_id)
    where p.partner_id = r.partner_id
  ), server_rows as (
    select server_id from listeners where server_id in (select listener from done) order by server_id for no key update
  ), server as (
    update listeners l set total_transfers = l.total_transfers + sum.more
    from server_rows r join (select listener as server_id, count(*) as more from done group by listener) sum using (server_id)
    where l.server_id = r.server_id
  ), ${WAITING_CTES}, sent as (
    insert into sent_files (partner_id, path, size, mtime_ns, transfer)
    select distinct on (partner_id, path) partner_id, path, size, mtime, id from done where mtime is not null
    order by partner_id, path, n desc
    on conflict (partner_id, path) do update
      set size = excluded.size, mtime_ns = excluded.mtime_ns, transfer = excluded.transfer, sent_at = now()
  )
  select id from done`;

const STATEMENTS = {
  together: hotStatement<{ readonly id: number }>('server_complete', completeStatement('skip locked')),
  alone: hotStatement<{ readonly id: number }>('server_complete_alone', completeStatement('')),
};

/**
 * One statement, hence one transaction and one round trip.
 * @param how `together` leaves out transfers whose record somebody else has locked, `alone` waits for it
 * @returns for each whether it is COMPLETED now; false when the record is not IN_PROGRESS under this fence
 */
export const complete = async (
  rows: readonly CompletedRow[],
  how: keyof typeof STATEMENTS,
  knex: Knex,
): Promise<readonly boolean[]> => {
  const given = rows.map(({ record: { id, fence }, completion }, n) => ({
    ...{ n, id, fence },
    ...completionColumns(completion),
    terms: completion.terms,
    mtime: completion.sentMtimeNs?.toString(),
  }));
  const written = await STATEMENTS[how](knex, { rows: jsonRows(given) });
  const done = new Set(written.map(({ id }) => id));
  return rows.map(({ record }) => done.has(record.id));
};

export const completionColumns = (completion: TransferCompletion) => ({
  size: completion.size,
  checksum: completion.checksum ?? null,
  path: completion.path,
  filename: completion.filename,
  compression: completion.compression,
  ...progressColumns(completion),
  point_bytes: completion.lastPoint?.dataBytes ?? 0,
  point_articles: completion.lastPoint?.articles ?? 0,
});

export const progressColumns = ({ dataBytes, articles, syncPoint }: TransferProgress) => ({
  bytes_transferred: dataBytes,
  articles,
  sync_point: syncPoint,
});
