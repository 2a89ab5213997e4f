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

/** How a transfer ended, or that it is given back untouched. */
export type TransferEnd =
  | {
      readonly status: 'COMPLETED' | 'FAILED' | 'CANCELLED';
      readonly size?: number;
      readonly bytesTransferred?: number;
      readonly articles?: number;
      readonly checksum?: string | undefined;
      readonly localPath?: string;
      readonly diagnostic?: string;
      readonly errorCode?: string;
      readonly errorMessage?: string;
      /** PI 13 as the server allocated it. */
      readonly pesitTransferId?: number | undefined;
    }
  | { readonly status: 'PENDING' };

/** A transfer that runs; without figures until data flow. */
export interface Progress {
  readonly id: string;
  readonly bytesTransferred?: number;
  readonly articles?: number;
}

export interface TakeOptions {
  readonly node: string;
  readonly leaseSeconds: number;
  /** Sessions that one remote server may have when its own maxConnections does not say less. */
  readonly maxPerServer: number;
  /** Take only when at least so many wait. */
  readonly minBacklog: number;
}

/**
 * The statements of every transfer are prepared: planning them costs more than running them. Columns are named, never `*`:
 * a newer version may add some while an older one still runs.
 */
const COLUMNS = [
  ...['id', 'status', 'direction', 'server_id', 'server_name', 'partner_id', 'filename', 'remote_filename'],
  ...['virtual_file', 'source_path', 'settings', 'created_time', 'start_time', 'end_time', 'size', 'bytes_transferred'],
  ...[
    'articles',
    'checksum',
    'local_path',
    'diagnostic',
    'error_code',
    'error_message',
    'pesit_transfer_id',
    'attempts',
  ],
  'node',
];
const columnsOf = (table: string): string => COLUMNS.map((column) => `${table}.${column}`).join(', ');

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
    returning ${columnsOf('t')}, to_jsonb(s) as server
  )
  select taken.*, (select count(*) from transfers where status = 'PENDING')::integer as backlog
  from (select 1) one left join taken on true`;

/** Inserts unless the server is unknown or disabled, or the queue is full: one round trip when all is well. */
const insertFor = (column: 'id' | 'name'): string => `
  insert into transfers (id, status, direction, server_id, server_name, partner_id, filename, remote_filename,
    virtual_file, source_path, size, settings)
  select cast(:id as uuid), 'PENDING', :direction, s.id, s.name, coalesce(:partnerId, s.client_id), :filename, :remoteFilename,
    :virtualFile, :sourcePath, cast(:size as bigint), cast(:settings as jsonb)
  from remote_servers s
  where s.${column} = :server and s.enabled
    and (select count(*) from transfers where status = 'PENDING') < :room
  returning ${columnsOf('transfers')}`;

const INSERT = {
  number: { sql: insertFor('id'), name: 'client_insert_by_server_id' },
  string: { sql: insertFor('name'), name: 'client_insert_by_server_name' },
};

const END = `
  update transfers set status = :status, end_time = now(), lease_until = null,
    size = coalesce(cast(:size as bigint), size),
    bytes_transferred = coalesce(cast(:bytesTransferred as bigint), bytes_transferred),
    articles = coalesce(cast(:articles as bigint), articles),
    checksum = :checksum, local_path = :localPath,
    diagnostic = :diagnostic, error_code = :errorCode, error_message = :errorMessage,
    pesit_transfer_id = coalesce(cast(:pesitTransferId as integer), pesit_transfer_id)
  where id = :id and status = 'IN_PROGRESS' and node = :node
  returning ${columnsOf('transfers')}`;

const NOT_GIVEN = {
  ...{ size: null, bytesTransferred: null, articles: null, checksum: null, localPath: null },
  ...{ diagnostic: null, errorCode: null, errorMessage: null, pesitTransferId: null },
  ...{ partnerId: null, remoteFilename: null, virtualFile: null, sourcePath: null },
};

/** Values for a statement: null for what is not given. */
const withNulls = (given: object): Readonly<Record<string, string | number | null>> => ({
  ...NOT_GIVEN,
  ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
});

/** A transfer that was taken, as if it never had been. */
const untouched = (knex: Knex): Readonly<Record<string, unknown>> => ({
  ...{ status: 'PENDING', start_time: null, pesit_transfer_id: null, node: null, lease_until: null },
  ...{ bytes_transferred: 0, articles: 0, attempts: knex.raw('attempts - 1') },
});

/** The transfers in the database: the history, and the queue. One statement each; the statuses are guarded by triggers. */
export const transferStore = (knex: Knex) => ({
  /**
   * @param room how many may be PENDING before this one
   * @returns undefined when the server is not there or disabled, or there is no room
   */
  insert: async (transfer: NewTransfer, room: number): Promise<TransferRow | undefined> => {
    const { sql, name } = INSERT[typeof transfer.server as 'number' | 'string'];
    const values = withNulls({ ...transfer, settings: JSON.stringify(transfer.settings), room });
    const { rows } = await knex.raw<{ rows: TransferRow[] }>(sql, values).options({ name });
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
    const { rows } = await knex
      .raw<{ rows: (Job & { readonly backlog: number })[] }>(TAKE, { ...options })
      .options({ name: 'client_take' });
    const [row] = rows;
    if (row === undefined) return { job: undefined, backlog: 0 };
    // Without a transfer every column but the count is null.
    return { job: (row.id as string | null) === null ? undefined : row, backlog: row.backlog };
  },

  /** @returns the record as it is now; undefined when another process has ended it meanwhile */
  end: async (id: string, node: string, end: TransferEnd): Promise<TransferRow | undefined> => {
    if (end.status === 'PENDING') {
      const given = knex<TransferRow>('transfers').where({ id, status: 'IN_PROGRESS', node });
      const [row] = await given.update(untouched(knex), '*');
      return row;
    }
    const { rows } = await knex
      .raw<{ rows: TransferRow[] }>(END, withNulls({ ...end, id, node }))
      .options({ name: 'client_end' });
    return rows[0];
  },

  /** Longer leases for the transfers that this process runs, and their figures where there are some. */
  progress: async (node: string, leaseSeconds: number, running: readonly Progress[]): Promise<void> => {
    await knex.raw(
      `update transfers t set lease_until = now() + make_interval(secs => :leaseSeconds),
         bytes_transferred = coalesce(r."bytesTransferred", t.bytes_transferred), articles = coalesce(r.articles, t.articles)
       from jsonb_to_recordset(cast(:running as jsonb)) as r(id uuid, "bytesTransferred" bigint, articles bigint)
       where t.id = r.id and t.status = 'IN_PROGRESS' and t.node = :node`,
      { node, leaseSeconds, running: JSON.stringify(running) },
    );
  },

  /** Gives back what the database says that this process took, and it does not know of: an answer to `take` was lost. */
  giveBackUnknown: async (node: string, known: readonly string[]): Promise<number> =>
    knex('transfers').where({ status: 'IN_PROGRESS', node }).whereNotIn('id', known).update(untouched(knex)),

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
