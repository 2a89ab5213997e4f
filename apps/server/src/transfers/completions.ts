import { setTimeout as delay } from 'node:timers/promises';

import { PesitError } from '@pesit-node/protocol';
import { settledWithin } from '@pesit-node/ground';
import { Batches, isDatabaseUnavailable } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import { TRANSFER_ASIDE } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { complete, completionColumns } from './complete-statement.js';
import type { CompletedRow } from './complete-statement.js';
import { IS_NEWEST } from './contexts.js';
import type { Outbox } from './outbox.js';
import type { RecordHandle, TransferCompletion } from './record.js';

export interface CompletionsOptions {
  readonly knex: Knex;
  readonly events: Pick<EventStream, 'publish'>;
  readonly outbox: Outbox;
  /** See `JournalOptions`. */
  readonly patienceMs?: number;
  readonly underWay?: () => number;
}

/**
 * `again`: the record was put right, the statement can be made once more. `claimed`: another process has claimed the transfer, and
 * will say whether it was delivered.
 */
type Written = 'written' | 'again' | 'claimed';

const PATIENCE_MS = 20_000;
const RETRY_MS = 250;

export const noDatabase = (cause: unknown): PesitError =>
  new PesitError('the database is not available: the transfer cannot be recorded', {
    fault: 'local',
    diagnostic: '2-201',
    condition: 'database away',
    peerText: 'the node cannot record the transfer for now: try again',
    cause,
  });

/** @param isOpen nobody has said yet what became of it */
export const taken = (id: number, isOpen = false): PesitError =>
  new PesitError(`another session has taken over transfer ${id}: this one has lost it`, {
    fault: 'local',
    diagnostic: '2-207',
    condition: isOpen ? 'claim lost' : undefined,
    peerText: 'another session has taken over this transfer',
  });

/** Answers a row when the record is still of this fence, whatever it says now. */
const WITHDRAW = `
  with old as (
    select id, status, partner_id, listener from transfers
    where id = :id and fence = :fence and status in ('IN_PROGRESS', 'COMPLETED') for update
  ), gone as (
    update transfers set status = 'FAILED', withdrawn = true, end_time = now(), diagnostic = :diagnostic,
      error_message = :message, path = case when direction = 'SEND' then path end, size = null, checksum = null,
      delivering = false, restartable = ${IS_NEWEST}
    from old where transfers.id = old.id returning old.*
  ), partner as (
    update partners p set transfer_count = transfer_count - 1
    from gone where p.partner_id = gone.partner_id and gone.status = 'COMPLETED'
  ), server as (
    update listeners l set total_transfers = total_transfers - 1
    from gone where l.server_id = gone.listener and gone.status = 'COMPLETED'
  ), fetched as (
    delete from waiting_files where transfer in (select id from gone)
  ), sent as (
    delete from sent_files where transfer in (select id from gone)
  )
  select id from transfers where id = :id and fence = :fence`;

/**
 * The end of transfers that went well, in the order of design §3: the intent, for a file whose delivery would be costly to
 * prove afterwards; then, when the file has its name, COMPLETED. Both are for the owner of the record alone (`fence`).
 */
export class Completions {
  readonly #options: CompletionsOptions;
  readonly #completed: Batches<CompletedRow, boolean>;
  /** Records that may say COMPLETED until they are withdrawn, by id. */
  readonly #withdrawing = new Map<number, Promise<boolean>>();

  constructor(options: CompletionsOptions) {
    this.#options = options;
    const { knex, underWay } = options;
    this.#completed = new Batches({ run: (rows) => complete(rows, 'together', knex), underWay });
  }

  /** Until when the end of a transfer that ends now may wait for the database, in the clock of `performance`. */
  deadline(): number {
    return performance.now() + (this.#options.patienceMs ?? PATIENCE_MS);
  }

  /**
   * Records what is about to be delivered: whoever finds this record without its owner knows what to look for.
   * @throws PesitError 2-201 when it could not be recorded by `deadline`, 2-207 when another has taken the transfer;
   *   nothing may be delivered then
   */
  async intend(record: RecordHandle, completion: TransferCompletion, deadline: number): Promise<void> {
    await this.#patiently(
      record,
      deadline,
      async () => {
        const { id, fence } = record;
        const kept = this.#options.knex('transfers').where({ id, fence, status: 'IN_PROGRESS' });
        if ((await kept.update({ ...completionColumns(completion), delivering: true })) > 0) return 'written';
        // Nothing has the name yet: who has the record, or has completed it, did so without this attempt.
        if ((await this.#reopen(record)) !== 'again') throw taken(id);
        return 'again';
      },
      () => undefined,
    );
  }

  /**
   * Records COMPLETED; the file is on stable storage under its final name already. Resolves when that is committed, and
   * only then may the partner be told. While the database is away it is tried again, until `deadline`.
   * @throws PesitError 2-201 when it could not be committed in time. Whether the last attempt took effect is not known
   *   then: the record is withdrawn as soon as the database answers, since the partner will hear that the transfer failed.
   *   2-207 when another has taken the transfer; with the condition `claim lost` when that one has not said by `deadline` whether it
   *   found the file delivered, which then must stay
   */
  async complete(record: RecordHandle, completion: TransferCompletion, deadline: number): Promise<void> {
    await this.#patiently(
      record,
      deadline,
      () => this.#commit(record, completion),
      (attempt) => {
        this.#withdrawAfter(record, attempt);
      },
    );
  }

  /**
   * Whether the partner was told that this transfer failed, while a late commit may still make its record COMPLETED: what the record says
   * then is not to be believed, until it is withdrawn. Known to this process alone: to others the mark of the delivery says so.
   */
  isWithdrawing(id: number): boolean {
    return this.#withdrawing.has(id);
  }

  /**
   * Resolves when the record says that its transfer failed, or at once when nothing is to be withdrawn.
   * @returns false when it did not become known what the record says: another has it, or it could not be written
   */
  async withdrawn(id: number): Promise<boolean> {
    return (await this.#withdrawing.get(id)) ?? true;
  }

  /**
   * Withdraws what a record says of a delivery that was taken back: FAILED, restartable, and not counted.
   * @returns false when the record is another's by now
   */
  async withdraw({ id, fence }: RecordHandle): Promise<boolean> {
    const { rows } = await this.#options.knex.raw<{ rows: readonly object[] }>(WITHDRAW, {
      id,
      fence,
      diagnostic: '2-201',
      message: 'the database was not available at the end of the transfer: the partner was told to come again',
    });
    return rows.length > 0;
  }

