import { randomUUID } from 'node:crypto';

import type { RequestHandler } from 'express';
import { pinoHttp } from 'pino-http';

import { loginOf } from '../auth/roles.js';
import type { Logger } from '../logging.js';

const REQUEST_ID = /^[\w.:-]{1,64}$/;

interface Line {
  readonly method: string | undefined;
  readonly path: string;
  readonly status: number;
  readonly durationMs: number;
  /** Who has logged in. */
  readonly actor?: string;
}

/**
 * One line a request when it is over: method, path, status, duration, request id, and who has logged in; no header, no query, no body.
 * Writes at info, reads and refusals at debug, failures at warn. The id is the caller's `X-Request-Id` when it is a
 * plausible one, else a new UUID; the answer carries it.
 */
export const accessLog = (logger: Logger): RequestHandler =>
  pinoHttp({
    logger,
    genReqId: (req, res) => {
      const given = req.headers['x-request-id'];
      const id = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
      res.setHeader('X-Request-Id', id);
      return id;
    },
    quietReqLogger: true,
    quietResLogger: true,
    customAttributeKeys: { reqId: 'requestId' },
    customLogLevel: (req, res, error) => {
      if (error !== undefined || res.statusCode >= 500) return 'warn';
      return res.statusCode >= 400 || req.method === 'GET' || req.method === 'HEAD' ? 'debug' : 'info';
    },
    customSuccessMessage: () => 'request',
    customErrorMessage: () => 'request',
    customSuccessObject: (req, res, bindings: { readonly responseTime: number }) => line(req, res.statusCode, bindings),
    customErrorObject: (req, res, _error, bindings: { readonly responseTime: number }) =>
      line(req, res.statusCode, bindings),
  }) as RequestHandler;

const line = (
  req: { readonly method?: string | undefined; readonly url?: string | undefined },
  status: number,
  { responseTime }: { readonly responseTime: number },
): Line => ({
  method: req.method,
  path: ((req as { originalUrl?: string }).originalUrl ?? req.url ?? '').split('?', 1)[0] ?? '',
  status,
  durationMs: responseTime,
  ...actorOf(req as Parameters<typeof loginOf>[0]),
});

const actorOf = (req: Parameters<typeof loginOf>[0]): Pick<Line, 'actor'> => {
  const login = loginOf(req);
  return login === undefined ? {} : { actor: login.username };
};
