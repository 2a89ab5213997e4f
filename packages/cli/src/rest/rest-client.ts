/** Requests to the REST interface of an app: JSON over HTTP or HTTPS, bounded, with the service's own words where it refuses. */
import { request as requestHttp } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream/promises';
import type { Writable } from 'node:stream';

import { codeOf } from '@pesit-node/ground';

import { CliError } from '../frame/exit-codes.js';
import type { Cause } from '../frame/exit-codes.js';
import type { Service } from './profiles.js';

/** The service bounds its lists; this bounds what is no service of ours. */
const LARGEST_ANSWER = 64 * 1024 * 1024;
const SILENCE_MS = 60_000;

export interface Answer {
  readonly status: number;
  /** Parsed; undefined: there was none. */
  readonly body: unknown;
}

export type Query = Readonly<Record<string, string>>;

const causeOfStatus = (status: number): Cause => {
  if (status === 401 || status === 403) return 'login';
  if (status === 404) return 'notFound';
  if (status === 429 || status >= 500) return 'unavailable';
  return 'refused';
};

interface ErrorBody {
  readonly error?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/** The service's words, field by field. */
const wordsOf = (status: number, body: unknown): string => {
  const { error, message, details } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody;
  const fields = Array.isArray(details)
    ? (details as { field?: string; message?: string }[]).map((one) => `\n  ${one.field ?? ''}: ${one.message ?? ''}`)
    : [];
  const said = typeof message === 'string' ? message : 'the answer has no message: is this a service of ours?';
  // The message of a refused body says the same of its fields in one line.
  const words = fields.length === 0 ? said : (said.split(':')[0] ?? said);
  return `${words}${fields.join('')} (${status}${typeof error === 'string' ? ` ${error}` : ''})`;
};

export class RestClient {
  readonly #service: Service;
  readonly #signal: AbortSignal;

  constructor(service: Service, signal: AbortSignal) {
    this.#service = service;
    this.#signal = signal;
  }

  get(path: string, query: Query = {}): Promise<unknown> {
    return this.call('GET', path, { query });
  }

  /**
   * @returns the body of a positive answer
   * @throws CliError with the words of the service
   */
  async call(
    method: string,
    path: string,
    { query = {}, body }: { readonly query?: Query; readonly body?: unknown } = {},
  ): Promise<unknown> {
    const answer = await this.#request(method, path, query, body);
    const text = await this.#readAll(answer);
    const parsed = parseBody(text);
    requireSuccess(answer.statusCode ?? 0, parsed);
    return parsed;
  }

  /** Copies the body of an answer as it comes; memory stays flat. @throws CliError, or what `to` fails with */
  async download(path: string, to: Writable, query: Query = {}): Promise<void> {
    const answer = await this.#request('GET', path, query, undefined);
    const status = answer.statusCode ?? 0;
    if (status >= 300) requireSuccess(status, parseBody(await this.#readAll(answer)));
    await pipeline(this.#chunks(answer), to);
  }

  /** Server-sent events as they come. @param lastId of the last one that is known. @throws CliError */
  async stream(path: string, lastId: string | undefined): Promise<AsyncIterable<Buffer>> {
    const more = lastId === undefined ? {} : { 'last-event-id': lastId };
    const answer = await this.#request('GET', path, {}, undefined, { accept: 'text/event-stream', ...more });
    const status = answer.statusCode ?? 0;
    if (status !== 200) requireSuccess(status, parseBody(await this.#readAll(answer)));
    return this.#chunks(answer);
  }

  #request(
    method: string,
    path: string,
    query: Query,
    body: unknown,
    more: Readonly<Record<string, string>> = {},
  ): Promise<IncomingMessage> {
    const { url: base, user, password, apiKey, ca } = this.#service;
    const url = new URL(base);
    url.pathname = `${base.pathname.replace(/\/$/, '')}${path}`;
    url.search = new URLSearchParams(query).toString();
    const text = body === undefined ? undefined : JSON.stringify(body);
    const options = {
      method,
      signal: this.#signal,
      timeout: SILENCE_MS,
      headers: {
        accept: 'application/json',
        ...more,
        ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }),
        ...(user === undefined || apiKey !== undefined
          ? {}
          : { authorization: `Basic ${Buffer.from(`${user}:${password ?? ''}`).toString('base64')}` }),
        ...(text === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    };
    return new Promise((resolve, reject) => {
      const made =
        url.protocol === 'https:'
          ? requestHttps(url, { ...options, ...(ca === undefined ? {} : { ca }) }, resolve)
          : requestHttp(url, options, resolve);
      made.on('timeout', () =>
        made.destroy(new CliError('timeout', `${url.origin} has not answered for ${SILENCE_MS / 1000} s`)),
      );
      made.on('error', (error) => reject(this.#unreached(url, error)));
      made.end(text);
    });
  }

  async #readAll(answer: IncomingMessage): Promise<string> {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of this.#chunks(answer)) {
      length += chunk.length;
      if (length > LARGEST_ANSWER)
        throw new CliError('failed', `the answer is longer than ${LARGEST_ANSWER} bytes: ask for less at a time`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  }

  /** A failure of the one who copies them is none of the answer. */
  async *#chunks(answer: IncomingMessage): AsyncGenerator<Buffer> {
    try {
      yield* answer as AsyncIterable<Buffer>;
    } catch (error) {
      throw this.#ended(error as Error, 'the answer was cut off');
    }
  }

  #unreached(url: URL, error: Error): CliError {
    return this.#ended(error, `${url.origin} cannot be reached`);
  }

  #ended(error: Error, what: string): CliError {
    if (error instanceof CliError) return error;
    if (this.#signal.aborted) return new CliError('interrupted', 'interrupted', { cause: error });
    const words = error.message || (codeOf(error) ?? 'no reason given');
    return new CliError('notReached', `${what}: ${words}`, { cause: error });
  }
}

const parseBody = (text: string): unknown => {
  if (text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};

const requireSuccess = (status: number, body: unknown): void => {
  if (status >= 200 && status < 300) return;
  throw new CliError(causeOfStatus(status), wordsOf(status, body), { body });
};
