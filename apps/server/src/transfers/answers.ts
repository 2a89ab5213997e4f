import { showBytes } from '@pesit-node/service';
import { attemptsOf, diagnosticWords, freeMessageText, messageText, pointsOf, showDate } from '@pesit-node/transfers';
import type { KeptAttempt } from '@pesit-node/transfers';
import type { z } from 'zod';

import type { transferAnswer, transferDetail } from './schema.js';
import type { TransferDetail, TransferRow } from './store.js';

/** A record of the history as the interface shows it. */
export const toTransfer = (row: TransferRow): z.output<typeof transferAnswer> => ({
  id: row.id,
  type: row.type,
  partnerId: row.partner_id,
  direction: row.direction,
  filename: row.filename,
  virtualFileId: row.virtual_file_id,
  size: row.size,
  status: row.status,
  startTime: row.start_time.toISOString(),
  endTime: row.end_time?.toISOString() ?? null,
  duration: row.end_time === null ? null : row.end_time.getTime() - row.start_time.getTime(),
  transferId: row.transfer_id,
  listener: row.listener,
  node: row.node,
  sessionId: row.session_id,
  remoteAddress: row.remote_address,
  bytesTransferred: row.bytes_transferred,
  articles: row.articles,
  syncPoint: row.sync_point,
  attempts: row.attempts,
  restartable: row.restartable,
  checksum: row.checksum,
  diagnostic: row.diagnostic,
  diagnosticComplement: showBytes(row.diagnostic_complement),
  errorMessage: row.error_message,
  label: row.label,
  freeMessage: freeMessageText(row.free_message),
  originalSender: row.original_sender,
  finalReceiver: row.final_receiver,
  creationDate: showDate(row.creation_date),
  compression: row.compression ?? 'none',
  fileType: row.file_type,
  occurrences: row.occurrences,
  lastOccurrence: row.last_occurrence?.toISOString() ?? null,
});

type Attempts = z.output<typeof transferDetail>['attemptList'];

/** The record itself is its last attempt. */
const lastAttempt = (row: TransferDetail): KeptAttempt & { readonly listener: string } => ({
  status: row.status,
  startTime: (row.attempt_time ?? row.start_time).toISOString(),
  endTime: row.end_time?.toISOString() ?? null,
  ...{ node: row.node, listener: row.listener, sessionId: row.session_id, remoteAddress: row.remote_address },
  ...{ diagnostic: row.diagnostic, errorMessage: row.error_message },
  ...{ bytesTransferred: row.bytes_transferred, articles: row.articles, syncPoint: row.sync_point, terms: row.terms },
});

/** One record: of a message its text, too. */
export const toDetail = (row: TransferDetail): z.output<typeof transferDetail> => ({
  ...toTransfer(row),
  ...diagnosticWords(row.diagnostic),
  terms: row.terms,
  points: pointsOf(row.sync_point, { dataBytes: row.point_bytes, articles: row.point_articles }, row.pacings),
  attemptList: attemptsOf([...(row.former_attempts ?? []), lastAttempt(row)], row.attempts) as Attempts,
  ...(row.message === null ? {} : { message: messageText(row.message, row.data_code) }),
});
