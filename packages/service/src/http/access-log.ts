import { randomUUID } from 'node:crypto';

import type { Request, RequestHandler, Response } from 'express';

import { loginOf } from '../auth/roles.js';
import type { Logger } from '../logging.js';

const REQUEST_ID = /^[\w.:-]{1,64}$/;

/**
 * One line a request when it is over: method, path, status, duration, request id, and who has logged in; no header, no query, no body.
 * Writes at info, reads and refusals at debug, failures at warn. The id is the caller's `X-Request-Id` when it is a
 * plausible one, else a new UUID; the answer carries it.
 */
export const accessLog =
  (logger: Logger): RequestHandler =>
  (req, res, next) => {
    const given = req.headers['x-request-id'];
    const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
    res.setHeader('X-Request-Id', requestId);
    const began = performance.now();
    let isOver = false;
    const over = (error?: Error): void => {
      if (isOver) return;
      isOver = true;
      const level = levelOf(req, res, error);
      // Nobody reads the line of most requests: it is not made for them.
      if (!logger.isLevelEnabled(level)) return;
      const durationMs = Math.round(performance.now() - began);
      const actor = loginOf(req)?.username;
      const { method, originalUrl } = req;
      const path = originalUrl.split('?', 1)[0] ?? '';
      const line = { requestId, method, path, status: res.statusCode, durationMs };
      logger[level](actor === undefined ? line : { ...line, actor }, 'request');
    };
    // Comes behind `finish`, and alone where the caller has gone.
    res.once('close', () => over());
    // Stays: an error that nobody listens to ends the process.
    res.on('error', over);
    next();
  };

const levelOf = (req: Request, res: Response, error: Error | undefined): 'debug' | 'info' | 'warn' => {
  if (error !== undefined || res.statusCode >= 500) return 'warn';
  return res.statusCode >= 400 || req.method === 'GET' || req.method === 'HEAD' ? 'debug' : 'info';
};
