import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { silentLogger } from '@pesit-node/service/testing';

import { redisMemory } from '../src/memory.js';
import type { SharedMemory } from '../src/memory.js';
import { RedisLink } from '../src/redis-link.js';
import { redisAt } from '../src/redis-server.js';
import { openRedis, startProxy, withRedis } from './support/redis.js';
import type { RedisProxy } from './support/redis.js';

withRedis(({ url, unique }) => {
  let proxy: RedisProxy;
  let link: RedisLink;
  let memory: SharedMemory;
  beforeEach(async () => {
    proxy = await startProxy(url);
    link = new RedisLink(redisAt(proxy.url), silentLogger);
    memory = redisMemory(link);
    await new Promise<void>((resolve) => link.once('connected', resolve));
  });
  afterEach(async () => {
    link.close();
    await proxy.close();
  });

  test('keeps texts, under a prefix of its own, for ever', async () => {
    const key = unique();
    expect(await memory.read(key)).toBeNull();
    await memory.write(key, 'one');
    await memory.write(key, 'two');
    expect(await memory.read(key)).toBe('two');
    const redis = openRedis(url);
    expect([await redis.get(`pesit:${key}`), await redis.ttl(`pesit:${key}`)]).toEqual(['two', -1]);
    redis.disconnect();
  });

  test('a Redis that does not answer is given up soon, and asked again', async () => {
    const key = unique();
    proxy.freeze();
    const begun = performance.now();
    await expect(memory.write(key, 'late')).rejects.toThrow('Command timed out');
    expect(performance.now() - begun).toBeLessThan(10_000);
    proxy.thaw();
    await memory.write(key, 'now');
    expect(await memory.read(key)).toBe('now');
  });

  test('one that is away says so at once', async () => {
    await proxy.cut();
    while (link.commands.status === 'ready') await new Promise(setImmediate);
    await expect(memory.read(unique())).rejects.toThrow();
    await expect(memory.write(unique(), 'x')).rejects.toThrow();
  });
});
