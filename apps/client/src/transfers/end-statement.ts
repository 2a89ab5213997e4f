import { keptReason } from '@pesit-node/protocol';
import { hotStatement, jsonBytes, jsonRows } from '@pesit-node/service';
import type { TransferStatus } from '@pesit-node/transfers';
import type { Knex } from 'knex';

import { withAttempt } from './former-attempts.js';
import { columnsOf } from './row.js';
import type { Ended, TransferRow, Waiting } from './row.js';

/** The end of one attempt, under its lease. */
export interface EndedRow {
  readonly id: string;
  readonly fence: number;
  readonly end: Ended | Waiting;
  /** Ends at which the content of the request is given up with the same statement. */
  readonly contentGoesWith: readonly TransferStatus[];
}

/**
 * For the planner, which keeps a plan that it made while the table was new: the rows are few, so that it looks each up by its id, and
 * not in an index of all that are under way.
 */
const FEW = 'g.n = abs(g.n)';
const UNDER_WAY = `t.status || '' = 'IN_PROGRESS'`;

const STATUS = `case when t.cancel_requested and g.status <> 'COMPLETED' then 'CANCELLED' else g.status end`;

/** The attempt that ends, where it did not go well. */
const ENDED = {
  status: `case when ${STATUS} = 'CANCELLED' then 'CANCELLED' else 'FAILED' end`,
  diagnostic: 'g.diagnostic',
  errorMessage: 'g.error_message',
  bytesTransferred: 'coalesce(g.bytes_transferred, t.bytes_transferred)',
  articles: 'coalesce(g.articles, t.articles)',
  syncPoint: 'coalesce(g.sync_point, t.sync_point)',
  place: 'g.place',
};

/**
 * The ends of several attempts, each under the fence of its lease. A wish to cancel that came meanwhile decides, unless the transfer
 * is through.
 * @param locked what to do when somebody else has a row
 */
const endStatement = (locked: 'skip locked' | ''): string => `
  with open as (
    select g.* from json_to_recordset(cast(:rows as json)) as g (n integer, id uuid, fence integer, status text,
      delay double precision, counts text, restartable boolean, content_goes_with text[],
      filename text, size bigint, bytes_transferred bigint, articles bigint, sync_point integer, checksum text, local_path text,
      diagnostic text, error_code text, error_message text, diagnostic_complement bytea, answer_free_message bytea,
      pesit_transfer_id integer, round_trip double precision, advice text, reply bytea, reply_data_code integer, label text,
      free_message bytea, original_sender text, final_receiver text, creation_date text, name_confirmed boolean, place jsonb)
    cross join lateral (
      select from transfers t where t.id = g.id and t.fence = g.fence and ${UNDER_WAY} for no key update ${locked}
    ) t
    where ${FEW}
  )
  update transfers t set
    status = ${STATUS},
    end_time = case when g.status = 'PENDING' and not t.cancel_requested then null else now() end,
    next_attempt_at = case when g.status = 'PENDING' and not t.cancel_requested then now() + g.delay * interval '1 millisecond' end,
    failures = t.failures + case when g.counts = 'failed' then 1 else 0 end,
    postponements = case g.counts when 'later' then t.postponements + 1 else 0 end,
    attempts = t.attempts - case when g.counts in ('later', 'none') then 1 else 0 end,
    restartable = g.restartable and not t.cancel_requested,
    lease_until = null,
    filename = coalesce(g.filename, t.filename), size = coalesce(g.size, t.size),
    bytes_transferred = coalesce(g.bytes_transferred, t.bytes_transferred),
    articles = coalesce(g.articles, t.articles), sync_point = coalesce(g.sync_point, t.sync_point),
    checksum = g.checksum, local_path = g.local_path,
    diagnostic = g.diagnostic, error_code = g.error_code, error_message = g.error_message,
    diagnostic_complement = g.diagnostic_complement, answer_free_message = g.answer_free_message,
    pesit_transfer_id = coalesce(g.pesit_transfer_id, t.pesit_transfer_id),
    round_trip = coalesce(g.round_trip, t.round_trip), advice = coalesce(g.advice, t.advice),
    reply = coalesce(g.reply, t.reply), reply_data_code = coalesce(g.reply_data_code, t.reply_data_code),
    label = coalesce(g.label, t.label), free_message = coalesce(g.free_message, t.free_message),
    original_sender = coalesce(g.original_sender, t.original_sender), final_receiver = coalesce(g.final_receiver, t.final_receiver),
    creation_date = coalesce(g.creation_date, t.creation_date), name_confirmed = coalesce(g.name_confirmed, t.name_confirmed),
    content = case when t.content = 'KEPT' and ${STATUS} = any (g.content_goes_with) then 'REMOVED' else t.content end,
    attempt_place = case when g.status = 'COMPLETED' then g.place end,
    former_attempts = case when g.status = 'COMPLETED' then t.former_attempts else ${withAttempt(ENDED)} end
  from open g where t.id = g.id
  returning ${columnsOf('t')}`;

const STATEMENTS = {
  together: hotStatement<TransferRow>('client_end', endStatement('skip locked')),
  alone: hotStatement<TransferRow>('client_end_alone', endStatement('')),
};

/**
 * @param how `together` leaves out transfers whose record somebody else has locked, `alone` waits for it
 * @returns the record of each as it is now; undefined when the lease was lost
 */
export const writeEnds = async (
  ends: readonly EndedRow[],
  how: keyof typeof STATEMENTS,
  knex: Knex,
): Promise<readonly (TransferRow | undefined)[]> => {
  const rows = jsonRows(ends.map((one, n) => ({ n, ...valuesOf(one) })));
  const ended = await STATEMENTS[how](knex, { rows });
  const byId = new Map(ended.map((row) => [row.id, row]));
  return ends.map(({ id }) => byId.get(id));
};

/** Null stands for a key that is left out. */
const valuesOf = ({ id, fence, end, contentGoesWith }: EndedRow) => ({
  ...{ id, fence, status: end.status, content_goes_with: contentGoesWith },
  delay: 'delay' in end ? end.delay : 0,
  counts: 'counts' in end ? end.counts : 'ended',
  restartable: end.restartable ?? false,
  ...{ filename: end.filename, size: end.size, bytes_transferred: end.bytesTransferred, articles: end.articles },
  ...{ sync_point: end.syncPoint, checksum: end.checksum, local_path: end.localPath },
  ...{ diagnostic: end.diagnostic, error_code: end.errorCode },
  error_message: end.errorMessage === undefined ? undefined : keptReason(end.errorMessage),
  diagnostic_complement: jsonBytes(end.diagnosticComplement),
  answer_free_message: jsonBytes(end.answerFreeMessage),
  ...{ pesit_transfer_id: end.pesitTransferId, round_trip: end.roundTrip, advice: end.advice },
  ...{ reply: jsonBytes(end.reply), reply_data_code: end.replyDataCode, label: end.label },
  free_message: jsonBytes(end.freeMessage),
  ...{ original_sender: end.originalSender, final_receiver: end.finalReceiver },
  ...{ creation_date: end.creationDate, name_confirmed: end.nameConfirmed, place: end.where },
});
