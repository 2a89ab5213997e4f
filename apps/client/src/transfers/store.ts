import { fetchPage } from '@pesit-node/service';
import type { Page } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { RemoteServerRow } from '../remote-servers/store.js';
import type { DIRECTIONS, HistoryQuery, TRANSFER_STATUSES } from './schema.js';

export type TransferStatus = (typeof TRANSFER_STATUSES)[number];
export type Direction = (typeof DIRECTIONS)[number];

/** What a request set beside the names; absent = as the remote server has it. */
export interface TransferSettings {
  readonly maxEntitySize?: number | undefined;
  readonly syncPointsEnabled?: boolean | undefined;
  /** KB */
  readonly syncInterval?: number | undefined;
  readonly syncWindow?: number | undefined;
  readonly text?: boolean | undefined;
  readonly recordLength?: number | undefined;
  readonly recordFormat?: number | undefined;
  readonly label?: string | undefined;
  readonly freeMessage?: string | undefined;
  readonly originalSender?: string | undefined;
  readonly finalReceiver?: string | undefined;
  readonly localName?: string | undefined;
  readonly overwrite?: boolean | undefined;
}

/** A row of `transfers`. */
export interface TransferRow {
  readonly id: string;
  readonly status: TransferStatus;
  readonly direction: Direction;
  readonly server_id: number | null;
  readonly server_name: string;
  readonly partner_id: string;
  readonly filename: string;
  readonly remote_filename: string | null;
  readonly virtual_file: string | null;
  /** Of a SEND: the absolute path that is read. */
  readonly source_path: string | null;
  readonly settings: TransferSettings;
  readonly created_time: Date;
  readonly start_time: Date | null;
  readonly end_time: Date | null;
  readonly size: number | null;
  readonly bytes_transferred: number;
  readonly articles: number;
  readonly checksum: string | null;
  readonly local_path: string | null;
  readonly diagnostic: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly pesit_transfer_id: number | null;
  readonly attempts: number;
  readonly node: string | null;
}

/** A transfer that this process shall run, with its remote server as it is now. */
export interface Job extends TransferRow {
  readonly server: Omit<RemoteServerRow, 'last_contact'>;
}

export interface NewTransfer {
  readonly id: string;
  readonly direction: Direction;
  readonly server: number | string;
  /** PI 3; default: the server's clientId. */
  readonly partnerId: string | undefined;
  readonly filename: string;
  readonly remoteFilename: string | undefined;
  readonly virtualFile: string | undefined;
  readonly sourcePath: string | undefined;
  readonly size: number | undefined;
  readonly settings: TransferSettings;
}

/** Columns that the end of a transfer sets; `PENDING` gives it back untouched. */
export interface TransferEnd {
  readonly status: 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'PENDING';
  readonly size?: number;
  readonly bytes_transferred?: number;
  readonly articles?: number;
  readonly checksum?: string | null;
  readonly local_path?: string;
  readonly diagnostic?: string;
  readonly error_code?: string;
  readonly error_message?: string;
  readonly pesit_transfer_id?: number;
}

export interface Progress {
  readonly id: string;
  readonly bytesTransferred: number;
  readonly articles: number;
}

export interface TakeOptions {
  readonly node: string;
  readonly leaseSeconds: number;
  /** Sessions that one remote server may have when its own maxConnections does not say less. */
  readonly maxPerServer: number;
  /** Take only when at least so many wait. */
  readonly minBacklog: number;
}

const SERVER_COLUMN = { number: 'id', string: 'name' } as const;

/** Takes the oldest transfer whose server has a session to spare; several processes never take the same one. */
const TAKE = `
  with busy as (
    select server_id, count(*) as running from transfers where status = 'IN_PROGRESS' group by server_id
  ), next as (
    select t.id from transfers t
    join remote_servers s on s.id = t.server_id
    left join busy b on b.server_id = t.server_id
    where t.status = 'PENDING' and s.enabled
      and coalesce(b.running, 0) < least(coalesce(s.max_connections, :maxPerServer), :maxPerServer)
      and (select count(*) from transfers where status = 'PENDING') >= :minBacklog
    order by t.position limit 1
    for update of t skip locked
  ), taken as (
    update transfers t set status = 'IN_PROGRESS', start_time = now(), attempts = t.attempts + 1, node = :node,
      lease_until = now() + make_interval(secs => :leaseSeconds),
      pesit_transfer_id = case when t.direction = 'SEND' then nextval('pesit_transfer_id') end
    from next, remote_servers s where t.id = next.id and s.id = t.server_id
    returning t.*, to_jsonb(s) as server
  )
  select taken.*, (select count(*) from transfers where status = 'PENDING')::integer as backlog
  from (select 1) one left join taken on true`;

