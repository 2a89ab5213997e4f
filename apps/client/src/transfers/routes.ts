import {
  answerFile,
  ApiError,
  check,
  contentDigest,
  endpoint,
  exportRoutes,
  historyPageOf,
  loginOf,
  OCTET_STREAM,
} from '@pesit-node/service';
import type { Answer, Endpoint, Routes } from '@pesit-node/service';
import { transferEventRoutes } from '@pesit-node/transfers';
import type { LiveTransfers } from '@pesit-node/transfers';
import type { Request, Response } from 'express';
import { z } from 'zod';

import { idempotencyKeyOf } from './idempotency.js';
import type { TransferRecord } from './record.js';
import {
  activeQuery,
  exportQuery,
  historyQuery,
  MAX_WAIT_SECONDS,
  messageBody,
  receiveBody,
  sendBody,
  statisticsQuery,
  transferAnswer,
  transferDetail,
  transferStatistics,
  uploadQuery,
  waitQuery,
} from './schema.js';
import { sendForm } from './send-form.js';
import type { Caller, Wait } from './entrance.js';
import type { TransferService } from './service.js';

const params = z.strictObject({ id: z.uuid('expected a UUID') });

const FORM_DATA = 'multipart/form-data';
const NOT_FOUND = { 404: 'There is no such transfer.' } as const;
const WAIT_HEADER = { Prefer: '`wait=SECONDS` (RFC 7240): as the query field `wait`.' };
const KEY_HEADER = {
  'Idempotency-Key':
    'A request that is sent again with the same key, fields and content is answered with the first record.',
};
const DIGEST_HEADER = {
  'Content-Digest':
    'sha-256 or sha-512 of the body as it travels (RFC 9530): with another body the answer is a 400, and nothing is kept.',
};
/** Answers to a request for a transfer, as long as its answer is not held for the end. */
const ACCEPTED = {
  200: transferAnswer,
  202: transferAnswer,
  404: 'There is no such remote server, or no such file in the send tree.',
  409: 'The remote server is disabled, or the first request with this Idempotency-Key is still being taken in.',
  422: 'The Idempotency-Key was used for another request, or with another content.',
} as const satisfies Record<number, Answer>;

const FULL = { 507: 'There is no space for the content: see Retry-After.' } as const satisfies Record<number, Answer>;

const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?/i;
/** A message is sent for its answer. */
const MESSAGE_WAIT_SECONDS = 30;

/** `?wait=`, else `Prefer: wait=` (RFC 7240 §4.3), which is cut to what is possible. */
const waitOf = (seconds: number | undefined, req: Request, res: Response, otherwise = 0): Wait | undefined => {
  const preferred = PREFER_WAIT.exec(req.get('Prefer') ?? '')?.[1];
  const wanted = seconds ?? (preferred === undefined ? otherwise : Math.min(Number(preferred), MAX_WAIT_SECONDS));
  if (wanted === 0) return undefined;
  if (seconds === undefined && preferred !== undefined) res.set('Preference-Applied', `wait=${wanted}`);
  const gone = new AbortController();
  // Any reason does; without one, a DOMException is made for each request.
  res.once('close', () => gone.abort('closed'));
  return { seconds: wanted, signal: gone.signal };
};

const callerOf = (...[seconds, req, res, otherwise]: Parameters<typeof waitOf>): Caller => ({
  wait: waitOf(seconds, req, res, otherwise),
  key: idempotencyKeyOf(req.get('Idempotency-Key')),
  actor: loginOf(req)?.username,
});

/** 202 while the transfer runs, 200 when its end is known. */
const accepted = (res: Response, record: TransferRecord): void => {
  const isOver = record.status !== 'PENDING' && record.status !== 'IN_PROGRESS';
  answered(res, record, isOver ? 200 : 202);
};

const answered = (res: Response, record: TransferRecord, status: 200 | 202): void => {
  res.status(status).location(`/api/v1/transfers/${record.id}`).json(record);
};

