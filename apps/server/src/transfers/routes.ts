import { endpoint, exportRoutes, historyPageOf, notFound, showBytes } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { freeMessageText, messageText, showDate } from '@pesit-node/transfers';
import type { z } from 'zod';

import {
  activeQuery,
  exportQuery,
  historyQuery,
  statisticsQuery,
  transferAnswer,
  transferDetail,
  transferParams,
  transferStatistics,
} from './schema.js';
import type { TransferDetail, TransferRow, TransferStore } from './store.js';

/** A record of the history as the interface shows it. */
const toTransfer = (row: TransferRow): z.output<typeof transferAnswer> => ({
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

/** One record: of a message its text, too. */
const toDetail = (row: TransferDetail): z.output<typeof transferDetail> => ({
  ...toTransfer(row),
  ...(row.message === null ? {} : { message: messageText(row.message, row.data_code) }),
});

export const transferRoutes = (routes: Routes, store: TransferStore): void => {
  routes.resource('/api/v1/transfers', {
    get: endpoint(
      {
        summary: 'The history of what partners wrote and read',
        query: historyQuery,
        answers: { 200: historyPageOf(transferAnswer) },
      },
      async ({ query, res }) => {
        res.json(await store.page(query, toTransfer));
      },
    ),
  });
  routes.resource(['/api/v1/transfers/active', '/api/v1/cluster/transfers'], {
    get: endpoint(
      {
        summary: 'The transfers that run now, on all pods: `node` is the name of the pod',
        query: activeQuery,
        answers: { 200: historyPageOf(transferAnswer) },
      },
      async ({ query, res }) => {
        res.json(await store.page({ ...query, status: 'IN_PROGRESS' }, toTransfer));
      },
    ),
  });
  exportRoutes(routes, {
    path: '/api/v1/transfers',
    query: exportQuery,
    fields: Object.keys(transferAnswer.shape),
    batches: (filter) => store.batches(filter, toTransfer),
  });
  routes.resource('/api/v1/transfers/stats', {
    get: endpoint(
      {
        summary: 'Totals of the history',
        query: statisticsQuery,
        answers: { 200: transferStatistics },
      },
      async ({ query, res }) => {
        res.json(await store.statistics(query));
      },
    ),
  });
  routes.resource('/api/v1/transfers/:id', {
    get: endpoint(
      {
        summary: 'A transfer or a message',
        params: transferParams,
        answers: { 200: transferDetail, 404: 'There is no such transfer.' },
      },
      async ({ params: { id }, res }) => {
        const row = await store.get(id);
        if (row === undefined) throw notFound('Transfer', id, '/api/v1/transfers');
        res.json(toDetail(row));
      },
    ),
  });
};
