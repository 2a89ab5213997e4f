import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Request, RequestHandler, Response } from 'express';

import { PAGE_PATHS } from './paths.js';

/** Made by `npm run build` of the browser half. */
const SITE = fileURLToPath(new URL('../site/', import.meta.url));

/** Types of the files that the build makes; any other is not served. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/** The best first: `.br` beside a file is the same file in Brotli. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const;

/** No exceptions: whatever is not a file of ours is not loaded, and no page of another origin shows ours in a frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** A hash in the name: a file of another content has another name. */
const HASHED = /^assets\/.+-[\w-]{8}\.\w+$/;

interface Served {
  readonly type: string;
  readonly cache: string;
  /** By encoding; `identity` is always there. */
  readonly bodies: ReadonlyMap<string, Buffer>;
}

const NOT_BUILT = 'The console was not built: run "npm run build" and start again. The REST interface works: see /docs';

/** Every file of the site, read once: they are few and small. A site that was not built has none. */
const readSite = async (directory: string): Promise<ReadonlyMap<string, Served>> => {
  const found = await readdir(directory, { recursive: true }).catch(() => []);
  const names = new Set(found.map((name) => name.replaceAll('\\', '/')));
  const files = [...names].filter((name) => CONTENT_TYPES[extname(name)] !== undefined);
  return new Map(
    await Promise.all(
      files.map(async (name): Promise<[string, Served]> => {
        const body = (suffix = ''): Promise<Buffer> => readFile(join(directory, name + suffix));
        const packed = ENCODINGS.filter(([, suffix]) => names.has(name + suffix));
        const bodies = new Map([['identity', await body()]]);
        for (const [encoding, suffix] of packed) bodies.set(encoding, await body(suffix));
        const cache = HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache';
        return [name, { type: CONTENT_TYPES[extname(name)] ?? '', cache, bodies }];
      }),
    ),
  );
};

const send = (req: Request, res: Response, { type, cache, bodies }: Served): void => {
  const encoding = ENCODINGS.map(([name]) => name).find(
    (name) => bodies.has(name) && req.acceptsEncodings(name) === name,
  );
  const body = bodies.get(encoding ?? 'identity') ?? Buffer.alloc(0);
  res.setHeader('Content-Type', type);
  res.setHeader('Cache-Control', cache);
  res.setHeader('Vary', 'Accept-Encoding');
  res.setHeader('Content-Security-Policy', POLICY);
  if (encoding !== undefined) res.setHeader('Content-Encoding', encoding);
  res.setHeader('Content-Length', body.length);
  res.status(200).end(req.method === 'HEAD' ? undefined : body);
};

const isPage = (path: string): boolean =>
  PAGE_PATHS.some((page) => path === page || (page !== '/' && path.startsWith(`${page}/`)));

/**
 * Answers the pages of the console and the files that they load; leaves everything else to whatever comes after it. Mount it before
 * the login. Reads the files at the first request and keeps them.
 * @param directory of the built site; default: that of this package
 */
export const consolePages = (directory: string = SITE): RequestHandler => {
  let site: Promise<ReadonlyMap<string, Served>> | undefined;
  return async (req, res, next) => {
    const asset = /^\/(assets\/[\w.-]+|icon\.svg)$/.exec(req.path)?.[1];
    const name = asset ?? (isPage(req.path) ? 'index.html' : undefined);
    if (name === undefined || (req.method !== 'GET' && req.method !== 'HEAD')) {
      next();
      return;
    }
    site ??= readSite(directory).catch((error: unknown) => {
      // Asked again by the next request: a build may have replaced the files in that moment.
      site = undefined;
      throw error;
    });
    const file = (await site).get(name);
    if (file !== undefined) {
      send(req, res, file);
      return;
    }
    if (asset !== undefined) {
      next();
      return;
    }
    // A build may have come meanwhile.
    site = undefined;
    res.status(503).type('text').send(NOT_BUILT);
  };
};
