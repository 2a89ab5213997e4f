import {
  answerFile,
  callerOf,
  endpoint,
  exportRoutes,
  historyPageOf,
  notFound,
  OCTET_STREAM,
} from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { transferEventRoutes } from '@pesit-node/transfers';
import type { LiveTransfers } from '@pesit-node/transfers';

import { toDetail, toTransfer } from './answers.js';
import type { CancelTransfer } from './cancel.js';
import type { OpenContent } from './content.js';
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
import type { TransferStore } from './store.js';

export interface TransferRoutesDeps {
  readonly transfers: TransferStore;
  readonly live: LiveTransfers<unknown>;
  readonly cancel: CancelTransfer;
  readonly openContent: OpenContent;
}

export const transferRoutes = (
  routes: Routes,
  { transfers: store, live, cancel, openContent }: TransferRoutesDeps,
): void => {
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
        summary: 'Totals of the history: counts, bytes, rates and durations, all together or in groups',
        query: statisticsQuery,
        answers: { 200: transferStatistics },
      },
      async ({ query, res }) => {
        res.json(await store.statistics(query));
      },
    ),
  });
  transferEventRoutes(routes, { live, params: transferParams, record: transferAnswer });
  routes.resource('/api/v1/transfers/:id', {
    get: endpoint(
      {
        summary: 'A transfer or a message: its attempts one by one, terms, points, and its diagnostic in words',
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
  routes.resource('/api/v1/transfers/:id/cancel', {
    post: endpoint(
      {
        summary: 'Ends a transfer that runs for good, on whatever pod',
        description:
          'The partner hears IDT 2-216 with end code 12. IN_PROGRESS as long as it has not acknowledged that.',
        role: 'operator',
        audit: ['transfer', 'cancelled'],
        params: transferParams,
        answers: {
          202: transferAnswer,
          404: 'There is no such transfer.',
          409: 'It has ended, or its end has come and it is about to complete.',
          503: 'The pod that runs it did not answer.',
        },
      },
      async ({ params: { id }, req, res }) => {
        res.status(202).json(toTransfer(await cancel(id, callerOf(req))));
      },
    ),
  });
  routes.resource('/api/v1/transfers/:id/content', {
    get: endpoint(
      {
        summary: 'The file that was received or sent',
        description: 'Only with `transfer.content-download`; each request is in the audit log.',
        role: 'admin',
        audit: ['transfer', 'content read'],
        recorded: true,
        params: transferParams,
        headers: { Range: 'A part of it alone (RFC 9110 §14).' },
        answers: {
          200: { contentType: OCTET_STREAM, description: 'The file.' },
          206: { contentType: OCTET_STREAM, description: 'The part that was asked for.' },
          404: 'There is no such transfer.',
          409: 'It is a message, or not COMPLETED.',
          410: 'The file was fetched, moved, replaced or changed since.',
          416: 'Range asks for no part of the file: `Content-Range` says how long it is.',
        },
      },
      async ({ params: { id }, req, res }) => {
        const { file, ...options } = await openContent(id, callerOf(req));
        await answerFile(req, res, file, options);
      },
    ),
  });
};
