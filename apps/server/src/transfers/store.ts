import { fetchPage } from '@pesit-node/service';
import type { Page } from '@pesit-node/service';
import type { Knex } from 'knex';

import type { HistoryQuery, TransferDirection, TransferStatus } from './schema.js';

export interface TransferRow {
  readonly id: number;
  readonly type: 'FILE' | 'MESSAGE';
  readonly partner_id: string;
  readonly direction: TransferDirection;
  readonly virtual_file_id: string | null;
  readonly filename: string | null;
  readonly size: number | null;
  readonly status: TransferStatus;
  readonly start_time: Date;
  readonly end_time: Date | null;
  readonly transfer_id: number | null;
  readonly listener: string;
  readonly node: string;
  readonly session_id: string;
  readonly remote_address: string;
  readonly bytes_transferred: number;
  readonly articles: number;
  readonly sync_point: number;
  readonly attempts: number;
  readonly restartable: boolean;
  readonly checksum: string | null;
  readonly diagnostic: string | null;
  readonly error_message: string | null;
  readonly label: string | null;
  readonly free_message: Buffer | null;
  readonly original_sender: string | null;
  readonly final_receiver: string | null;
}

/** Reads of the history; writes belong to `journal.ts`. */
export class TransferStore {
  readonly #knex: Knex;

  constructor(knex: Knex) {
    this.#knex = knex;
  }

  async get(id: number): Promise<TransferRow | undefined> {
    return this.#knex<TransferRow>('transfers').where('id', id).first();
  }

  async page<T>(query: HistoryQuery, map: (row: TransferRow) => T): Promise<Page<T>> {
    const { from, to } = query;
    const filters = {
      partner_id: query.partnerId,
      virtual_file_id: query.virtualFileId,
      listener: query.listener,
      direction: query.direction,
      status: query.status,
      restartable: query.restartable,
    };
    const rows = this.#knex('transfers');
    for (const [column, value] of Object.entries(filters)) if (value !== undefined) void rows.where(column, value);
    if (from !== undefined) void rows.where('start_time', '>=', from);
    if (to !== undefined) void rows.where('start_time', '<', to);
    return fetchPage(rows, query, { tieBreak: 'id', map });
  }
}
