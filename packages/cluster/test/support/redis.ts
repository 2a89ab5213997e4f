/** A real Redis behind a proxy, so that a test can take it away and give it back. */
import { createServer, connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';

import { describe, test } from '@jest/globals';
import { Redis } from 'ioredis';

/** @throws with `CI=true` and no `TEST_REDIS_URL`: what was left out would pass unseen. */
const testRedisUrl = (): string | undefined => {
  const url = process.env['TEST_REDIS_URL'];
  if (url !== undefined && url !== '') return url;
  if (process.env['CI'] !== 'true') return undefined;
  throw new Error('CI=true, but TEST_REDIS_URL is not set: these tests must run on a real Redis');
};

export interface RedisHarness {
  readonly url: string;
  /** Text that no other test has, for names of clusters. */
  readonly unique: () => string;
}

/** Defines tests that need a Redis: left out where there is none. */
export const withRedis = (define: (harness: RedisHarness) => void): void => {
  const url = testRedisUrl();
  if (url === undefined) {
    test.skip('left out: there is no Redis (TEST_REDIS_URL)', () => undefined);
    return;
  }
  describe('with Redis', () => {
    define({ url, unique: () => `test-${randomUUID()}` });
  });
};

export interface RedisProxy {
  /** Leads to the Redis through the proxy. */
  readonly url: string;
  /** Breaks all connections and takes no new one. */
  readonly cut: () => Promise<void>;
  readonly mend: () => Promise<void>;
  /** Connections stay, and nothing comes through any more. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  readonly close: () => Promise<void>;
}

export const startProxy = async (redisUrl: string): Promise<RedisProxy> => {
  const target = new URL(redisUrl);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const upstream = connect(Number(target.port || 6379), target.hostname);
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  const open = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await open(0);
  const cut = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  };
  const url = new URL(redisUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  const mend = async (): Promise<void> => {
    await open(port);
  };
  const freeze = (): void => {
    for (const socket of sockets) socket.pause();
  };
  const thaw = (): void => {
    for (const socket of sockets) socket.resume();
  };
  return { url: url.href, cut, mend, freeze, thaw, close: cut };
};

/** A connection of the test itself. */
export const openRedis = (url: string): Redis => new Redis(url);
