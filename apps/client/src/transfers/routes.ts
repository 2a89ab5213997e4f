import { ApiError, endpoint, resource, validation } from '@pesit-node/service';
import type { IRouter, Request, RequestHandler, Response } from 'express';
import { z } from 'zod';

import { idempotencyKeyOf } from './idempotency.js';
import type { TransferRecord } from './record.js';
import { historyQuery, messageBody, receiveBody, sendBody, uploadQuery, waitQuery } from './schema.js';
import type { Caller, TransferService, Wait } from './service.js';

const params = z.strictObject({ id: z.uuid('expected a UUID') });

const OCTET_STREAM = 'application/octet-stream';
const PREFER_WAIT = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?/i;
const MAX_WAIT_SECONDS = 300;
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
});

/** 202 while the transfer goes on, 200 when the caller has waited for its end. */
const accepted = (res: Response, record: TransferRecord): void => {
  const isOver = record.status !== 'PENDING' && record.status !== 'IN_PROGRESS';
  res
    .status(isOver ? 200 : 202)
    .location(`/api/v1/transfers/${record.id}`)
    .json(record);
};

/** The body, piece by piece. @throws {ApiError} 400 when the caller ends before all of it came */
async function* bodyOf(req: Request): AsyncGenerator<Buffer> {
  try {
    // Not destroyed when the reader gives up: the caller shall still hear why.
    yield* req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw new ApiError('VALIDATION_ERROR', 'The upload ended before all of it had come', { cause });
  }
}

const sendRoute = (transfers: TransferService): RequestHandler => {
  const json = endpoint({ body: sendBody, query: waitQuery }, async ({ body, query, req, res }) =>
    accepted(res, await transfers.send(body, callerOf(query.wait, req, res))),
  );
  const upload = endpoint({ query: uploadQuery }, async ({ query, req, res }) => {
    try {
      accepted(res, await transfers.upload(query, bodyOf(req), callerOf(query.wait, req, res)));
    } catch (error) {
      // The rest of the body is not read: the connection cannot be used again.
      if (!req.complete) res.set('Connection', 'close');
      throw error;
    }
  });
  return (req, res, next) => {
    if (typeof req.is('multipart/form-data') === 'string') {
      const message = `multipart/form-data is not taken: send the file alone as the body, with Content-Type ${OCTET_STREAM} and the other fields in the query`;
      throw new ApiError('UNSUPPORTED_MEDIA_TYPE', message);
    }
    // Asked of the header: an empty file has no body, and still is an upload.
    const isUpload = req.get('Content-Type')?.split(';', 1)[0]?.trim().toLowerCase() === OCTET_STREAM;
    return (isUpload ? upload : json)(req, res, next);
  };
};

/** Sends a received file as bytes, whatever its name looks like. */
const download = (res: Response, { path, name }: { readonly path: string; readonly name: string }): Promise<void> =>
  new Promise((resolve, reject) => {
    const headers = { 'Content-Type': OCTET_STREAM };
    res.download(path, name, { headers, dotfiles: 'allow', cacheControl: false }, (error: Error | undefined) => {
      if (error === undefined || res.headersSent) {
        resolve();
        return;
      }
      // What is answered instead is JSON, and no file.
      for (const header of ['Content-Type', 'Content-Disposition', 'Content-Range']) res.removeHeader(header);
      const { code, status } = error as { readonly code?: string; readonly status?: number };
      if (code === 'ENOENT') reject(new ApiError('FILE_NOT_FOUND', 'The received file was removed', { cause: error }));
      else if (status === 416) reject(validation([{ field: 'Range', message: 'no such part of the file' }]));
      else reject(error);
    });
  });

export const transferRoutes = (router: IRouter, transfers: TransferService): void => {
  resource(router, '/api/v1/transfers/send', { post: sendRoute(transfers) });
  resource(router, '/api/v1/transfers/receive', {
    post: endpoint({ body: receiveBody, query: waitQuery }, async ({ body, query, req, res }) =>
      accepted(res, await transfers.receive(body, callerOf(query.wait, req, res))),
    ),
  });
  resource(router, '/api/v1/transfers/message', {
    post: endpoint({ body: messageBody, query: waitQuery }, async ({ body, query, req, res }) =>
      accepted(res, await transfers.message(body, callerOf(query.wait, req, res, MESSAGE_WAIT_SECONDS))),
    ),
  });
  resource(router, ['/api/v1/transfers/history', '/api/v1/transfers'], {
    get: endpoint({ query: historyQuery }, async ({ query, res }) => res.json(await transfers.history(query))),
  });
  resource(router, '/api/v1/transfers/:id', {
    get: endpoint({ params }, async ({ params: { id }, res }) => res.json(await transfers.get(id))),
  });
  for (const [verb, act] of [
    ['retry', transfers.retry],
    ['replay', transfers.replay],
    ['cancel', transfers.cancel],
  ] as const) {
    resource(router, `/api/v1/transfers/:id/${verb}`, {
      post: endpoint({ params, query: waitQuery }, async ({ params: { id }, query, req, res }) =>
        accepted(res, await act(id, waitOf(query.wait, req, res))),
      ),
    });
  }
  resource(router, '/api/v1/transfers/:id/content', {
    get: endpoint({ params }, async ({ params: { id }, res }) => download(res, await transfers.content(id))),
  });
};
