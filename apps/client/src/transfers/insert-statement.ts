import { hotStatement, jsonRows } from '@pesit-node/service';
import type { Knex } from 'knex';

import { columnsOf, countedUpTo, SHARE_QUEUE } from './row.js';
import type { NewTransfer, TransferRow } from './row.js';

/** Priority of a request that has none. */
const NORMAL = 1;

/** A request that comes in, and how many may be queued before it. */
export interface Incoming {
  readonly transfer: NewTransfer;
  readonly room: number;
}

const queuedOf = (servers: string): string =>
  (['fresh', 'delayed', 'ordered'] as const).map((part) => countedUpTo(':room', part, servers)).join(' + ');

/**
 * Inserts each in the order of their numbers, unless its server is unknown or disabled, or the queue is full: whatever goes in before
 * it counts, too. A server whose circuit is open has a queue of its own, as large: its transfers take no place of others. One round trip
 * when all is well.
 */
const insertStatement = (conflict: string): string => `
  with eligible as (
    select g.*, s.id as server, s.name as name, s.client_id, q.queue,
      row_number() over (partition by q.queue order by g.n) as place
    from json_to_recordset(cast(:rows as json)) as g (n integer, id uuid, type text, direction text, server_id integer,
      server_name text, partner_id text, filename text, remote_filename text, virtual_file text, source_path text,
      source_version jsonb, size bigint, content text, settings jsonb, pesit_transfer_id integer, idempotency_key text,
      request_hash text, created_by text, priority smallint, not_before timestamptz, expires_at timestamptz,
      order_key text, order_holds boolean)
    join remote_servers s on s.id = coalesce(g.server_id, (select id from remote_servers where name = g.server_name))
    cross join lateral (select case when s.circuit_until is null then 0 else s.id end as queue) q
    where s.enabled
  ), queued as (
    select queue, case queue when 0 then ${queuedOf(`server_id in (select id from remote_servers where ${SHARE_QUEUE})`)}
      else ${queuedOf('server_id = queue')} end as total
    from (select distinct queue from eligible) queues
  )
  insert into transfers (id, type, status, direction, server_id, server_name, partner_id, filename, remote_filename,
    virtual_file, source_path, source_version, size, content, settings, pesit_transfer_id,
    idempotency_key, request_hash, created_by, priority, next_attempt_at, expires_at, order_key, order_holds)
  select e.id, e.type, 'PENDING', e.direction, e.server, e.name, coalesce(e.partner_id, e.client_id), e.filename,
    e.remote_filename, e.virtual_file, e.source_path, e.source_version, e.size, e.content, e.settings, e.pesit_transfer_id,
    e.idempotency_key, e.request_hash, e.created_by, e.priority, case when e.not_before > now() then e.not_before end,
    e.expires_at, e.order_key, e.order_holds
  from eligible e join queued using (queue) where queued.total + e.place <= :room
  order by e.n
  ${conflict}
  returning ${columnsOf('transfers')}`;

const STATEMENTS = {
  /** Leaves out a request whose key came before, which a statement of its own tells from one that found no room. */
  together: hotStatement<TransferRow>(
    'client_insert',
    insertStatement('on conflict (idempotency_key) where idempotency_key is not null do nothing'),
  ),
  alone: hotStatement<TransferRow>('client_insert_alone', insertStatement('')),
};

/** @returns the record of each; undefined when its server is not there or disabled, or there was no room */
export const insert = async (
  incoming: readonly Incoming[],
  how: keyof typeof STATEMENTS,
  knex: Knex,
): Promise<readonly (TransferRow | undefined)[]> => {
  const rows = jsonRows(incoming.map(({ transfer }, n) => ({ n, ...valuesOf(transfer) })));
  // The newest knows best.
  const room = incoming.at(-1)?.room ?? 0;
  const inserted = await STATEMENTS[how](knex, { rows, room });
  const byId = new Map(inserted.map((row) => [row.id, row]));
  return incoming.map(({ transfer }) => byId.get(transfer.id));
};

/** Null stands for a key that is left out. */
const valuesOf = (transfer: NewTransfer) => ({
  ...{ id: transfer.id, type: transfer.type, direction: transfer.direction, filename: transfer.filename },
  ...(typeof transfer.server === 'number' ? { server_id: transfer.server } : { server_name: transfer.server }),
  partner_id: transfer.partnerId,
  remote_filename: transfer.remoteFilename,
  virtual_file: transfer.virtualFile,
  source_path: transfer.sourcePath,
  source_version: transfer.sourceVersion,
  size: transfer.size,
  content: transfer.hasContent ? 'KEPT' : undefined,
  settings: transfer.settings,
  pesit_transfer_id: transfer.settings.pesitTransferId,
  idempotency_key: transfer.idempotency?.key,
  request_hash: transfer.idempotency?.hash,
  created_by: transfer.createdBy,
  priority: transfer.settings.priority ?? NORMAL,
  not_before: transfer.settings.notBefore,
  expires_at: transfer.settings.expiresAt,
  order_key: transfer.settings.ordered === true ? (transfer.virtualFile ?? transfer.remoteFilename) : undefined,
  order_holds: transfer.holdsOrder ?? true,
});
