import type { Pacing } from '@pesit-node/storage';
import { FORMER_ATTEMPTS, FORMER_REASON } from '@pesit-node/transfers';
import type { Compression, Direction, TransferStatus } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import type { AttemptOrigin, RecordHandle, TransferIdentity, TransferProgress } from './record.js';

export interface ContextsOptions {
  readonly knex: Knex;
  /** Name of this machine or pod. */
  readonly node: string;
  /** UUID of this process. */
  readonly instance: string;
  /** How long a completed or interrupted transfer is known, days. */
  readonly retentionDays: number;
}

/** A transfer that a partner may come back to. Pairs of null: not of its direction. */
export interface ContextRow {
  readonly id: number;
  readonly fence: number;
  readonly status: TransferStatus;
  readonly direction: Direction;
  readonly partner_id: string;
  readonly transfer_id: number;
  readonly virtual_file_id: string;
  readonly instance: string;
  readonly attempts: number;
  readonly start_time: Date;
  readonly filename: string;
  readonly path: string | null;
  readonly label: string | null;
  readonly creation_date: string | null;
  readonly context: string | null;
  readonly directory: string | null;
  readonly overwrite: boolean;
  readonly delivering: boolean;
  readonly size: number | null;
  readonly checksum: string | null;
  readonly compression: Compression | null;
  readonly bytes_transferred: number;
  readonly articles: number;
  readonly sync_point: number;
  readonly point_bytes: number;
  readonly point_articles: number;
  readonly source_size: number | null;
  /** Text, for it does not fit a number. */
  readonly source_mtime_ns: string | null;
  readonly pacings: readonly Pacing[] | null;
}

export interface ExpiredContext {
  readonly id: number;
  readonly fence: number;
  readonly filename: string | null;
  readonly context: string;
  /** Null for a file that was read. */
  readonly directory: string | null;
}

const COLUMNS = `id, fence, status, direction, partner_id, transfer_id, virtual_file_id, instance, attempts, start_time,
  filename, path, label, creation_date, context, directory, overwrite, delivering, size, checksum, compression, bytes_transferred, articles,
  sync_point, point_bytes, point_articles, source_size, source_mtime_ns::text as source_mtime_ns, pacings`;

/** No younger transfer has the identity of this one. */
export const IS_NEWEST = `not exists (
  select from transfers newer where newer.transfer_id = transfers.transfer_id and newer.partner_id = transfers.partner_id
    and newer.id > transfers.id and newer.direction = transfers.direction
    and newer.virtual_file_id = transfers.virtual_file_id
    and newer.original_sender is not distinct from transfers.original_sender
    and newer.final_receiver is not distinct from transfers.final_receiver and newer.context is not null)`;

/** The former attempts of a record, and its last one, which another is about to follow. */
const KEPT_ATTEMPT = `case when jsonb_array_length(former_attempts) >= ${FORMER_ATTEMPTS} then former_attempts - 0
    else coalesce(former_attempts, '[]') end || jsonb_build_object('status', status, 'startTime', coalesce(attempt_time, start_time),
    'endTime', end_time, 'node', node, 'listener', listener, 'sessionId', session_id, 'remoteAddress', remote_address,
    'diagnostic', diagnostic, 'errorMessage', left(error_message, ${FORMER_REASON}), 'bytesTransferred', bytes_transferred,
    'articles', articles, 'syncPoint', sync_point, 'terms', terms)`;

/** The index `transfers_context_idx` serves this. */
const SAME_TRANSFER = `transfer_id = :transferId and partner_id = :partnerId and direction = :direction
  and virtual_file_id = :virtualFileId and original_sender is not distinct from :originalSender
  and final_receiver is not distinct from :finalReceiver`;

const bindingsOf = (identity: TransferIdentity): Record<string, Knex.Value> => ({
  transferId: identity.transferId,
  partnerId: identity.partnerId,
  direction: identity.direction,
  virtualFileId: identity.virtualFileId,
  originalSender: identity.originalSender ?? null,
  finalReceiver: identity.finalReceiver ?? null,
});

/**
 * Transfer contexts (pesit-e.md §5): the records of transfers that are under way, may be restarted, or are complete and may be asked
 * for once more. A session that takes one raises its fence; the writes of a former owner miss from then on.
 */
export class TransferContexts {
  readonly #options: ContextsOptions;

  constructor(options: ContextsOptions) {
    this.#options = options;
  }