  /** Records COMPLETED as soon as the database answers: a delivered file can no longer be taken back. */
  completeLater(record: RecordHandle, completion: TransferCompletion): void {
    void this.#options.outbox.add('completed transfer', async () => {
      while ((await this.#commit(record, completion)) === 'again');
      // Claimed by another: that one says what became of it.
    });
  }

  /** Tries again while the database is away; `late` is called when the last attempt may still take effect. */
  async #patiently(
    { id }: RecordHandle,
    deadline: number,
    write: () => Promise<Written>,
    late: (attempt: Promise<unknown>) => void,
  ): Promise<void> {
    const { events } = this.#options;
    let told = false;
    let isClaimed = false;
    for (;;) {
      const attempt = write();
      const outcome = await settledWithin(attempt, deadline - performance.now());
      if (outcome.kind === 'done' && outcome.value === 'written') return;
      if (outcome.kind === 'done' && outcome.value === 'claimed') {
        isClaimed = true;
        if (performance.now() + RETRY_MS >= deadline) throw taken(id, true);
        await delay(RETRY_MS);
      }
      if (outcome.kind === 'done') continue;
      if (outcome.kind === 'failed' && !isDatabaseUnavailable(outcome.error)) throw outcome.error;
      // The one that has claimed the transfer keeps it, whatever became of the last question.
      if (isClaimed && outcome.kind === 'late') throw taken(id, true);
      const cause = outcome.kind === 'failed' ? outcome.error : new Error('no answer in time');
      if (outcome.kind === 'late' || performance.now() + RETRY_MS >= deadline) {
        late(attempt);
        throw noDatabase(cause);
      }
      const aside = told ? 'end still not recorded' : 'end not recorded yet';
      events.publish(TRANSFER_ASIDE, { session: undefined, id, aside, facts: { reason: (cause as Error).message } });
      told = true;
      await delay(RETRY_MS);
    }
  }

  /** With others that end now; what those left out, because it is locked or no longer ours, is tried alone. */
  async #commit(record: RecordHandle, completion: TransferCompletion): Promise<Written> {
    const row = { record, completion };
    if (await this.#completed.add(row)) return 'written';
    const [isWritten] = await complete([row], 'alone', this.#options.knex);
    return isWritten === true ? 'written' : this.#reopen(record);
  }

  /**
   * A record that is not IN_PROGRESS although its owner still works on it.
   * @returns `again` when it is open again; `written` when it is completed: an earlier attempt took effect although its answer was
   *   lost, or another process has found the delivered file; `claimed` while another process has it
   * @throws PesitError 2-207 when another has taken the transfer, and not found it delivered
   */
  async #reopen({ id, fence, attempts }: RecordHandle): Promise<Written> {
    const { knex } = this.#options;
    const row = await knex('transfers')
      .where({ id })
      .first<{ status: string; fence: number; attempts: number } | undefined>();
    if (row?.status === 'COMPLETED') return 'written';
    // Another attempt has found nothing delivered; who only claims it may.
    if (row?.status === 'IN_PROGRESS' && row.fence !== fence && row.attempts === attempts) return 'claimed';
    if (row !== undefined && row.fence !== fence) throw taken(id);
    if (row?.status !== 'FAILED') {
      throw new Error(`the record of transfer ${id} is ${row?.status ?? 'gone'}, not IN_PROGRESS`);
    }
    // Another process took this one for dead. It is not.
    const reopened = await knex('transfers').where({ id, fence, status: 'FAILED' }).update({
      status: 'IN_PROGRESS',
      restartable: false,
      end_time: null,
      diagnostic: null,
      error_message: null,
    });
    if (reopened === 0) throw taken(id);
    return 'again';
  }

  #withdrawAfter(record: RecordHandle, attempt: Promise<unknown>): void {
    let isOurs = false;
    const written = this.#options.outbox.add('withdrawn transfer', async () => {
      // Until the attempt has failed for good it may still take effect, after us.
      await attempt.catch(() => undefined);
      isOurs = await this.withdraw(record);
    });
    const withdrawn = written.then(() => {
      this.#withdrawing.delete(record.id);
      return isOurs;
    });
    this.#withdrawing.set(record.id, withdrawn);
  }
}
