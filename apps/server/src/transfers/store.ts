import { History, HistoryStatistics } from '@pesit-node/service';
import type { HistoryPage, Statistics } from '@pesit-node/service';
import type { Pacing } from '@pesit-node/storage';
import { DIRECTIONS, TRANSFER_STATUSES } from '@pesit-node/transfers';
import type { AttemptTerms, Compression, Direction, KeptAttempt, TransferStatus } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { HISTORY, SUMMED } from './history.js';
import type { HistoryFilter, HistoryQuery, StatisticsQuery } from './schema.js';

export interface TransferRow {
  readonly id: number;
  readonly type: 'FILE' | 'MESSAGE';
  readonly partner_id: string;
  readonly direction: Direction;
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
  /** PI 29. */
  readonly diagnostic_complement: Buffer | null;
  readonly error_message: string | null;
  readonly label: string | null;
  readonly free_message: Buffer | null;
  readonly original_sender: string | null;
  readonly final_receiver: string | null;
  readonly creation_date: string | null;
  readonly compression: Compression | null;
  readonly file_type: number;
  /** How often a refused request came. */
  readonly occurrences: number;
  readonly last_occurrence: Date | null;
}

/** The text of a message is read with its own record alone: a page of them would be large. */
export interface TransferDetail extends TransferRow {
  /** PI 91. */
  readonly message: Buffer | null;
  readonly data_code: number | null;
  readonly attempt_time: Date | null;
  readonly terms: AttemptTerms | null;
  readonly former_attempts: readonly KeptAttempt[] | null;
  readonly point_bytes: number;
  readonly point_articles: number;
  readonly pacings: readonly Pacing[] | null;
  /** Where the file is, once it is sent or delivered; absolute, links resolved. */
  readonly path: string | null;
  /** Version of a file that was sent. */
  readonly source_mtime_ns: string | null;
}

/** The columns of a page: all of `TransferRow`. */
const COLUMNS = [
  'id',
  'type',
  'partner_id',
  'direction',
  'virtual_file_id',
  'filename',
  'size',
  'status',
  'start_time',
  'end_time',
  'transfer_id',
  'listener',
  'node',
  'session_id',
  'remote_address',
  'bytes_transferred',
  'articles',
  'sync_point',
  'attempts',
  'restartable',
  'checksum',
  'diagnostic',
  'diagnostic_complement',
  'error_message',
  'label',
  'free_message',
  'original_sender',
  'final_receiver',
  'creation_date',
  'compression',
  'file_type',
  'occurrences',
  'last_occurrence',
] as const satisfies readonly (keyof TransferRow)[];

/** Reads of the history; writes belong to `journal.ts`. */
export class TransferStore {
  readonly #knex: Knex;
  readonly #history: History<HistoryFilter>;
  readonly #statistics: HistoryStatistics<HistoryFilter>;

  constructor(knex: Knex) {
    this.#knex = knex;
    this.#history = new History(knex, HISTORY);
    this.#statistics = new HistoryStatistics(knex, SUMMED);
  }

  async get(id: number): Promise<TransferDetail | undefined> {
    return this.#knex<TransferDetail>('transfers').where('id', id).first();
  }

  /** As a page has them; those that are not there are left out. */
  async some(ids: readonly number[]): Promise<readonly TransferRow[]> {
    return this.#knex<TransferRow>('transfers')
      .select<TransferRow[]>(COLUMNS)
      .whereRaw('id = any (cast(? as bigint[]))', [[...ids]])
      .orderBy('id');
  }

  /** @throws ApiError 400 as `History.page` */
  async page<T>(query: HistoryQuery, map: (row: TransferRow) => T): Promise<HistoryPage<T>> {
    return this.#history.page(query, query, { columns: COLUMNS, map });
  }

  /** All that the filter leaves, newest first; see `History.batches`. */
  batches<T>(filter: HistoryFilter, map: (row: TransferRow) => T): AsyncGenerator<readonly T[]> {
    return this.#history.batches(filter, { columns: COLUMNS, map });
  }

  /** @throws ApiError 400 as `HistoryStatistics.totals` */
  async statistics({ groupBy, ...filter }: StatisticsQuery): Promise<Statistics> {
    return this.#statistics.totals(filter, groupBy, TRANSFER_STATUSES, DIRECTIONS);
  }
}
