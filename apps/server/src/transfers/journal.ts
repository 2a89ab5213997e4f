import { setTimeout as delay } from 'node:timers/promises';

import { isDatabaseUnavailable } from '@pesit-node/service';
import type { Logger } from '@pesit-node/service';
import { PesitError, SUCCESS } from '@pesit-node/protocol';
import type { Knex } from 'knex';

import { settledWithin } from '../settled-within.js';
import { Outbox } from './outbox.js';
import type { Availability } from './outbox.js';
import type { TransferCompletion, TransferFailure, TransferProgress, TransferStart } from './record.js';

export interface JournalOptions {
  readonly knex: Knex;
  readonly database: Availability;
  readonly logger: Logger;
  /** Name of this machine or pod. */
  readonly node: string;
  /** UUID of this process: records of another one that is gone are recognised by it. */
  readonly instance: string;
  /**
   * How long the end of a transfer waits for a database that is away, milliseconds. Shorter than the patience of partners
   * for ACK(TRANS.END): Tp is 30 s or more everywhere. Default 20,000.
   */
  readonly patienceMs?: number;
}

const MAX_MESSAGE = 2000;
const RETRY_MS = 250;
/** How long a record of a failure may keep the session waiting; it is written later then. */
const RECORD_MS = 500;

const noDatabase = (cause: unknown): PesitError =>
  new PesitError('the database is not available: the transfer cannot be recorded', {
    fault: 'local',
    diagnostic: '2-201',
    peerText: 'the node cannot record the transfer for now: try again',
    cause,
  });

/**
 * Writes the history. Nothing here is on the data path: a transfer is written when it begins, when it ends, and every
 * second or two between.
 */
