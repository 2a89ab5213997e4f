import { randomUUID } from 'node:crypto';

import { hotStatement, jsonBytes, jsonRows } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { RecordHandle, TransferStart } from './record.js';

/** A record that has begun. */
export interface BegunTransfer extends RecordHandle {
  readonly transferId: number;
}

/** The columns of a new record that its request decides, and their types. */
const COLUMNS = {
  partner_id: 'text',
  direction: 'text',
  virtual_file_id: 'text',
  filename: 'text',
  listener: 'text',
  node: 'text',
  instance: 'uuid',
  session_id: 'text',
  remote_address: 'text',
  label: 'text',
  creation_date: 'text',
  free_message: 'bytea',
  original_sender: 'text',
  final_receiver: 'text',
  context: 'uuid',
  directory: 'text',
  overwrite: 'boolean',
  announced: 'bigint',
  path: 'text',
  source_size: 'bigint',
  source_mtime_ns: 'numeric',
  pacings: 'jsonb',
} as const;

const names = Object.keys(COLUMNS);

/** Each new record is known by its `context`, which nobody else has. */
const insert = hotStatement<RecordHandle & { readonly transfer_id: number; readonly context: string }>(
  'server_begin',
  `
  insert into transfers (status, transfer_id, ${names.join(', ')})
  select 'IN_PROGRESS', coalesce(nullif(g.transfer_id, 0), nextval('transfer_ids')), ${names.map((name) => `g.${name}`).join(', ')}
  from json_to_recordset(cast(:rows as json))
    as g (n integer, transfer_id integer, ${Object.entries(COLUMNS)
      .map(([name, type]) => `${name} ${type}`)
      .join(', ')})
  order by g.n
  returning id, fence, transfer_id, context`,
);

/** A new record as the statement takes it. */
export type BeginRow = Readonly<Record<keyof typeof COLUMNS, unknown>> & {
  readonly context: string;
  readonly transfer_id: number;
};

/** @param process which one writes it */
export const beginRow = (
  start: TransferStart,
  { node, instance }: { readonly node: string; readonly instance: string },
): BeginRow => {
  const { source, staging } = start;
  return {
    partner_id: start.partnerId,
    direction: start.direction,
    virtual_file_id: start.virtualFileId,
    filename: start.filename,
    ...{ listener: start.listener, node, instance },
    session_id: start.sessionId,
    remote_address: start.remoteAddress,
    label: start.label,
    creation_date: start.creationDate,
    free_message: jsonBytes(start.freeMessage),
    original_sender: start.originalSender,
    final_receiver: start.finalReceiver,
    context: staging?.key ?? randomUUID(),
    directory: staging?.directory,
    overwrite: staging?.overwrite ?? true,
    announced: staging?.announced ?? 0,
    path: source?.path,
    source_size: source?.version.size,
    source_mtime_ns: source?.version.mtimeNs.toString(),
    pacings: source?.pacings,
    transfer_id: start.transferId,
  };
};

/** Writes the records of transfers that begin, in one statement. */
export const begin = async (rows: readonly BeginRow[], knex: Knex): Promise<readonly BegunTransfer[]> => {
  const written = await insert(knex, { rows: jsonRows(rows.map((row, n) => ({ n, ...row }))) });
  const byContext = new Map(written.map((row) => [row.context, row]));
  return rows.map(({ context }) => {
    const row = byContext.get(context);
    if (row === undefined) throw new Error('the record of the transfer was not written');
    return { id: row.id, fence: row.fence, transferId: row.transfer_id };
  });
};
