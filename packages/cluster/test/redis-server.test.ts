import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { PeriodicWork } from '@pesit-node/service';
import type { CommonConfig } from '@pesit-node/service';
import { captureLog, freePort, silentLogger, testConfig } from '@pesit-node/service/testing';

import { RedisLink } from '../src/redis-link.js';
import { redisAt, redisServer } from '../src/redis-server.js';
import type { RedisServer } from '../src/redis-server.js';
import { canSign, makeCertificates, RedisProcesses, withRedisProcesses } from './support/redis-processes.js';
import { startProxy, withRedis } from './support/redis.js';

const configured = (overrides: Partial<CommonConfig>): RedisServer | undefined =>
  redisServer(testConfig('server', { 'data.directory': '/tmp/x', 'cluster.enabled': true, ...overrides }));

const standalone = { host: 'h', port: 6379, db: 0 };

describe('where Redis is', () => {
  test.each<[string, Partial<CommonConfig>, RedisServer | undefined]>([
    ['nowhere', {}, undefined],
    ['the pods are no cluster', { 'cluster.enabled': false, 'redis.url': 'redis://h' }, undefined],
    ['a host', { 'redis.url': 'redis://h' }, standalone],
    [
      'all of a URL',
      { 'redis.url': 'redis://us%2Fer:pa%40ss@[::1]:7000/3' },
      { host: '::1', port: 7000, username: 'us/er', password: 'pa@ss', db: 3 },
    ],
    ['a % that encodes nothing', { 'redis.url': 'redis://:50%@h' }, { ...standalone, password: '50%' }],
    [
      'a login beside the URL',
      { 'redis.url': 'redis://a:b@h', 'redis.username': 'user', 'redis.password': 'p%41' },
      { ...standalone, username: 'user', password: 'p%41' },
    ],
    ['TLS', { 'redis.url': 'rediss://h' }, { ...standalone, tls: {} }],
    [
      'sentinels alone',
      { 'redis.sentinels': ['one', 'two:26400', '[::1]', '[::2]:7'] },
      {
        db: 0,
        name: 'mymaster',
        sentinels: [
          { host: 'one', port: 26_379 },
          { host: 'two', port: 26_400 },
          { host: '::1', port: 26_379 },
          { host: '::2', port: 7 },
        ],
      },
    ],
    [
      'sentinels, each login its own, TLS to both',
      {
        'redis.url': 'rediss://:pass@not-asked/2',
        'redis.sentinels': ['one'],
        'redis.sentinel-name': 'paris',
        'redis.sentinel-username': 'su',
        'redis.sentinel-password': 'sp',
      },
      {
        ...{ db: 2, password: 'pass', tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true },
        ...{
          name: 'paris',
          sentinelUsername: 'su',
          sentinelPassword: 'sp',
          sentinels: [{ host: 'one', port: 26_379 }],
        },
      },
    ],
  ])('%s', (_, config, server) => {
    expect(configured(config)).toEqual(server);
  });

  test('a file that cannot be read is named, with its key', () => {
    expect(() => configured({ 'redis.url': 'rediss://h', 'redis.tls-ca': '/does/not/exist' })).toThrow(
      /redis\.tls-ca: expected a file that can be read: ENOENT.*\/does\/not\/exist/,
    );
  });
});

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const connect = (server: RedisServer) => {
  const log = captureLog();
  const link = new RedisLink(server, log.logger);
  closers.push(() => link.close());
  return { link, log };
};

const connected = (link: RedisLink): Promise<void> => new Promise((resolve) => void link.once('connected', resolve));

/** Not `once` of node:events, which rejects on the errors that are expected here. */
const closed = (link: RedisLink): Promise<void> =>
  new Promise((resolve) => void link.commands.once('close', () => resolve()));

withRedis(({ url }) => {
  test('a Redis that falls silent is noticed by both connections, and left', async () => {
    const proxy = await startProxy(url);
    closers.push(() => proxy.close());
    const { link, log } = connect(redisAt(proxy.url));
    await connected(link);
    const both = Promise.all([
      closed(link),
      new Promise<void>((resolve) => void link.subscriber.once('close', () => resolve())),
    ]);
    proxy.freeze();
    await link.look();
    await both;
    expect(link.connected).toBe(false);
    await proxy.cut();
    const again = connected(link);
    await proxy.mend();
    await again;
    await link.look();
    expect(log.entries().map(({ level }) => level)).toEqual(['warn', 'info']);
  });
});

