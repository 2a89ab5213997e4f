import { keptBytes, keptReason, SUCCESS } from '@pesit-node/protocol';
import { settledWithin } from '@pesit-node/ground';
import { Batches, isDatabaseUnavailable } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import type { AttemptTerms } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { begin, beginRow } from './begin-statement.js';
import type { BeginRow, BegunTransfer } from './begin-statement.js';
import { progressColumns } from './complete-statement.js';
import { Completions, noDatabase } from './completions.js';
import { IS_NEWEST } from './contexts.js';
import { Outbox } from './outbox.js';
import type { Availability } from './outbox.js';
import type {
  MessageContent,
  RecordHandle,
  RefusedStart,
  TransferFailure,
  TransferProgress,
  TransferStart,
} from './record.js';
import { Refusals } from './refusals.js';
import type { RecordedRefusal } from './refusals.js';

export interface JournalOptions {
  readonly knex: Knex;
  readonly database: Availability;
  readonly events: Pick<EventStream, 'publish'>;
  /** Name of this machine or pod. */
  readonly node: string;
  /** UUID of this process: records of another one that is gone are recognised by it. */
  readonly instance: string;
  /**
   * How long the end of a transfer waits for a database that is away, milliseconds. Shorter than the patience of partners
   * for ACK(TRANS.END): Tp is 30 s or more everywhere. Default 20,000.
   */
  readonly patienceMs?: number;
  /** Transfers that this process has under way. Default: none is known, each is written at once. */
  readonly underWay?: () => number;
}

/** How long a record of a failure may keep the session waiting; it is written later then. */
const RECORD_MS = 500;

/**
 * Writes the history. Nothing here is on the data path: a transfer is written when it begins, when it ends, and every
 * second or two between.
 */