/** Inserts unless the server is unknown or disabled, or the queue is full: one round trip when all is well. */
const insertSql = (server: number | string): string => `
  insert into transfers (id, status, direction, server_id, server_name, partner_id, filename, remote_filename,
    virtual_file, source_path, size, settings)
  select cast(:id as uuid), 'PENDING', :direction, s.id, s.name, coalesce(:partnerId, s.client_id), :filename, :remoteFilename,
    :virtualFile, :sourcePath, cast(:size as bigint), cast(:settings as jsonb)
  from remote_servers s
  where s.${SERVER_COLUMN[typeof server as 'number' | 'string']} = :server and s.enabled
    and (select count(*) from transfers where status = 'PENDING') < :room
  returning *`;

/** The transfers in the database: the history, and the queue. One statement each; the statuses are guarded by triggers. */
export const transferStore = (knex: Knex) => ({
  /**
   * @param room how many may be PENDING before this one
   * @returns undefined when the server is not there or disabled, or there is no room
   */
  insert: async (transfer: NewTransfer, room: number): Promise<TransferRow | undefined> => {
    const nullable = { partnerId: null, remoteFilename: null, virtualFile: null, sourcePath: null, size: null };
    const given = Object.fromEntries(Object.entries(transfer).filter(([, value]) => value !== undefined));
    const bindings = { ...nullable, ...given, settings: JSON.stringify(transfer.settings), room };
    const { rows } = await knex.raw<{ rows: TransferRow[] }>(insertSql(transfer.server), bindings);
    return rows[0];
  },

  countPending: async (): Promise<number> => {
    const [counted] = await knex('transfers').where({ status: 'PENDING' }).count<{ total: number }[]>({ total: '*' });
    return counted?.total ?? 0;
  },

  find: async (id: string): Promise<TransferRow | undefined> =>
    (await knex('transfers').where({ id }).first()) as TransferRow | undefined,

  page: async <T>(query: HistoryQuery, map: (row: TransferRow) => T): Promise<Page<T>> => {
    const { status, direction, serverId, from, to } = query;
    const rows = knex('transfers').where((filter) => {
      if (status !== undefined) void filter.where({ status });
      if (direction !== undefined) void filter.where({ direction });
      if (serverId !== undefined) void filter.where({ server_id: serverId });
      if (from !== undefined) void filter.where('created_time', '>=', from);
      if (to !== undefined) void filter.where('created_time', '<', to);
    });
    return fetchPage<TransferRow, T>(rows, query, { tieBreak: 'id', map });
  },

  /** @returns the transfer taken, if any, and how many were PENDING before */
  take: async (options: TakeOptions): Promise<{ readonly job: Job | undefined; readonly backlog: number }> => {
    const { rows } = await knex.raw<{ rows: (Job & { readonly backlog: number })[] }>(TAKE, { ...options });
    const [row] = rows;
    if (row === undefined) return { job: undefined, backlog: 0 };
    // Without a transfer every column but the count is null.
    return { job: (row.id as string | null) === null ? undefined : row, backlog: row.backlog };
  },

  /** @returns the record as it is now; undefined when another process has ended it meanwhile */
  end: async (id: string, node: string, { status, ...columns }: TransferEnd): Promise<TransferRow | undefined> => {
    const rows = (await knex('transfers')
      .where({ id, status: 'IN_PROGRESS', node })
      .update(
        {
          status,
          ...columns,
          lease_until: null,
          ...(status === 'PENDING'
            ? { node: null, start_time: null, attempts: knex.raw('attempts - 1'), pesit_transfer_id: null }
            : { end_time: knex.fn.now() }),
        },
        '*',
      )) as TransferRow[];
    return rows[0];
  },

  /** Progress of the transfers that this process runs, and longer leases for all of them. */
  progress: async (node: string, leaseSeconds: number, changes: readonly Progress[]): Promise<void> => {
    await knex.raw(
      `update transfers t set lease_until = now() + make_interval(secs => :leaseSeconds),
         bytes_transferred = coalesce(p."bytesTransferred", t.bytes_transferred), articles = coalesce(p.articles, t.articles)
       from transfers r left join jsonb_to_recordset(cast(:changes as jsonb)) as p(id uuid, "bytesTransferred" bigint, articles bigint)
         on p.id = r.id
       where t.id = r.id and r.status = 'IN_PROGRESS' and r.node = :node`,
      { node, leaseSeconds, changes: JSON.stringify(changes) },
    );
  },

  /**
   * Ends the records that a process left behind.
   * @param which all of this node's (nothing of it runs when it starts), or those whose lease has run out
   */
  failOrphans: async (which: { readonly node: string } | 'expired', message: string): Promise<readonly string[]> => {
    const query = knex('transfers').where({ status: 'IN_PROGRESS' });
    if (which === 'expired') void query.whereRaw('lease_until < now()');
    else void query.where(which);
    const end = { status: 'FAILED', end_time: knex.fn.now(), lease_until: null };
    const rows: readonly { readonly id: string }[] = await query.update(
      { ...end, diagnostic: '2-223', error_code: 'TRANSFER_FAILED', error_message: message },
      'id',
    );
    return rows.map(({ id }) => id);
  },
});

export type TransferStore = ReturnType<typeof transferStore>;