/** The body, piece by piece. @throws {ApiError} 400 when the caller ends before all of it came, or it is not what `Content-Digest` says */
async function* bodyOf(req: Request): AsyncGenerator<Buffer, void, undefined> {
  const digest = contentDigest(req.get('Content-Digest'));
  try {
    // Not destroyed when the reader gives up: the caller shall still hear why.
    for await (const piece of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      digest?.update(piece);
      yield piece;
    }
  } catch (cause) {
    throw new ApiError('VALIDATION_ERROR', 'The upload ended before all of it had come: send it again', { cause });
  }
  digest?.end();
}

/** The file of a form, and what follows it, for the digest is of the whole body. */
async function* toTheEnd(
  content: AsyncIterable<Buffer>,
  body: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  yield* content;
  while ((await body.next()).done !== true);
}

/** Takes a file from the body of a request. */
const taking = async (req: Request, res: Response, take: () => Promise<void>): Promise<void> => {
  try {
    await take();
  } catch (error) {
    // The rest of the body is not read: the connection cannot be used again.
    if (!req.complete) res.set('Connection', 'close');
    throw error;
  }
};

const sendRoute = (transfers: TransferService): Endpoint => {
  const sends = {
    summary: 'Sends a file',
    role: 'operator' as const,
    description: `The file is in the body of JSON, or in the send tree; or it is the body itself (${OCTET_STREAM}), with the other fields in the query; or the part \`file\` of a form (${FORM_DATA}), behind the other fields. 202, or 200 when the answer was held until the end.`,
    headers: { ...WAIT_HEADER, ...KEY_HEADER, ...DIGEST_HEADER },
    answers: { ...ACCEPTED, ...FULL },
  };
  const json = endpoint(
    { ...sends, body: sendBody, query: waitQuery, upload: uploadQuery },
    async ({ body, query, req, res }) => accepted(res, await transfers.send(body, callerOf(query.wait, req, res))),
  );
  const upload = endpoint({ ...sends, query: uploadQuery, upload: uploadQuery }, ({ query, req, res }) =>
    taking(req, res, async () => {
      accepted(res, await transfers.upload(query, bodyOf(req), callerOf(query.wait, req, res)));
    }),
  );
  const form = endpoint({ ...sends, query: z.looseObject({}), upload: uploadQuery }, ({ query, req, res }) =>
    taking(req, res, async () => {
      const body = bodyOf(req);
      const { fields, content } = await sendForm(req.get('Content-Type') ?? '', body, query);
      const asked = check(uploadQuery, fields, 'body');
      const whole = req.get('Content-Digest') === undefined ? content : toTheEnd(content, body);
      accepted(res, await transfers.upload(asked, whole, callerOf(asked.wait, req, res)));
    }),
  );
  const handle: Endpoint['handle'] = (req, res, next) => {
    // Asked of the header: an empty file has no body, and still is an upload.
    const type = req.get('Content-Type')?.split(';', 1)[0]?.trim().toLowerCase();
    return (type === OCTET_STREAM ? upload : type === FORM_DATA ? form : json).handle(req, res, next);
  };
  return { operation: json.operation, handle };
};