export class TransferJournal {
  readonly #options: JournalOptions;
  readonly #outbox: Outbox;
  readonly #completions: Completions;
  readonly #refusals: Refusals;
  readonly #begun: Batches<BeginRow, BegunTransfer>;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#outbox = new Outbox(options);
    const { knex, underWay } = options;
    this.#begun = new Batches({ run: (rows) => begin(rows, knex), underWay });
    this.#completions = new Completions({ ...options, outbox: this.#outbox });
    this.#refusals = new Refusals({
      knex: options.knex,
      outbox: this.#outbox,
      insert: (start, failure) => this.#insertRefused(start, failure),
    });
  }

  /** How received files and files that were read become COMPLETED. */
  get completions(): Completions {
    return this.#completions;
  }

  /**
   * @param admit asked in the transaction that writes the record; what it throws is thrown, and nothing is written
   * @throws PesitError 2-201 when the database is not available: the partner comes again.
   */
  async begin(start: TransferStart, admit?: (transaction: Knex.Transaction) => Promise<void>): Promise<BegunTransfer> {
    const row = beginRow(start, this.#options);
    try {
      if (admit === undefined) return await this.#begun.add(row);
      return await this.#options.knex.transaction(async (transaction) => {
        await admit(transaction);
        const [begun] = (await begin([row], transaction)) as [BegunTransfer];
        return begun;
      });
    } catch (error) {
      throw isDatabaseUnavailable(error) ? noDatabase(error) : error;
    }
  }

  /**
   * A message, complete as it is here.
   * @returns the number of its record
   * @throws PesitError 2-201 when the database is not available: the partner comes again.
   */
  async message(start: TransferStart, { fileType, text, dataCode }: MessageContent): Promise<number> {
    try {
      const { knex } = this.#options;
      const [row] = await knex('transfers')
        .insert({
          ...this.#columnsOf(start),
          type: 'MESSAGE',
          status: 'COMPLETED',
          diagnostic: SUCCESS,
          transfer_id: start.transferId,
          end_time: knex.fn.now(),
          size: text.length,
          bytes_transferred: text.length,
          file_type: fileType,
          message: text,
          data_code: dataCode ?? null,
        })
        .returning<{ id: number }[]>('id');
      if (row === undefined) throw new Error('the record of the message was not written');
      return row.id;
    } catch (error) {
      throw isDatabaseUnavailable(error) ? noDatabase(error) : error;
    }
  }

  /**
   * A file that was refused before anything was transferred: an operator looks for it in the history too.
   * @returns whether it has a record of its own; `written` is kept waiting for no longer than that of a failure
   */
  refused(start: TransferStart, failure: TransferFailure): RecordedRefusal {
    const { kind, written } = this.#refusals.add(start, failure);
    return { kind, written: this.#patiently(written) };
  }

  /** Writes how often what was refused again and again was. Never rejects. */
  async countRefusals(): Promise<void> {
    await this.#refusals.flush();
  }

  /**
   * Records why a transfer ended otherwise. Written later when the database is away.
   * @returns whether the partner may restart it: not when it has begun it anew meanwhile; as asked for while it waits
   */
  async failed(
    { id, fence }: RecordHandle,
    failure: TransferFailure,
    progress?: TransferProgress,
    terms?: AttemptTerms,
  ): Promise<{ readonly restartable: boolean }> {
    const { knex } = this.#options;
    let { restartable } = failure;
    await this.#soon('failed transfer', async () => {
      const rows = await knex('transfers')
        .where({ id, fence })
        .whereIn('status', ['PENDING', 'IN_PROGRESS'])
        .update({
          ...failureColumns(failure),
          ...(progress === undefined ? {} : progressColumns(progress)),
          terms: terms ?? null,
          restartable: failure.restartable && knex.raw(IS_NEWEST),
          delivering: false,
          size: null,
          checksum: null,
          path: knex.raw("case when direction = 'SEND' then path end"),
          end_time: knex.fn.now(),
        })
        .returning<{ restartable: boolean }[]>('restartable');
      restartable = rows[0]?.restartable ?? restartable;
    });
    return { restartable };
  }

  /** Stores the text of the partner about the file (PI 29), perhaps after its end. The last counts. */
  async said({ id, fence }: RecordHandle, complement: Buffer): Promise<void> {
    const kept = keptBytes(complement);
    await this.#soon('text of the partner', async () => {
      await this.#options.knex('transfers').where({ id, fence }).update({ diagnostic_complement: kept });
    });
  }

  /** Figures of running transfers. */
  async progress(running: ReadonlyMap<RecordHandle, TransferProgress>): Promise<void> {
    const all = [...running];
    if (all.length === 0) return;
    await this.#options.knex.raw(
      `update transfers t set bytes_transferred = v.bytes, articles = v.articles, sync_point = v.point
       from unnest(?::bigint[], ?::int[], ?::bigint[], ?::bigint[], ?::int[]) as v (id, fence, bytes, articles, point)
       where t.id = v.id and t.fence = v.fence and t.status = 'IN_PROGRESS' and not t.delivering`,
      [
        all.map(([{ id }]) => id),
        all.map(([{ fence }]) => fence),
        all.map(([, { dataBytes }]) => dataBytes),
        all.map(([, { articles }]) => articles),
        all.map(([, { syncPoint }]) => syncPoint),
      ],
    );
  }

  /** Those of the given files that the partner has read: path → `size/mtime in nanoseconds` as they were then. */
  async sentAmong(partnerId: string, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { rows } = await this.#options.knex.raw<{ rows: { path: string; size: number; mtime: string }[] }>(
      `select path, size, mtime_ns::text as mtime from sent_files where partner_id = ? and path = any(?::text[])`,
      [partnerId, paths as string[]],
    );
    return new Map(rows.map(({ path, size, mtime }) => [path, `${size}/${mtime}`]));
  }

  /** Resolves when all records are written, or `limitMs` is over. */
  async settled(limitMs: number): Promise<void> {
    const all = async (): Promise<void> => {
      await this.#refusals.flush();
      // Counted while the first of them was written.
      await this.#refusals.flush();
      await this.#outbox.empty();
    };
    await settledWithin(all(), limitMs);
  }

  async #insertRefused(start: RefusedStart, failure: TransferFailure): Promise<number> {
    const { knex } = this.#options;
    const [row] = await knex('transfers')
      .insert({
        ...this.#columnsOf(start),
        // Nobody shall fill the history with texts of his own by what is refused.
        free_message: null,
        ...failureColumns(failure),
        transfer_id: start.transferId,
        end_time: knex.fn.now(),
      })
      .returning<{ id: number }[]>('id');
    if (row === undefined) throw new Error('the record of the refused transfer was not written');
    return row.id;
  }

  #columnsOf(start: RefusedStart) {
    const { node, instance } = this.#options;
    return {
      partner_id: start.partnerId,
      direction: start.direction,
      virtual_file_id: start.virtualFileId,
      filename: start.filename ?? null,
      listener: start.listener,
      node,
      instance,
      session_id: start.sessionId,
      remote_address: start.remoteAddress,
      label: start.label ?? null,
      creation_date: start.creationDate ?? null,
      free_message: start.freeMessage ?? null,
      original_sender: start.originalSender ?? null,
      final_receiver: start.finalReceiver ?? null,
    };
  }

  /** Writes now, or when the database is back; the caller is not kept waiting for that. */
  async #soon(what: string, write: () => Promise<void>): Promise<void> {
    await this.#patiently(this.#outbox.add(what, write));
  }

  async #patiently(written: Promise<void>): Promise<void> {
    await settledWithin(written, this.#options.database.ready ? RECORD_MS : 0);
  }
}

const failureColumns = ({ status, diagnostic, message }: TransferFailure) => ({
  status,
  diagnostic,
  error_message: keptReason(message),
});