withRedisProcesses(() => {
  let redis: RedisProcesses;
  beforeEach(() => {
    redis = new RedisProcesses();
  });
  afterEach(() => redis.close());

  const LOGIN = ['requirepass node-pass', 'masterauth node-pass', 'save ""'];

  const watchedBySentinel = async (...more: readonly string[]) => {
    const master = await redis.start([...LOGIN, ...more]);
    const replica = await redis.start([...LOGIN, ...more, `replicaof 127.0.0.1 ${String(master.port)}`]);
    const sentinel = await redis.start(
      [
        ...['requirepass sentinel-pass', ...more],
        `sentinel monitor paris 127.0.0.1 ${String(master.port)} 1`,
        'sentinel auth-pass paris node-pass',
        'sentinel down-after-milliseconds paris 500',
        'sentinel failover-timeout paris 3000',
      ],
      '--sentinel',
    );
    return { master, replica, sentinel };
  };

  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    'the sentinels name the next master when the first had %s; each has its password',
    async (signal) => {
      const { master, replica, sentinel } = await watchedBySentinel();
      const { link, log } = connect(
        configured({
          // The first of them is not there.
          'redis.sentinels': [`127.0.0.1:${String(await freePort())}`, `127.0.0.1:${String(sentinel.port)}`],
          'redis.sentinel-name': 'paris',
          'redis.sentinel-password': 'sentinel-pass',
          'redis.password': 'node-pass',
        })!,
      );
      await connected(link);
      const portNow = async (): Promise<string> => {
        const info = await link.commands.info('server');
        return /tcp_port:(\d+)/.exec(info)?.[1] ?? info;
      };
      expect(await portNow()).toBe(String(master.port));
      // A sentinel learns of the replica from the master, and of its state from itself.
      const asked = connect({ host: '127.0.0.1', port: sentinel.port, password: 'sentinel-pass' }).link;
      await connected(asked);
      let state: string;
      do state = String(await asked.commands.call('sentinel', 'replicas', 'paris'));
      while (!state.includes('master-link-status,ok'));
      const periodic = new PeriodicWork({ logger: silentLogger });
      link.watch(periodic);
      periodic.start();
      closers.push(() => periodic.stop());
      const again = connected(link);
      master.kill(signal);
      await again;
      // Until the sentinels have decided, they name the old one, whose system still takes connections when it stands still.
      while ((await portNow().catch(() => '')) !== String(replica.port)) await new Promise(setImmediate);
      expect(await link.commands.set('key', 'written')).toBe('OK');
      expect(
        log
          .entries()
          .map(({ level }) => level)
          .join(),
      ).toMatch(/^warn,info(,warn,info)*$/);
    },
  );

  test('sentinels that ask for another password: said once, in words, without the password', async () => {
    const { sentinel } = await watchedBySentinel();
    const { link, log } = connect(
      configured({
        'redis.sentinels': [`127.0.0.1:${String(sentinel.port)}`],
        'redis.sentinel-name': 'paris',
        'redis.sentinel-password': 'not-the-Pa55word',
      })!,
    );
    for (let count = 0; count < 3; count += 1)
      await new Promise<void>((resolve) => void link.commands.once('error', () => resolve()));
    expect(link.connected).toBe(false);
    expect(log.entries()).toEqual([
      expect.objectContaining({ level: 'warn', reason: expect.stringMatching(/sentinels are unreachable.*WRONGPASS/) }),
    ]);
    expect(log.lines.join('')).not.toContain('not-the-Pa55word');
  });

  (canSign() ? describe : describe.skip)('with TLS', () => {
    const secured = () => {
      const files = makeCertificates(redis.directory);
      const lines = [
        ...['port 0', 'tls-port PORT', `tls-ca-cert-file ${files.authority}`, 'tls-replication yes'],
        ...[`tls-cert-file ${files.certificate}`, `tls-key-file ${files.key}`],
      ];
      const keys = {
        ...{ 'redis.tls-ca': files.authority, 'redis.tls-certificate': files.certificate, 'redis.tls-key': files.key },
      };
      return { lines, keys };
    };

    test('both ends show certificates that the authority has signed; others are refused in words', async () => {
      const tls = secured();
      const { port } = await redis.start([...tls.lines, 'requirepass node-pass']);
      const url = `rediss://:node-pass@127.0.0.1:${String(port)}`;
      const { link } = connect(configured({ 'redis.url': url, ...tls.keys })!);
      await connected(link);
      expect(await link.commands.ping()).toBe('PONG');
      const stranger = connect(configured({ 'redis.url': url })!);
      await closed(stranger.link);
      expect(stranger.log.entries()[0]).toMatchObject({
        reason: expect.stringMatching(/certificate/),
      });
      const elsewhere = connect(configured({ 'redis.url': url.replace('127.0.0.1', 'localhost'), ...tls.keys })!);
      await closed(elsewhere.link);
      expect(elsewhere.log.entries()[0]).toMatchObject({ reason: expect.stringMatching(/altnames.*localhost/) });
    });

    test('to sentinels and to the master that they name', async () => {
      const tls = secured();
      const { sentinel } = await watchedBySentinel(...tls.lines);
      const { link } = connect(
        configured({
          ...{ 'redis.url': 'rediss://:node-pass@sentinels', ...tls.keys },
          'redis.sentinels': [`127.0.0.1:${String(sentinel.port)}`],
          ...{ 'redis.sentinel-name': 'paris', 'redis.sentinel-password': 'sentinel-pass' },
        })!,
      );
      await connected(link);
      expect(await link.commands.ping()).toBe('PONG');
    });
  });
});
