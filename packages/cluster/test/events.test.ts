import { randomUUID } from 'node:crypto';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openDatabase, PeriodicWork } from '@pesit-node/service';
import type { Database } from '@pesit-node/service';
import { captureLog, silentLogger, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import type { Redis } from 'ioredis';

import { DatabaseEvents } from '../src/database-events.js';
import type { ClusterEvents, Topic } from '../src/events.js';
import { LocalBus } from '../src/local-events.js';
import { RedisEvents } from '../src/redis-events.js';
import { RedisLink } from '../src/redis-link.js';
import { redisAt } from '../src/redis-server.js';
import { startPooler } from './support/pooler.js';
import { openRedis, startProxy, withRedis } from './support/redis.js';

/** What a test waits for. */
const signal = () => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
};

/** Resolves when the listener was called once more. */
const nextCall = (events: ClusterEvents, topic: Topic): Promise<void> =>
  new Promise((resolve) => {
    const end = events.subscribe(topic, () => {
      end();
      resolve();
    });
  });

interface Pods {
  /** One more pod of the cluster, that hears already. */
  readonly join: (cluster?: string) => Promise<ClusterEvents>;
}

/** What every implementation of the port must do. */
const contract = (name: string, setUp: () => Pods): void => {
  describe(name, () => {
    let pods: Pods;
    beforeEach(() => {
      pods = setUp();
    });

    test('all others hear, the one that tells does not', async () => {
      const [one, two, three] = [await pods.join(), await pods.join(), await pods.join()];
      let own = 0;
      one.subscribe('license', () => {
        own += 1;
      });
      const heard = [nextCall(two, 'license'), nextCall(three, 'license')];
      one.tell('license');
      await Promise.all(heard);
      // What two tells later arrives later: by then its own event would have come back to one.
      const last = nextCall(one, 'members');
      two.tell('members');
      await last;
      expect(own).toBe(0);
    });

    test('topics are told apart', async () => {
      const [one, two] = [await pods.join(), await pods.join()];
      const heard: string[] = [];
      two.subscribe('license', () => void heard.push('license'));
      const members = nextCall(two, 'members');
      one.tell('members');
      await members;
      expect(heard).toEqual([]);
    });

    test('what comes while a listener is busy makes one more call', async () => {
      const [one, two] = [await pods.join(), await pods.join()];
      const [begun, goOn, over] = [signal(), signal(), signal()];
      let calls = 0;
      let busy = 0;
      two.subscribe('license', async () => {
        calls += 1;
        expect((busy += 1)).toBe(1);
        begun.resolve();
        await goOn.promise;
        busy -= 1;
        if (calls === 2) over.resolve();
      });
      one.tell('license');
      await begun.promise;
      for (let count = 0; count < 5; count += 1) one.tell('license');
      const last = nextCall(two, 'members');
      one.tell('members');
      await last;
      goOn.resolve();
      await over.promise;
      await nextTurn();
      expect(calls).toBe(2);
    });

    test('a subscription ends, and so does a member', async () => {
      const [one, two, three] = [await pods.join(), await pods.join(), await pods.join()];
      let calls = 0;
      const end = two.subscribe('license', () => void (calls += 1));
      two.subscribe('members', () => void (calls += 1));
      end();
      one.tell('license');
      await two.close();
      const last = nextCall(three, 'members');
      one.tell('members');
      await last;
      expect(calls).toBe(0);
    });
  });
};

/** Not `once` of node:events, which rejects on the errors that are expected here. */
const next = (connection: Redis, event: string): Promise<void> =>
  new Promise((resolve) => void connection.once(event, () => resolve()));

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

contract('in one process', () => {
  const bus = new LocalBus();
  return { join: () => Promise.resolve(bus.join()) };
});

