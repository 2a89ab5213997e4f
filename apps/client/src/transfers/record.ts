import { FILE_TYPE_MESSAGE, fromEbcdic } from '@pesit-node/protocol';
import { asBase64, isPlain, readBytes, showBytes } from '@pesit-node/service';
import { attemptsOf, DATA_CODES, diagnosticWords, pointsOf, showDate } from '@pesit-node/transfers';
import type { KeptAttempt } from '@pesit-node/transfers';

import type { Progress, TransferDetailRow, TransferRow } from './row.js';

/**
 * The outbound transfer record of the interface, as a page has it. `duration` in milliseconds, `size` in bytes of the file,
 * `bytesTransferred` and `articles` as PI 27 and PI 28 count them; what is not known (yet) is null. A PENDING one with
 * `nextAttemptAt` waits for another attempt, and says why the last one failed. `restartable`: the next attempt continues where
 * the last one was interrupted. `statusReason`: what a PENDING one waits for that will not come by itself. `label`, `freeMessage`, `originalSender`, `finalReceiver` and `creationDate` are PI 37, 99,
 * 61, 62 and 51, of the partner's file or of the request. `node` is the process that made the last attempt; `roundTrip` in
 * milliseconds and `advice` are what it saw of the line. `nameConfirmed`: whether the partner said that the file is the one
 * that was asked for by its name. `contentKept`: whether the content that came with the request is still there.
 * @param live figures of a running transfer that are newer than its row
 */
export const toPageRecord = (row: TransferRow, live?: Progress) => ({
  id: row.id,
  transferId: row.id,
  type: row.type,
  status: row.status,
  statusReason: whyItWaits(row),
  direction: row.direction,
  filename: row.filename,
  remoteFilename: row.remote_filename,
  virtualFile: row.virtual_file,
  partnerId: row.partner_id,
  serverId: row.server_id,
  serverName: row.server_name,
  size: row.size,
  announcedSize: (row.status === 'IN_PROGRESS' ? live?.announced : undefined) ?? row.announced,
  bytesTransferred: (row.status === 'IN_PROGRESS' ? live?.bytesTransferred : undefined) ?? row.bytes_transferred,
  articles: (row.status === 'IN_PROGRESS' ? live?.articles : undefined) ?? row.articles,
  createdBy: row.created_by,
  createdTime: row.created_time,
  startTime: row.start_time,
  endTime: row.end_time,
  duration: row.start_time && row.end_time ? row.end_time.getTime() - row.start_time.getTime() : null,
  checksum: row.checksum,
  localPath: row.local_path,
  diagnostic: row.diagnostic,
  errorCode: row.error_code,
  errorMessage: row.error_message,
  pesitTransferId: row.pesit_transfer_id,
  attempts: row.attempts,
  nextAttemptAt: isHeld(row) ? null : row.next_attempt_at,
  priority: row.priority,
  notBefore: row.settings.notBefore === undefined ? null : new Date(row.settings.notBefore),
  expiresAt: row.expires_at,
  ordered: row.settings.ordered ?? false,
  restartable: row.restartable,
  syncPoint: (row.status === 'IN_PROGRESS' ? live?.syncPoint : undefined) ?? row.sync_point,
  node: row.node,
  roundTrip: row.round_trip,
  advice: row.advice,
  label: row.label ?? row.settings.label ?? null,
  freeMessage: showBytes(
    row.free_message ?? (row.settings.freeMessage === undefined ? null : readBytes(row.settings.freeMessage)),
  ),
  originalSender: row.original_sender ?? row.settings.originalSender ?? null,
  finalReceiver: row.final_receiver ?? row.settings.finalReceiver ?? null,
  creationDate: showDate(row.creation_date) ?? row.settings.creationDate ?? null,
  nameConfirmed: row.name_confirmed,
  contentKept: row.content && row.content === 'KEPT',
  diagnosticComplement: showBytes(row.diagnostic_complement),
  answerFreeMessage: showBytes(row.answer_free_message),
  ...(row.type === 'MESSAGE' ? { fileType: row.settings.fileType ?? FILE_TYPE_MESSAGE } : {}),
});

/** The same, of a message with its text and the reply. */
export const toRecord = (row: TransferRow, live?: Progress) => ({
  ...toPageRecord(row, live),
  ...(row.type === 'MESSAGE' ? messageOf(row) : {}),
});

/** One record, with what belongs to its attempts. */
export const toDetail = (row: TransferDetailRow, live?: Progress) => {
  const { status, diagnostic, former_attempts: former } = row;
  const attempts = attemptsOf([
    ...(former ?? []),
    ...(status === 'COMPLETED' || status === 'IN_PROGRESS' ? [lastAttempt(row, live)] : []),
  ]);
  return {
    ...toRecord(row, live),
    ...diagnosticWords(diagnostic),
    terms: attempts.at(-1)?.terms ?? null,
    points: pointsOf(row.sync_point, undefined, row.pacings),
    attemptList: attempts,
  };
};

/** The record itself is the last attempt while that runs, and when it went well. */
const lastAttempt = (row: TransferDetailRow, live?: Progress): KeptAttempt => {
  const { status, attempt_place: place } = row;
  const isRunning = status === 'IN_PROGRESS';
  return {
    status,
    startTime: row.attempt_time?.toISOString() ?? (row.attempts === 1 ? (row.start_time?.toISOString() ?? null) : null),
    endTime: row.end_time?.toISOString() ?? null,
    node: row.node,
    ...{
      sessionId: place?.sessionId ?? null,
      remoteAddress: place?.remoteAddress ?? null,
      terms: place?.terms ?? null,
    },
    ...(isRunning ? { diagnostic: null, errorMessage: null } : { diagnostic: row.diagnostic, errorMessage: null }),
    bytesTransferred: (isRunning ? live?.bytesTransferred : undefined) ?? row.bytes_transferred,
    articles: (isRunning ? live?.articles : undefined) ?? row.articles,
    syncPoint: row.sync_point,
  };
};

const isHeld = ({ status, server_enabled: enabled }: TransferRow): boolean => status === 'PENDING' && enabled === false;

const heldBy = ({ server_name: server }: TransferRow): string =>
  `Remote server ${JSON.stringify(server)} is disabled: enable it to let the transfer run, or cancel the transfer`;

const whyItWaits = (row: TransferRow): string | null => {
  if (isHeld(row)) return heldBy(row);
  if (row.status !== 'PENDING' || typeof row.behind !== 'string') return null;
  return `Transfer ${row.behind} comes before it in its order: it begins when that one is COMPLETED or CANCELLED, or released after a failure`;
};

const messageOf = ({ settings, reply, reply_data_code: dataCode }: TransferRow) => ({
  message: settings.message ?? null,
  reply: reply !== null && dataCode === DATA_CODES.ebcdic ? ebcdicText(reply) : showBytes(reply),
});

const ebcdicText = (bytes: Buffer): string => {
  const text = fromEbcdic(bytes);
  return isPlain(text) ? text : asBase64(bytes);
};

export type TransferRecord = ReturnType<typeof toRecord>;
export type PageRecord = ReturnType<typeof toPageRecord>;