  /** The newest transfer of this identity, when a restart can mean it; an older one it cannot. */
  async find(identity: TransferIdentity): Promise<ContextRow | undefined> {
    const { knex, retentionDays } = this.#options;
    const { rows } = await knex.raw<{ rows: (ContextRow & { readonly is_known: boolean })[] }>(
      `select ${COLUMNS}, (status = 'IN_PROGRESS' or ((restartable or status = 'COMPLETED')
         and end_time > now() - make_interval(days => :retentionDays))) as is_known
       from transfers where ${SAME_TRANSFER} and context is not null order by id desc limit 1`,
      { ...bindingsOf(identity), retentionDays },
    );
    const [newest] = rows;
    return newest?.is_known === true ? newest : undefined;
  }

  /** An interrupted transfer of which nothing had moved. */
  async untouched(id: number): Promise<ContextRow | undefined> {
    const { rows } = await this.#options.knex.raw<{ rows: ContextRow[] }>(
      `select ${COLUMNS} from transfers
       where id = ? and restartable and bytes_transferred = 0 and sync_point = 0 and ${IS_NEWEST}`,
      [id],
    );
    return rows[0];
  }

  /**
   * A new attempt of an interrupted transfer begins here.
   * @returns undefined when somebody else was faster
   */
  async take({ id, fence }: RecordHandle, origin: AttemptOrigin): Promise<ContextRow | undefined> {
    const { knex, node, instance } = this.#options;
    const { rows } = await knex.raw<{ rows: ContextRow[] }>(
      `update transfers set former_attempts = ${KEPT_ATTEMPT}, attempt_time = now(), terms = null, status = 'IN_PROGRESS', end_time = null, diagnostic = null, error_message = null,
         diagnostic_complement = null,
         restartable = false, fence = fence + 1, attempts = attempts + 1, node = :node, instance = :instance,
         listener = :listener, session_id = :sessionId, remote_address = :remoteAddress
       where id = :id and fence = :fence and restartable returning ${COLUMNS}`,
      { id, fence, node, instance, ...origin },
    );
    return rows[0];
  }

  /** Transfers under way in other processes, living or not. */
  async elsewhere(): Promise<readonly ContextRow[]> {
    const { knex, instance } = this.#options;
    const { rows } = await knex.raw<{ rows: ContextRow[] }>(
      `select ${COLUMNS} from transfers where status in ('PENDING', 'IN_PROGRESS') and instance <> ? order by id`,
      [instance],
    );
    return rows;
  }

  /**
   * Takes a transfer of a process that is gone, to bring it to its end; no attempt of the partner.
   * @returns undefined when somebody else was faster
   */
  async claim({ id, fence }: RecordHandle): Promise<RecordHandle | undefined> {
    const { knex, instance } = this.#options;
    const rows = await knex('transfers')
      .where({ id, fence })
      .whereIn('status', ['PENDING', 'IN_PROGRESS'])
      .update({ fence: fence + 1, instance })
      .returning<RecordHandle[]>(['id', 'fence']);
    return rows[0];
  }

  /**
   * Takes a completed transfer as it is: nobody withdraws it from now on (`Completions.withdraw`).
   * @returns undefined when its record says something else by now, or another has it
   */
  async keep({ id, fence }: RecordHandle): Promise<ContextRow | undefined> {
    const { knex, instance } = this.#options;
    const { rows } = await knex.raw<{ rows: ContextRow[] }>(
      `update transfers set fence = fence + 1, instance = ?
       where id = ? and fence = ? and status = 'COMPLETED' returning ${COLUMNS}`,
      [instance, id, fence],
    );
    return rows[0];
  }

  /** Whether the record still says COMPLETED, of the same owner. */
  async isCompleted({ id, fence }: RecordHandle): Promise<boolean> {
    const found = this.#options.knex('transfers').where({ id, fence, status: 'COMPLETED' });
    return (await found.first<object | undefined>('id')) !== undefined;
  }

  /** The completed transfers that staged files of these keys belong to. */
  async completedAmong(keys: readonly string[]): Promise<readonly ContextRow[]> {
    const { rows } = await this.#options.knex.raw<{ rows: ContextRow[] }>(
      `select ${COLUMNS} from transfers where context = any (cast(? as uuid[])) and status = 'COMPLETED'`,
      [[...keys]],
    );
    return rows;
  }

  /** Gives a claim back whose files could not be looked at: the transfer is that of the process that is gone, as before. */
  async giveBack({ id, fence }: RecordHandle, instance: string): Promise<void> {
    await this.#options
      .knex('transfers')
      .where({ id, fence })
      .whereIn('status', ['PENDING', 'IN_PROGRESS'])
      .update({ instance });
  }

  /** Whether nobody else has taken the transfer meanwhile. */
  async isOwned({ id, fence }: RecordHandle): Promise<boolean> {
    const row = await this.#options.knex('transfers').where({ id, fence }).first<object | undefined>('id');
    return row !== undefined;
  }

  /** The transfers among the given that another has taken; one that it found delivered is as good as its own. */
  async lostAmong(records: readonly RecordHandle[]): Promise<readonly number[]> {
    if (records.length === 0) return [];
    const { rows } = await this.#options.knex.raw<{ rows: { id: number }[] }>(
      `select v.id from unnest(?::bigint[], ?::int[]) as v (id, fence)
       where not exists (select from transfers t where t.id = v.id and (t.fence = v.fence or t.status = 'COMPLETED'))`,
      [records.map(({ id }) => id), records.map(({ fence }) => fence)],
    );
    return rows.map(({ id }) => id);
  }

  /** How the points of the attempt that begins are placed. To be kept before its first burst leaves. */
  async paced({ id, fence }: RecordHandle, pacings: readonly Pacing[]): Promise<void> {
    await this.#options
      .knex('transfers')
      .where({ id, fence })
      .update({ pacings: JSON.stringify(pacings) });
  }

  /** A completed transfer that turned out to be another one than a partner means: no longer recognised. */
  async forget({ id }: Pick<RecordHandle, 'id'>): Promise<void> {
    await this.#options.knex('transfers').where({ id }).update({ context: null });
  }

  /** Stores the counts of a completed transfer whose articles nobody had counted: PI 27 and PI 28 as its partner confirms them. */
  async count(
    { id, fence }: RecordHandle,
    { dataBytes, articles }: Pick<TransferProgress, 'dataBytes' | 'articles'>,
    compression: Compression,
  ): Promise<void> {
    await this.#options
      .knex('transfers')
      .where({ id, fence, status: 'COMPLETED', articles: 0 })
      .update({ bytes_transferred: dataBytes, articles, compression });
  }

  /** Marks an interrupted transfer that cannot be restarted: the text for the partner is added to its reason. */
  async giveUp({ id, fence }: RecordHandle, reason: string): Promise<void> {
    await this.#options.knex.raw(
      `update transfers set restartable = false, error_message = left(error_message || '; ' || ?, 2000)
       where id = ? and fence = ? and restartable`,
      [reason, id, fence],
    );
  }

  /** Whether a transfer that ended after this one began says that a file of this path is its own. */
  async isDelivered(path: string, since: ContextRow): Promise<boolean> {
    const other = await this.#options
      .knex('transfers')
      .where({ status: 'COMPLETED', path })
      .andWhere('end_time', '>=', since.start_time)
      .whereNot('id', since.id)
      .first<object | undefined>('id');
    return other !== undefined;
  }

  /** Ends interrupted transfers that can no longer be restarted: their time is over, or the partner has begun them anew. */
  async expire(): Promise<readonly ExpiredContext[]> {
    const { knex, retentionDays } = this.#options;
    const { rows } = await knex.raw<{ rows: ExpiredContext[] }>(
      `update transfers set restartable = false, error_message = error_message ||
         case when ${IS_NEWEST} then '; not restarted in time' else '; the partner began it anew' end
       where restartable and (end_time < now() - make_interval(days => ?) or not ${IS_NEWEST})
       returning id, fence, filename, context, directory`,
      [retentionDays],
    );
    return rows;
  }

  /** Those of the given keys of staged files that belong to a transfer which is under way or may be restarted. */
  async wantedAmong(keys: readonly string[], knex = this.#options.knex): Promise<ReadonlySet<string>> {
    const rows = await knex('transfers')
      // One value, however many there are: a statement takes 65,535.
      .whereRaw('context = any (cast(? as uuid[]))', [[...keys]])
      .andWhereRaw("(restartable or status in ('PENDING', 'IN_PROGRESS'))")
      .select<{ context: string }[]>('context');
    return new Set(rows.map(({ context }) => context));
  }
}