withDatabase((harness) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await harness.open();
  });
  const closers: (() => void | Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const LOST =
    'cannot hear of other pods through PostgreSQL: the service keeps working, and looks at the database every few seconds instead';
  const AGAIN = 'hears of other pods through PostgreSQL again';

  interface JoinOptions {
    /** Default: the database itself. */
    readonly by?: Pick<Database, 'listen'>;
    readonly logger?: typeof silentLogger;
    readonly probeMs?: number;
  }

  const begin = (cluster: string, { by = database, logger = silentLogger, probeMs }: JoinOptions = {}) => {
    const events = new DatabaseEvents({
      ...{ cluster, instance: randomUUID(), logger },
      database: { knex: database.knex, listen: (asked) => by.listen(asked) },
      periodic: new PeriodicWork({ logger: silentLogger }),
      retryMs: { first: 5, longest: 50 },
      ...(probeMs !== undefined && { probeMs }),
    });
    closers.push(() => events.close());
    return events;
  };
  const join = async (cluster: string, options?: JoinOptions): Promise<DatabaseEvents> => {
    const events = begin(cluster, options);
    await nextCall(events, 'members');
    return events;
  };

  contract('through PostgreSQL', () => {
    const cluster = randomUUID();
    return { join: () => join(cluster) };
  });

  test('clusters of one database do not hear each other, and a message of a newer version, or of nobody, is passed over', async () => {
    const [paris, lyon] = [randomUUID(), randomUUID()];
    const [one, other] = [await join(paris), await join(lyon)];
    let heard = 0;
    other.subscribe('license', () => void (heard += 1));
    one.tell('license');
    const last = nextCall(other, 'members');
    const strange = ['', 'license', `${lyon} x leader`, ` ${lyon} license`, `${lyon} x license2 `, 'x'.repeat(7999)];
    for (const payload of [...strange, `${lyon} x members`]) {
      await database.knex.raw('select pg_notify(?, ?)', ['pesit_events', payload]);
    }
    await last;
    expect(heard).toBe(0);
  });

  test('what is told before the connection is there, or while it is away, is told afterwards', async () => {
    const cluster = randomUUID();
    const other = await join(cluster);
    const first = nextCall(other, 'license');
    const one = begin(cluster);
    one.tell('license');
    await first;
    // Both lose their connection, at whatever moment: one tells, and the other looks when it hears again.
    const second = nextCall(other, 'members');
    await terminate();
    one.tell('members');
    await second;
  });

  const terminate = () =>
    database.knex.raw(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'pesit-node-events' and datname = current_database()`);

  test('a connection that the server ends is replaced: logged once each, and whoever listens is asked to look', async () => {
    const cluster = randomUUID();
    const log = captureLog();
    const events = await join(cluster, { logger: log.logger });
    await events.look();
    expect(events.connected).toBe(true);
    const caughtUp = nextCall(events, 'license');
    await terminate();
    await caughtUp;
    const heard = nextCall(events, 'license');
    (await join(cluster)).tell('license');
    await heard;
    expect(log.entries().map(({ level, msg }) => [level, msg])).toEqual([
      ['warn', LOST],
      ['info', AGAIN],
    ]);
    expect(log.entries()[0]).toMatchObject({ reason: expect.stringMatching(/terminat/) });
  });

  describe('behind a pooler that loses notifications', () => {
    const openBehind = async () => {
      const pooler = await startPooler(database.url);
      closers.push(() => pooler.close());
      const behind = await openDatabase({
        ...{ url: pooler.url, dataDirectory: '/nowhere', name: 'test', searchPath: ['public'], logger: silentLogger },
      });
      closers.push(() => behind.close());
      return { pooler, by: behind };
    };

    test('it is said what to change, and heard as soon as they come through', async () => {
      const { pooler, by } = await openBehind();
      pooler.lose(true);
      const log = captureLog();
      const said = log.next(LOST);
      const events = begin(randomUUID(), { by, logger: log.logger, probeMs: 20 });
      await said;
      const caughtUp = nextCall(events, 'license');
      expect(events.connected).toBe(false);
      pooler.lose(false);
      await caughtUp;
      expect(log.entries()).toEqual([
        expect.objectContaining({ msg: LOST, reason: expect.stringContaining('pooler in transaction mode') }),
        expect.objectContaining({ msg: AGAIN }),
      ]);
    });

    test('a connection by which nothing comes any more is found by the next look', async () => {
      const { pooler, by } = await openBehind();
      const cluster = randomUUID();
      const log = captureLog();
      const events = await join(cluster, { by, logger: log.logger, probeMs: 20 });
      pooler.lose(true);
      const said = log.next(LOST);
      await events.look();
      await said;
      expect(events.connected).toBe(false);
    });
  });
});

withRedis(({ url, unique }) => {
  const closers: (() => void | Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const join = async (cluster: string, at = url, logger = silentLogger) => {
    const link = new RedisLink(redisAt(at), logger);
    closers.push(() => link.close());
    const events = new RedisEvents(link, cluster, unique());
    await nextCall(events, 'members');
    return { link, events };
  };

  contract('through Redis', () => {
    const cluster = unique();
    return { join: async () => (await join(cluster)).events };
  });

  test('clusters do not hear each other', async () => {
    const [paris, lyon] = [unique(), unique()];
    const one = (await join(paris)).events;
    const two = (await join(paris)).events;
    const other = (await join(lyon)).events;
    let heard = 0;
    other.subscribe('license', () => void (heard += 1));
    const arrived = nextCall(two, 'license');
    one.tell('license');
    await arrived;
    const last = nextCall(other, 'members');
    (await join(lyon)).events.tell('members');
    await last;
    expect(heard).toBe(0);
  });

  test('a message of a newer version, or of nobody, is passed over', async () => {
    const cluster = unique();
    const { events } = await join(cluster);
    let heard = 0;
    events.subscribe('license', () => void (heard += 1));
    const last = nextCall(events, 'members');
    const redis = openRedis(url);
    closers.push(() => redis.disconnect());
    for (const message of ['', 'leader 7', 'license2 x', '\u0000', 'members x']) {
      await redis.publish(`pesit:events:${cluster}`, message);
    }
    await last;
    expect(heard).toBe(0);
  });

  test('Redis goes and comes back: logged once each, and whoever listens is asked to look', async () => {
    const cluster = unique();
    const proxy = await startProxy(url);
    closers.push(() => proxy.close());
    const log = captureLog();
    const { events, link } = await join(cluster, proxy.url, log.logger);
    const other = (await join(cluster)).events;
    const closed = next(link.subscriber, 'close');
    await proxy.cut();
    await closed;
    expect(link.connected).toBe(false);
    events.tell('license');
    // Three attempts that fail.
    for (let count = 0; count < 3; count += 1) await next(link.subscriber, 'reconnecting');
    const caughtUp = nextCall(events, 'license');
    await proxy.mend();
    await caughtUp;
    expect(link.connected).toBe(true);
    const heard = nextCall(events, 'license');
    other.tell('license');
    await heard;
    expect(log.entries().map(({ level, msg }) => [level, msg])).toEqual([
      ['warn', 'could not reach Redis: the service keeps working, and looks at the database instead'],
      ['info', 'connected to Redis again'],
    ]);
  });

  test('a Redis that is not there at the start is waited for', async () => {
    const proxy = await startProxy(url);
    closers.push(() => proxy.close());
    await proxy.cut();
    const log = captureLog();
    const link = new RedisLink(redisAt(proxy.url), log.logger);
    closers.push(() => link.close());
    await next(link.subscriber, 'reconnecting');
    const events = new RedisEvents(link, unique(), unique());
    const caughtUp = nextCall(events, 'license');
    await proxy.mend();
    await caughtUp;
    expect(log.entries().map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  test('a wrong password is said, without the password, and tried again', async () => {
    const wrong = new URL(url);
    wrong.password = 'not-the-Pa55word';
    wrong.username = '';
    const log = captureLog();
    const link = new RedisLink(redisAt(wrong.href), log.logger);
    closers.push(() => link.close());
    await next(link.subscriber, 'reconnecting');
    await next(link.subscriber, 'reconnecting');
    expect(link.connected).toBe(false);
    expect(log.entries()).toEqual([
      expect.objectContaining({ level: 'warn', reason: expect.stringMatching(/WRONGPASS/) }),
    ]);
    expect(log.lines.join('')).not.toContain('not-the-Pa55word');
  });
});