export class TransferJournal {
  readonly #options: JournalOptions;
  readonly #outbox: Outbox;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#outbox = new Outbox(options);
  }

  /** @throws PesitError 2-201 when the database is not available: the partner comes again. */
  async begin(start: TransferStart): Promise<{ readonly id: number; readonly transferId: number }> {
    try {
      const { knex } = this.#options;
      const [row] = await knex('transfers')
        .insert({
          ...this.#columnsOf(start),
          status: 'IN_PROGRESS',
          transfer_id: start.transferId === 0 ? knex.raw("nextval('transfer_ids')") : start.transferId,
        })
        .returning<{ id: number; transfer_id: number }[]>(['id', 'transfer_id']);
      if (row === undefined) throw new Error('the record of the transfer was not written');
      return { id: row.id, transferId: row.transfer_id };
    } catch (error) {
      throw isDatabaseUnavailable(error) ? noDatabase(error) : error;
    }
  }

  /** A file that was refused before anything was transferred: an operator looks for it in the history too. */
  async refused(start: TransferStart, failure: TransferFailure): Promise<void> {
    await this.#soon('refused transfer', async () => {
      await this.#options.knex('transfers').insert({
        ...this.#columnsOf(start),
        ...failureColumns(failure),
        transfer_id: start.transferId,
        end_time: this.#options.knex.fn.now(),
      });
    });
  }

  /**
   * Records COMPLETED; the file is on stable storage under its final name already. Resolves when that is committed, and
   * only then may the partner be told. While the database is away it is tried again, as long as the partner can be
   * expected to wait.
   * @throws PesitError 2-201 when it could not be committed in time. Whether the last attempt took effect is not known
   *   then: the record is withdrawn as soon as the database answers, since the partner will hear that the transfer failed.
   */
  async complete(id: number, completion: TransferCompletion): Promise<void> {
    const { patienceMs = 20_000, logger } = this.#options;
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const attempt = this.#commit(id, completion);
      const outcome = await settledWithin(attempt, deadline - performance.now());
      if (outcome.kind === 'done') return;
      if (outcome.kind === 'failed' && !isDatabaseUnavailable(outcome.error)) throw outcome.error;
      const cause = outcome.kind === 'failed' ? outcome.error : new Error(`no answer within ${patienceMs} ms`);
      if (outcome.kind === 'late' || performance.now() + RETRY_MS >= deadline) {
        this.#withdrawAfter(id, attempt);
        throw noDatabase(cause);
      }
      logger.warn(
        { transfer: id, reason: (cause as Error).message },
        'end of the transfer not recorded yet, trying again',
      );
      await delay(RETRY_MS);
    }
  }

  /** Records why a transfer ended otherwise. Written later when the database is away. */
  async failed(id: number, failure: TransferFailure, progress: TransferProgress): Promise<void> {
    await this.#soon('failed transfer', async () => {
      await this.#options
        .knex('transfers')
        .where({ id })
        .whereIn('status', ['PENDING', 'IN_PROGRESS'])
        .update({ ...failureColumns(failure), ...progressColumns(progress), end_time: this.#options.knex.fn.now() });
    });
  }

  /** Figures of running transfers, by record. */
  async progress(running: ReadonlyMap<number, TransferProgress>): Promise<void> {
    const all = [...running];
    if (all.length === 0) return;
    await this.#options.knex.raw(
      `update transfers t set bytes_transferred = v.bytes, articles = v.articles, sync_point = v.point
       from unnest(?::int[], ?::bigint[], ?::bigint[], ?::int[]) as v (id, bytes, articles, point)
       where t.id = v.id and t.status = 'IN_PROGRESS'`,
      [
        all.map(([id]) => id),
        all.map(([, { dataBytes }]) => dataBytes),
        all.map(([, { articles }]) => articles),
        all.map(([, { syncPoint }]) => syncPoint),
      ],
    );
  }

  /**
   * Ends what a process that is gone has left behind. To be called before the first session of this one.
   * @returns how many records there were
   */
  async recover(): Promise<number> {
    const { knex, instance } = this.#options;
    const failure: TransferFailure = {
      status: 'FAILED',
      diagnostic: '2-223',
      message: 'the service stopped during the transfer',
    };
    return knex('transfers')
      .whereIn('status', ['PENDING', 'IN_PROGRESS'])
      .whereNot('instance', instance)
      .update({ ...failureColumns(failure), end_time: knex.fn.now() });
  }

  /** Of these files, those that the partner has read: path → `size/mtime in nanoseconds` as they were then. */
  async sentAmong(partnerId: string, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const { rows } = await this.#options.knex.raw<{ rows: { path: string; size: number; mtime: string }[] }>(
      `select path, size, mtime_ns::text as mtime from sent_files where partner_id = ? and path = any(?::text[])`,
      [partnerId, paths as string[]],
    );
    return new Map(rows.map(({ path, size, mtime }) => [path, `${size}/${mtime}`]));
  }

  /** Resolves when all records are written, or `limitMs` is over. */
  async settled(limitMs: number): Promise<void> {
    await settledWithin(this.#outbox.empty(), limitMs);
  }

  #columnsOf(start: TransferStart) {
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
      free_message: start.freeMessage ?? null,
      original_sender: start.originalSender ?? null,
      final_receiver: start.finalReceiver ?? null,
    };
  }

  /** One statement, hence one transaction and one round trip. */
  async #commit(id: number, completion: TransferCompletion): Promise<void> {
    const { knex } = this.#options;
    const { size, checksum = null, path, filename, sentMtimeNs } = completion;
    const { rows } = await knex.raw<{ rows: unknown[] }>(
      `with done as (
         update transfers set status = 'COMPLETED', end_time = now(), diagnostic = :success, size = :size,
           checksum = :checksum, path = :path, filename = :filename,
           bytes_transferred = :bytes, articles = :articles, sync_point = :point
         where id = :id and status = 'IN_PROGRESS' returning id, partner_id, listener
       ), partner as (
         update partners p set transfer_count = transfer_count + 1 from done where p.partner_id = done.partner_id
       ), server as (
         update listeners l set total_transfers = total_transfers + 1 from done where l.server_id = done.listener
       ), sent as (
         insert into sent_files (partner_id, path, size, mtime_ns, transfer)
         select partner_id, :path, :size, :mtime::numeric, id from done where :mtime::numeric is not null
         on conflict (partner_id, path) do update
           set size = excluded.size, mtime_ns = excluded.mtime_ns, transfer = excluded.transfer, sent_at = now()
       )
       select id from done`,
      {
        id,
        success: SUCCESS,
        size,
        checksum,
        path,
        filename,
        bytes: completion.dataBytes,
        articles: completion.articles,
        point: completion.syncPoint,
        mtime: sentMtimeNs?.toString() ?? null,
      } as Record<string, Knex.Value>,
    );
    if (rows.length > 0) return;
    const [row] = await knex('transfers').where({ id }).select<{ status: string }[]>('status');
    // An earlier attempt took effect although its answer was lost.
    if (row?.status === 'COMPLETED') return;
    if (row?.status !== 'FAILED')
      throw new Error(`the record of transfer ${id} is ${row?.status ?? 'gone'}, not IN_PROGRESS`);
    // Another process took this one for dead. It is not.
    await knex('transfers').where({ id, status: 'FAILED' }).update({
      status: 'IN_PROGRESS',
      end_time: null,
      diagnostic: null,
      error_message: null,
    });
    await this.#commit(id, completion);
  }

  #withdrawAfter(id: number, attempt: Promise<void>): void {
    void this.#outbox.add('withdrawn transfer', async () => {
      // Until the attempt has failed for good it may still take effect, after us.
      await attempt.catch(() => undefined);
      await this.#options.knex.raw(
        `with old as (
           select id, status, partner_id, listener from transfers
           where id = :id and status in ('IN_PROGRESS', 'COMPLETED') for update
         ), gone as (
           update transfers t set status = 'FAILED', withdrawn = true, end_time = now(), diagnostic = :diagnostic,
             error_message = :message, path = null, checksum = null
           from old where t.id = old.id returning old.*
         ), partner as (
           update partners p set transfer_count = transfer_count - 1
           from gone where p.partner_id = gone.partner_id and gone.status = 'COMPLETED'
         ), server as (
           update listeners l set total_transfers = total_transfers - 1
           from gone where l.server_id = gone.listener and gone.status = 'COMPLETED'
         )
         delete from sent_files where transfer = :id`,
        {
          id,
          diagnostic: '2-201',
          message: 'the database was not available at the end of the transfer: the partner was told to come again',
        },
      );
    });
  }

  /** Writes now, or when the database is back; the caller is not kept waiting for that. */
  async #soon(what: string, write: () => Promise<void>): Promise<void> {
    await settledWithin(this.#outbox.add(what, write), this.#options.database.ready ? RECORD_MS : 0);
  }
}

const failureColumns = ({ status, diagnostic, message }: TransferFailure) => ({
  status,
  diagnostic,
  error_message: message.replace(/\0/g, '').slice(0, MAX_MESSAGE),
});

const progressColumns = ({ dataBytes, articles, syncPoint }: TransferProgress) => ({
  bytes_transferred: dataBytes,
  articles,
  sync_point: syncPoint,
});
