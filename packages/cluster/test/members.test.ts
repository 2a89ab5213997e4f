import { randomUUID } from 'node:crypto';
import { once } from 'node:events';

import { afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PeriodicWork } from '@pesit-node/service';
import { captureLog, withDatabase, emptyTables, silentLogger, testConfig } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { createCluster } from '../src/cluster.js';
import { DatabaseMembers } from '../src/database-members.js';
import { LocalBus } from '../src/local-events.js';
import type { PodIdentity } from '../src/members.js';
import { CLUSTER_MIGRATIONS } from '../src/migrations/index.js';

withDatabase((harness) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await harness.open({ migrations: [CLUSTER_MIGRATIONS], searchPath: ['public'] });
  });

  test('with the embedded database a pod is alone, and asks nothing', async () => {
    const config = testConfig('server', { 'data.directory': '/tmp/x', 'cluster.name': 'paris' });
    const embedded = { ...database, mode: 'embedded' } as const;
    const quiet = { periodic: new PeriodicWork({ logger: silentLogger }), logger: silentLogger };
    const cluster = createCluster({ config, database: embedded, ...quiet, app: 'server', name: 'node-a' });
    const { members } = cluster;
    members.start();
    await members.refresh();
    expect(members.view).toMatchObject({ cluster: 'paris', clusters: ['paris'], pods: [{ name: 'node-a' }] });
    expect(await members.usage()).toEqual({ clusters: 1, podsPerCluster: 1 });
    expect(cluster.redisConnected).toBeUndefined();
    await cluster.stop();
    expect(await rows()).toEqual([]);
  });

  const rows = (): Promise<Record<string, unknown>[]> =>
    database.knex.withSchema('pesit_common').from('cluster_pods').select().orderBy('position');

  describe('pods over one PostgreSQL', () => {
    let bus: LocalBus;
    let periodic: PeriodicWork;
    const all: DatabaseMembers[] = [];
    beforeEach(async () => {
      await emptyTables(database, 'pesit_common');
      bus = new LocalBus();
      periodic = new PeriodicWork({ logger: silentLogger });
      periodic.start();
    });
    afterEach(async () => {
      for (const members of all.splice(0)) await members.leave();
      await periodic.stop();
    });

    interface PodOptions extends Partial<PodIdentity> {
      readonly monotonic?: () => number;
      /** Whether others are told. */
      readonly alone?: boolean;
    }

    /** A pod that has looked once; its timer does not run. */
    const join = async (name: string, { monotonic, alone, ...pod }: PodOptions = {}): Promise<DatabaseMembers> => {
      const members = new DatabaseMembers({
        knex: database.knex,
        pod: { app: 'server', cluster: 'paris', namespace: 'default', name, instance: randomUUID(), ...pod },
        events: (alone === true ? new LocalBus() : bus).join(),
        periodic,
        logger: silentLogger,
        ...(monotonic === undefined ? {} : { monotonic }),
      });
      all.push(members);
      await members.refresh();
      return members;
    };
    const names = ({ view }: DatabaseMembers): readonly string[] | undefined => view?.pods.map(({ name }) => name);
    /** Time goes by for its row alone. */
    const age = async (members: DatabaseMembers, seconds: number): Promise<void> => {
      await database
        .knex('pesit_common.cluster_pods')
        .where({ instance: members.view!.self.instance })
        .update({ seen_at: database.knex.raw(`now() - make_interval(secs => ?)`, [seconds]) });
    };
    /** The process ends without a word. It must hear nothing any more: let it join `alone`. */
    const dies = async (members: DatabaseMembers, secondsAgo = 11): Promise<void> => {
      all.splice(all.indexOf(members), 1);
      await age(members, secondsAgo);
    };

    test('all see the same, oldest first, and at once when they are told', async () => {
      const one = await join('one');
      const two = await join('two');
      const changed = once(one, 'change');
      const three = await join('three');
      await changed;
      await two.refresh();
      expect([one, two, three].map(names)).toEqual(Array(3).fill(['one', 'two', 'three']));
      expect(one.view?.self).toEqual(three.view?.pods[0]);
    });

    test('the order is that of arrival, whatever the clock of the database did', async () => {
      const one = await join('one');
      const two = await join('two');
      await database
        .knex('pesit_common.cluster_pods')
        .where({ pod: 'two' })
        .update({ since: new Date(0) });
      for (const members of [one, two]) await members.refresh();
      expect([one, two].map(names)).toEqual([
        ['one', 'two'],
        ['one', 'two'],
      ]);
    });

    test('renewing keeps the place', async () => {
      const one = await join('one');
      await join('two');
      const before = await rows();
      await one.refresh();
      const after = await rows();
      expect(after.map(({ position }) => position)).toEqual(before.map(({ position }) => position));
      expect(after[0]?.['since']).toEqual(before[0]?.['since']);
      expect(Number(after[0]?.['seen_at'])).toBeGreaterThan(Number(before[0]?.['seen_at']));
    });

    test('who leaves is gone for all at once', async () => {
      const one = await join('one');
      const two = await join('two');
      await one.leave();
      // Told, two looks by itself; this look comes after that one.
      await two.refresh();
      expect(names(two)).toEqual(['two']);
      await one.refresh();
      expect(await rows()).toHaveLength(1);
    });

    test('who dies is gone when its lease is over', async () => {
      const one = await join('one', { alone: true });
      const two = await join('two');
      await age(one, 9);
      await two.refresh();
      expect(names(two)).toEqual(['one', 'two']);
      await dies(one);
      await two.refresh();
      expect(names(two)).toEqual(['two']);
      expect(await two.usage()).toEqual({ clusters: 1, podsPerCluster: 1 });
    });

    test('the timer renews, and notices by itself', async () => {
      const one = await join('one', { alone: true });
      const two = new DatabaseMembers({
        knex: database.knex,
        pod: { app: 'server', cluster: 'paris', namespace: 'default', name: 'two', instance: randomUUID() },
        events: new LocalBus().join(),
        periodic,
        logger: silentLogger,
        leaseMs: 6000,
      });
      all.push(two);
      two.start();
      expect(await once(two, 'change')).toMatchObject([{ pods: [{ name: 'one' }, { name: 'two' }] }]);
      const changed = once(two, 'change');
      await one.leave();
      expect(await changed).toMatchObject([{ pods: [{ name: 'two' }] }]);
    });

    test('a pod that was killed and is back under its name has its place again', async () => {
      const one = await join('one', { alone: true });
      const two = await join('two');
      all.splice(all.indexOf(one), 1);
      const again = await join('one', { alone: true });
      await two.refresh();
      expect(names(two)).toEqual(['one', 'two']);
      expect(two.view?.pods[0]?.instance).toBe(again.view?.self.instance);
      // Its lease is over: somebody else has moved up meanwhile.
      await dies(again);
      await join('one');
      await two.refresh();
      expect(names(two)).toEqual(['two', 'one']);
    });

    test('two that live under one name are two', async () => {
      const one = await join('same', { alone: true });
      const two = await join('same', { alone: true });
      expect(two.view?.pods).toHaveLength(1);
      for (const members of [one, two, one, two]) await members.refresh();
      expect([one.view?.pods.length, two.view?.pods.length]).toEqual([2, 2]);
      expect(await rows()).toHaveLength(2);
    });

    test('of another namespace, app or cluster: never taken for the same', async () => {
      const one = await join('pod-0');
      const others = [{ namespace: 'test' }, { app: 'client' }, { cluster: 'lyon' }] as const;
      for (const other of others) await join('pod-0', other);
      await one.refresh();
      expect(await rows()).toHaveLength(4);
      expect(one.view).toMatchObject({ clusters: ['paris', 'lyon'], pods: [{ name: 'pod-0' }, { name: 'pod-0' }] });
    });

    test('clusters keep their age when all their pods are gone for a while', async () => {
      const paris = await join('p');
      const lyon = await join('l', { cluster: 'lyon' });
      expect(lyon.view?.clusters).toEqual(['paris', 'lyon']);
      await paris.leave();
      await lyon.refresh();
      expect(lyon.view?.clusters).toEqual(['lyon']);
      await join('p');
      await lyon.refresh();
      expect(lyon.view?.clusters).toEqual(['paris', 'lyon']);
    });

    test('usage is that of the app that has most', async () => {
      const one = await join('s1');
      await join('s2');
      await join('s3', { cluster: 'lyon' });
      for (const name of ['c1', 'c2', 'c3', 'c4']) await join(name, { app: 'client' });
      expect(await one.usage()).toEqual({ clusters: 2, podsPerCluster: 4 });
    });

    test('after an outage of the database those who were there have a lease to come back', async () => {
      let now = 0;
      const monotonic = (): number => now;
      const one = await join('one', { alone: true, monotonic });
      const two = await join('two', { alone: true, monotonic });
      // A minute in which nobody could renew; `two` is back first.
      await database.knex.raw(`update pesit_common.cluster_pods set seen_at = now() - interval '1 minute'`);
      now = 60_000;
      await two.refresh();
      expect(names(two)).toEqual(['one', 'two']);
      now = 69_000;
      await two.refresh();
      expect(names(two)).toEqual(['one', 'two']);
      await one.refresh();
      now = 70_001;
      await two.refresh();
      expect(names(two)).toEqual(['one', 'two']);
      await dies(one, 60);
      await two.refresh();
      expect(names(two)).toEqual(['two']);
    });

    test('while the database cannot be asked the last view stands', async () => {
      const log = captureLog();
      const members = new DatabaseMembers({
        knex: new Proxy(database.knex, {
          get: (target, name) =>
            (away ? () => Promise.reject(new Error('away')) : Reflect.get(target, name)) as unknown,
        }),
        pod: { app: 'server', cluster: 'paris', namespace: 'default', name: 'one', instance: randomUUID() },
        events: bus.join(),
        periodic,
        logger: log.logger,
      });
      let away = true;
      await members.refresh();
      expect(members.view).toBeUndefined();
      away = false;
      await members.refresh();
      away = true;
      await members.refresh();
      expect(names(members)).toEqual(['one']);
      // The renewals of its own say so to the runner, which tells the operator.
      members.start();
      while (periodic.status[0]?.running !== false) await new Promise(setImmediate);
      expect(periodic.status).toMatchObject([{ name: 'renewal of the membership in the cluster', failure: 'away' }]);
      await members.leave();
      expect(periodic.status).toEqual([]);
      expect(await rows()).toHaveLength(1);
    });

    test('while the database hangs looks do not pile up', async () => {
      let statements = 0;
      let release = (): void => undefined;
      const hanging = new Promise<void>((resolve) => {
        release = resolve;
      });
      const raw = async (...args: Parameters<typeof database.knex.raw>): Promise<unknown> => {
        statements += 1;
        await hanging;
        return database.knex.raw(...args);
      };
      const members = new DatabaseMembers({
        knex: new Proxy(database.knex, {
          get: (target, name) => (name === 'raw' ? raw : Reflect.get(target, name)) as unknown,
        }),
        pod: { app: 'server', cluster: 'paris', namespace: 'default', name: 'one', instance: randomUUID() },
        events: bus.join(),
        periodic,
        logger: silentLogger,
      });
      all.push(members);
      const first = members.refresh();
      while (statements === 0) await new Promise(setImmediate);
      const looks = Array.from({ length: 1000 }, () => members.refresh());
      release();
      await Promise.all([first, ...looks]);
      // The first, which takes over, renews and reads, and one more for all the others.
      expect(statements).toBe(5);
    });

    test('a database that hangs does not hold up the end', async () => {
      const one = new DatabaseMembers({
        knex: new Proxy(database.knex, {
          get: (target, name) => (hangs ? () => new Promise(() => undefined) : Reflect.get(target, name)) as unknown,
        }),
        pod: { app: 'server', cluster: 'paris', namespace: 'default', name: 'one', instance: randomUUID() },
        events: bus.join(),
        periodic,
        logger: silentLogger,
      });
      let hangs = false;
      await one.refresh();
      hangs = true;
      jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
      try {
        void one.refresh();
        const left = one.leave();
        jest.advanceTimersByTime(2000);
        await left;
      } finally {
        jest.useRealTimers();
      }
      expect(await rows()).toHaveLength(1);
    });

    test('rows that are deleted under a running pod come back', async () => {
      const one = await join('one');
      await emptyTables(database, 'pesit_common');
      await one.refresh();
      expect(names(one)).toEqual(['one']);
    });

    test('rows of long ago are removed', async () => {
      const old = await join('old', { alone: true });
      await dies(old, 90_000);
      await join('new');
      expect(await rows()).toMatchObject([{ pod: 'new' }]);
    });
  });
});
