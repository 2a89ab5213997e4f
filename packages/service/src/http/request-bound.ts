import type { RequestHandler } from 'express';

import { unavailable } from '../errors.js';

/** Connections that are left to probes and to the login, whatever else runs. */
const KEPT_FREE = 8;

/** Requests that run at a time, of callers who have logged in; beyond it they are answered 503. */
export const requestBound = (maxConnections: () => number): RequestHandler => {
  let running = 0;
  return (_req, res, next) => {
    if (running >= maxConnections() - KEPT_FREE) {
      next(unavailable(`${running} requests run here at a time, as many as http.max-connections allows: try again`));
      return;
    }
    running++;
    res.once('close', () => running--);
    next();
  };
};