/** @param answerMs how long the volume may take to answer a read, milliseconds */
export const transferRoutes = (
  routes: Routes,
  transfers: TransferService,
  live: LiveTransfers<unknown>,
  answerMs: () => number,
): void => {
  routes.resource('/api/v1/transfers/send', { post: sendRoute(transfers) });
  routes.resource('/api/v1/transfers/receive', {
    post: endpoint(
      {
        summary: 'Receives a file',
        role: 'operator',
        headers: { ...WAIT_HEADER, ...KEY_HEADER },
        body: receiveBody,
        query: waitQuery,
        answers: ACCEPTED,
      },
      async ({ body, query, req, res }) => accepted(res, await transfers.receive(body, callerOf(query.wait, req, res))),
    ),
  });
  routes.resource('/api/v1/transfers/message', {
    post: endpoint(
      {
        summary: 'Sends a message',
        role: 'operator',
        description: `The answer is held for ${MESSAGE_WAIT_SECONDS} seconds unless \`wait\` says otherwise.`,
        headers: { ...WAIT_HEADER, ...KEY_HEADER },
        body: messageBody,
        query: waitQuery,
        answers: ACCEPTED,
      },
      async ({ body, query, req, res }) =>
        accepted(res, await transfers.message(body, callerOf(query.wait, req, res, MESSAGE_WAIT_SECONDS))),
    ),
  });
  routes.resource(['/api/v1/transfers/history', '/api/v1/transfers'], {
    get: endpoint(
      { summary: 'The history of transfers', query: historyQuery, answers: { 200: historyPageOf(transferAnswer) } },
      async ({ query, res }) => res.json(await transfers.history(query)),
    ),
  });
  routes.resource('/api/v1/cluster/transfers', {
    get: endpoint(
      {
        summary: 'The transfers that run now, on all pods: `node` is the name of the pod',
        query: activeQuery,
        answers: { 200: historyPageOf(transferAnswer) },
      },
      async ({ query, res }) => res.json(await transfers.history({ ...query, status: 'IN_PROGRESS' })),
    ),
  });
  exportRoutes(routes, {
    path: '/api/v1/transfers',
    query: exportQuery,
    // The texts of a message are in its own record alone.
    fields: Object.keys(transferAnswer.omit({ message: true, reply: true }).shape),
    batches: (filter) => transfers.batches(filter),
  });
  routes.resource('/api/v1/transfers/stats', {
    get: endpoint(
      {
        summary: 'Totals of the history: counts, bytes, rates and durations, all together or in groups',
        query: statisticsQuery,
        answers: { 200: transferStatistics },
      },
      async ({ query, res }) => res.json(await transfers.statistics(query)),
    ),
  });
  transferEventRoutes(routes, { live, params, record: transferAnswer.omit({ message: true, reply: true }) });
  routes.resource('/api/v1/transfers/:id', {
    get: endpoint(
      {
        summary: 'A transfer or a message: its attempts one by one, terms, points, and its diagnostic in words',
        params,
        answers: { 200: transferDetail, ...NOT_FOUND },
      },
      async ({ params: { id }, res }) => res.json(await transfers.get(id)),
    ),
  });
  routes.resource('/api/v1/transfers/:id/release', {
    post: endpoint(
      {
        summary: 'Lets the transfers go that wait for a failed one of their order',
        role: 'operator',
        audit: ['transfer', 'released'],
        params,
        answers: { 200: transferAnswer, ...NOT_FOUND, 409: 'It did not fail, or no order waits for it.' },
      },
      async ({ params: { id }, res }) => res.json(await transfers.release(id)),
    ),
  });
  for (const [verb, act, done, summary] of [
    ['retry', transfers.retry, 'retried', 'Tries a failed transfer again, from where it was interrupted'],
    ['replay', transfers.replay, 'replayed', 'Makes a new transfer of the same request'],
    ['cancel', transfers.cancel, 'cancelled', 'Ends a transfer for good'],
  ] as const) {
    routes.resource(`/api/v1/transfers/:id/${verb}`, {
      post: endpoint(
        {
          summary,
          role: 'operator',
          audit: ['transfer', done],
          headers: WAIT_HEADER,
          params,
          query: waitQuery,
          answers: {
            ...{ 200: transferAnswer, 202: transferAnswer, ...NOT_FOUND, ...FULL },
            409: 'Not possible in the state that the transfer is in, or the content that came with its request is gone.',
          },
        },
        async ({ params: { id }, query, req, res }) => {
          const wait = waitOf(query.wait, req, res);
          const record = await act(id, wait, loginOf(req)?.username);
          // One that waited is CANCELLED at once: the wish was still taken, and nobody waited for the end.
          if (wait === undefined) answered(res, record, 202);
          else accepted(res, record);
        },
      ),
    });
  }
  routes.resource('/api/v1/transfers/:id/content', {
    get: endpoint(
      {
        summary: 'A received file',
        role: 'operator',
        params,
        headers: { Range: 'A part of it alone (RFC 9110 §14).' },
        answers: {
          200: { contentType: OCTET_STREAM, description: 'The file.' },
          206: { contentType: OCTET_STREAM, description: 'The part that was asked for.' },
          404: 'There is no such transfer, or no file of it.',
          409: 'It is not a file that was received, or not yet.',
          416: 'Range asks for no part of the file: `Content-Range` says how long it is.',
        },
      },
      async ({ params: { id }, req, res }) => {
        const { file, name } = await transfers.content(id);
        await answerFile(req, res, file, { name, limitMs: answerMs() });
      },
    ),
  });
};
