import { createHmac } from 'node:crypto';
import { request as requestHttp } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { RequestOptions } from 'node:https';

import { lookUpOutside, refuseLinkLocal } from '@pesit-node/service';

import { tailOf } from './tail.js';
import type { Attempted, Notice } from './attempt.js';

export interface Receiver {
  readonly url: string;
  /** Key of the HMAC. */
  readonly key: Buffer;
  /** PEM of the CAs that may vouch for it; undefined: those of Node.js. */
  readonly cas: readonly string[] | undefined;
}

/** Bytes of an answer that are read: what is left is not waited for. */
const MOST_BYTES = 4096;
/** The most that `Retry-After` may ask for. */
const LONGEST_WAIT_MS = 3_600_000;

/** `webhook-signature` of the Standard Webhooks specification: HMAC-SHA256 over id, timestamp and body. @param timestamp seconds since 1970 */
export const signatureOf = (key: Buffer, id: string, timestamp: number, body: string): string =>
  `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;

/** Milliseconds; undefined: the answer does not say. RFC 9110 §10.2.3 */
export const retryAfterOf = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined;
  const wait = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), LONGEST_WAIT_MS);
};

const ask = (receiver: Receiver, { id, attempt, body }: Notice, signal: AbortSignal): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const url = new URL(receiver.url);
    // An address is not looked up.
    refuseLinkLocal(url.hostname);
    const timestamp = Math.floor(Date.now() / 1000);
    const options: RequestOptions = {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(body),
        'Accept-Encoding': 'identity',
        'User-Agent': 'pesit-node',
        'webhook-id': id,
        'webhook-timestamp': String(timestamp),
        'webhook-signature': signatureOf(receiver.key, id, timestamp, body),
        'webhook-attempt': String(attempt),
      },
      signal,
      agent: false,
      lookup: lookUpOutside,
      ...(receiver.cas === undefined ? {} : { ca: [...receiver.cas] }),
    };
    const asked = url.protocol === 'https:' ? requestHttps(url, options, resolve) : requestHttp(url, options, resolve);
    asked.on('error', reject);
    asked.end(body);
  });

/** The beginning of what the receiver says, for the operator. */
const wordsOf = async (answer: IncomingMessage): Promise<string | undefined> => {
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes >= MOST_BYTES) break;
    }
  } catch {
    // The part that came is enough.
  }
  return bytes === 0 ? undefined : tailOf(Buffer.concat(pieces).subarray(0, MOST_BYTES));
};

const REFUSED: Readonly<Record<number, string>> = {
  410: 'the receiver wants no more deliveries (410)',
};

const reasonOf = (status: number): string => {
  if (REFUSED[status] !== undefined) return REFUSED[status];
  if (status >= 300 && status < 400)
    return `the receiver answered ${status}: redirects are not followed, correct the target`;
  return `the receiver answered ${status}: expected 200 to 299`;
};

/**
 * Posts a notice, signed. Delivered is what a receiver has answered with 200 to 299. Never rejects.
 * @param timeoutMs until the status of the answer, and of one that is not good until the end of what it says
 */
export const postNotice = async (
  receiver: Receiver,
  notice: Notice,
  timeoutMs: number,
  stopped: AbortSignal,
): Promise<Attempted> => {
  const limit = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([limit, stopped]);
  try {
    const answer = await ask(receiver, notice, signal);
    try {
      const statusCode = answer.statusCode ?? 0;
      if (statusCode >= 200 && statusCode < 300) return { outcome: 'delivered', statusCode };
      const retryAfterMs =
        statusCode === 429 || statusCode === 503 ? retryAfterOf(answer.headers['retry-after'], Date.now()) : undefined;
      const output = await wordsOf(answer);
      return {
        outcome: 'failed',
        statusCode,
        reason: reasonOf(statusCode),
        output,
        retryAfterMs,
        gone: statusCode === 410,
      };
    } finally {
      // An error after the status changes nothing.
      answer.on('error', () => undefined);
      answer.destroy();
    }
  } catch (error) {
    if (stopped.aborted)
      return { outcome: 'interrupted', reason: 'the service stopped while the request was under way' };
    if (limit.aborted) return { outcome: 'failed', reason: `the receiver did not answer within ${timeoutMs / 1000} s` };
    const { message, code } = error as NodeJS.ErrnoException;
    const words = code !== undefined && !message.includes(code) ? `${message} (${code})` : message;
    return { outcome: 'failed', reason: `the receiver cannot be asked: ${words || 'no connection'}` };
  }
};
