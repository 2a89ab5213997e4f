import { once } from 'node:events';
import { Socket } from 'node:net';

import pg from 'pg';
import type { ConnectionOptions } from 'node:tls';

import { quoted } from './quoted.js';

const CONNECT_MS = 5000;
/** A statement of the connection is answered at once, or never: a host that vanished sends nothing. */
const ANSWER_MS = 5000;
/** How long the connection gets to say goodbye before its socket is closed. */
const GOODBYE_MS = 1000;

export interface ListeningOptions {
  /** Names of channels, at most 63 bytes each. */
  readonly channels: readonly string[];
  /** A notification came, of this connection too. */
  readonly heard: (channel: string, payload: string) => void;
  /** The connection is gone, once, unless `close` ended it. */
  readonly lost: (error: Error) => void;
}

/** A connection that hears what others notify. */
export interface Listening {
  /** Notifies, in a transaction of its own. Answered within 5 s. @param payload at most 7,999 bytes @throws when it could not be said */
  notify(channel: string, payload: string): Promise<void>;
  /** Idempotent; never rejects. */
  close(): Promise<void>;
}

export interface ListeningServer {
  /** Without a word on TLS. */
  readonly url: string;
  readonly tls: ConnectionOptions | false;
}

/**
 * A connection of its own, beside the pool, because one that listens cannot be shared. A notification does not wait for the log
 * on disk: a crash that takes a notification takes the connections of those who would have heard it, too.
 * @throws when PostgreSQL cannot be reached, or does not answer
 */
export const openListening = async (
  { url, tls }: ListeningServer,
  { channels, heard, lost }: ListeningOptions,
): Promise<Listening> => {
  const socket = new Socket();
  const client = new pg.Client({
    connectionString: url,
    ssl: tls,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'pesit-node-events',
    stream: () => socket,
  });
  let isOver = false;
  const end = (error: Error): void => {
    socket.destroy();
    if (isOver) return;
    isOver = true;
    lost(error);
  };
  client.on('error', end);
  client.on('end', () => end(new Error('PostgreSQL closed the connection')));
  client.on('notification', ({ channel, payload = '' }) => {
    if (!isOver) heard(channel, payload);
  });
  const close = async (): Promise<void> => {
    isOver = true;
    if (socket.destroyed) return;
    const closed = once(socket, 'close').catch(() => undefined);
    const timer = setTimeout(() => socket.destroy(), GOODBYE_MS);
    client.end().catch(() => socket.destroy());
    await closed;
    clearTimeout(timer);
  };
  try {
    await client.connect();
    await client.query('set synchronous_commit to off');
    for (const channel of channels) await client.query(`listen ${quoted(channel)}`);
  } catch (error) {
    isOver = true;
    socket.destroy();
    throw error;
  }
  return {
    notify: async (channel, payload) => {
      try {
        await client.query('select pg_notify($1, $2)', [channel, payload]);
      } catch (error) {
        // One that did not answer in time never will, and one that is closing is over.
        end(error as Error);
        throw error;
      }
    },
    close,
  };
};
