import { request as requestHttp } from 'node:http';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';

import { lookUpOutside, refuseLinkLocal } from '@pesit-node/service';

/** Something that another server has, asked for within bounds. */
export interface FetchOptions {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Milliseconds until the last byte, redirects included. */
  readonly timeoutMs: number;
  /** Bytes of the answer. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

export interface Fetched {
  /** 200, or 304 to a request with a condition. */
  readonly status: number;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  readonly body: Buffer;
}

/** It could not be fetched. The message says why, and shows nothing of the answer: who asks may not be who may read it. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
}

const MAX_REDIRECTS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const GOOD: ReadonlySet<number> = new Set([200, 304]);

const ask = (url: URL, { method = 'GET', headers = {}, body }: FetchOptions, signal: AbortSignal) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    // An address is not looked up.
    refuseLinkLocal(url.hostname);
    const options: RequestOptions = {
      method,
      headers: { 'Accept-Encoding': 'identity', ...headers },
      signal,
      agent: false,
      lookup: lookUpOutside,
    };
    const asked = url.protocol === 'https:' ? requestHttps(url, options, resolve) : requestHttp(url, options, resolve);
    asked.on('error', reject);
    asked.end(body);
  });

const gather = async (answer: IncomingMessage, maxBytes: number): Promise<Buffer> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw new FetchError(`it has more than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
};

const next = (url: URL, location: string | undefined): URL => {
  if (!URL.canParse(location ?? '', url.href)) throw new FetchError('it is redirected to nowhere');
  const to = new URL(location ?? '', url);
  if (to.protocol !== 'http:' && to.protocol !== 'https:') {
    throw new FetchError(`it is redirected to ${to.protocol} and only http and https are followed`);
  }
  return to;
};

const textOf = (error: Error & { readonly code?: string }): string =>
  error instanceof FetchError ? error.message : (error.code ?? error.message);

/** Asks for `url`, with http or https, through at most 3 redirects. @throws {FetchError} */
export const fetchBounded = async (url: string, options: FetchOptions): Promise<Fetched> => {
  const limit = AbortSignal.timeout(options.timeoutMs);
  const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
  try {
    let from = new URL(url);
    for (let redirects = 0; ; redirects++) {
      const answer = await ask(from, options, signal);
      try {
        const status = answer.statusCode ?? 0;
        if (REDIRECTS.has(status)) {
          if (redirects === MAX_REDIRECTS) throw new FetchError(`it is redirected more than ${MAX_REDIRECTS} times`);
          from = next(from, answer.headers.location);
          continue;
        }
        if (!GOOD.has(status)) throw new FetchError(`the server answers ${status}`);
        const { etag, 'last-modified': lastModified } = answer.headers;
        return { status, etag, lastModified, body: await gather(answer, options.maxBytes) };
      } finally {
        answer.destroy();
      }
    }
  } catch (error) {
    if (limit.aborted) throw new FetchError(`it did not come whole within ${options.timeoutMs} ms`, { cause: error });
    throw new FetchError(textOf(error as Error), { cause: error });
  }
};
