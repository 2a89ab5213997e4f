import type { Request, RequestHandler } from 'express';

import { ApiError } from '../errors.js';

/** RFC 9110 §9.2.1; everything else may change something. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
/** Fetch metadata: what a page of another origin causes. `none` is the user himself, `same-origin` a page of ours. */
const FOREIGN_SITES: ReadonlySet<unknown> = new Set(['cross-site', 'same-site']);

/**
 * Refuses what a page of another origin makes a browser send with the login that the browser remembers for us. A POST without a
 * body needs no preflight, so that nothing else stands in its way. Programs send neither header.
 */
export const sameOrigin: RequestHandler = (req, _res, next) => {
  const reason = SAFE.has(req.method) ? undefined : foreign(req);
  if (reason === undefined) next();
  else next(new ApiError('FORBIDDEN', `Refused, as a page of another origin may have sent it: ${reason}`));
};

const foreign = (req: Request): string | undefined => {
  const site = req.headers['sec-fetch-site'];
  if (FOREIGN_SITES.has(site)) return `Sec-Fetch-Site is ${String(site)}, expected same-origin or none`;
  const { origin } = req.headers;
  if (origin === undefined || isOwn(origin, req.host)) return undefined;
  return (
    `Origin is ${origin.slice(0, 200)}, expected this host (${(req.headers.host ?? 'no Host').slice(0, 200)}). ` +
    'Behind a proxy that changes Host, let it send X-Forwarded-Host, and name it in http.trusted-proxies'
  );
};

/** The scheme is not compared: a proxy may end TLS in front of us. It decides which port goes without saying. */
const isOwn = (origin: string, host: string | undefined): boolean => {
  try {
    const { protocol, host: given } = new URL(origin);
    return given !== '' && host !== undefined && new URL(`${protocol}//${host}`).host === given;
  } catch {
    return false;
  }
};
