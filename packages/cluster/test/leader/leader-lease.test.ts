import { randomUUID } from 'node:crypto';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { PeriodicWork } from '@pesit-node/service';
import { captureLog, emptyTables, silentLogger, withDatabase } from '@pesit-node/service/testing';
import type { CapturedLog, TestDatabase } from '@pesit-node/service/testing';

import { databaseLease } from '../../src/leader/database-leader.js';
import { databaseFence, fenced, NotLeaderError } from '../../src/leader/fence.js';
import type { Seat } from '../../src/leader/fence.js';
import type { LeaderLease, LeaseBackend } from '../../src/leader/leader-lease.js';
import { leaseKey, redisLease } from '../../src/leader/redis-leader.js';
import { SingleLeader } from '../../src/leader/single-leader.js';
import { TimedLeader } from '../../src/leader/timed-leader.js';
import { LocalBus } from '../../src/local-events.js';
import { CLUSTER_MIGRATIONS } from '../../src/migrations/index.js';
import { RedisLink } from '../../src/redis-link.js';
import { redisAt } from '../../src/redis-server.js';
import { openRedis, startProxy, withRedis } from '../support/redis.js';

/** What a lease says, in order. */
const heard = (lease: LeaderLease): unknown[] => {
  const told: unknown[] = [];
  lease.on('gain', (epoch) => void told.push(epoch));
  lease.on('loss', () => void told.push('loss'));
  return told;
};

/** What every implementation of the port must do for one pod. */
const contract = (name: string, join: () => { readonly seat: Seat; readonly lease: LeaderLease }): void => {
  describe(name, () => {
    test('alone it leads, says so once, and stops for good', async () => {
      const { seat, lease } = join();
      const told = heard(lease);
      lease.start();
      lease.start();
      await lease.refresh();
      await lease.refresh();
      expect(lease).toMatchObject({ isLeader: true, epoch: 1 });
      expect(await lease.holder()).toBe(seat.instance);
      const stopped = lease.stop();
      expect(lease).toMatchObject({ isLeader: false, epoch: undefined });
      await stopped;
      await lease.stop();
      expect(await lease.holder()).toBeUndefined();
      lease.start();
      await lease.refresh();
      expect(lease.isLeader).toBe(false);
      expect(told).toEqual([1, 'loss']);
    });
  });
};

contract('a single node', () => {
  const seat: Seat = { app: 'server', cluster: 'paris', instance: randomUUID() };
  return { seat, lease: new SingleLeader(seat.instance) };
});

interface Kind {
  readonly lease: (seat: Seat) => LeaseBackend;
  /** The lease runs out, as it does when nobody renews it for 10 s. */
  readonly expire: (seat: Seat) => Promise<void>;
}

withDatabase((harness) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await harness.open({ migrations: [CLUSTER_MIGRATIONS], searchPath: ['public'] });
  });

  let periodic: PeriodicWork;
  const all: LeaderLease[] = [];
  beforeEach(async () => {
    await emptyTables(database, 'pesit_common');
    periodic = new PeriodicWork({ logger: silentLogger });
  });
  afterEach(async () => {
    for (const lease of all.splice(0)) await lease.stop();
    await periodic.stop();
  });

  interface Joined {
    readonly seat: Seat;
    readonly lease: TimedLeader;
    readonly log: CapturedLog;
    /** Its monotonic clock, milliseconds: goes when told. */
    pass: (ms: number) => void;
    /** Whether it can do the work. */
    readonly fitness: { isFit: boolean };
  }

  const several = (name: string, setUp: () => Kind): void => {
    let kind: Kind;
    let bus: LocalBus;
    beforeEach(() => {
      kind = setUp();
      bus = new LocalBus();
    });

    /** A pod that has stood for election once; looks when told. */
    const join = async (more: Partial<Seat> = {}): Promise<Joined> => {
      const joined = stand(more);
      await joined.lease.refresh();
      return joined;
    };
    const stand = (more: Partial<Seat> = {}): Joined => {
      const seat: Seat = { app: 'server', cluster: 'paris', instance: randomUUID(), ...more };
      const log = captureLog();
      const alarms = new Set<{ readonly at: number; readonly ring: () => void }>();
      let now = 0;
      const fitness = { isFit: true };
      const lease = new TimedLeader({
        ...{ backend: kind.lease(seat), events: bus.join(), periodic, logger: log.logger },
        isFit: () => fitness.isFit,
        monotonic: () => now,
        alarm: (delayMs, ring) => {
          const alarm = { at: now + delayMs, ring };
          alarms.add(alarm);
          return () => void alarms.delete(alarm);
        },
      });
      all.push(lease);
      const pass = (ms: number): void => {
        now += ms;
        for (const alarm of alarms) {
          if (alarm.at > now || !alarms.delete(alarm)) continue;
          alarm.ring();
        }
      };
      return { seat, lease, log, pass, fitness };
    };
    const write = ({ seat }: Joined, epoch: number | undefined): Promise<unknown> =>
      fenced(database.knex, seat, epoch, (trx) => trx.raw('select 1'));

    contract(name, () => stand());

    describe(`${name}: pods`, () => {
      test('one of three leads', async () => {
        const [one, two, three] = [await join(), await join(), await join()];
        await one.lease.refresh();
        expect([one, two, three].map(({ lease }) => lease.isLeader)).toEqual([true, false, false]);
        expect(await three.lease.holder()).toBe(one.seat.instance);
      });

      test('each app in each cluster has a leader of its own', async () => {
        const seats = [{}, { app: 'client' as const }, { cluster: 'lyon' }];
        for (const seat of seats) expect((await join(seat)).lease).toMatchObject({ isLeader: true, epoch: 1 });
      });

      test('the next one takes over at once when the leader leaves in peace, and under a higher epoch', async () => {
        const one = await join();
        const two = await join();
        two.lease.start();
        const gained = new Promise((resolve) => two.lease.once('gain', resolve));
        await one.lease.stop();
        expect(await gained).toBe(2);
      });

      test('one that cannot do the work leaves it to the next one, and stands again when it can', async () => {
        const one = await join();
        const two = await join();
        two.lease.start();
        const told = heard(one.lease);
        const gained = new Promise((resolve) => two.lease.once('gain', resolve));
        one.fitness.isFit = false;
        await one.lease.refresh();
        expect(await gained).toBe(2);
        await two.lease.stop();
        await one.lease.refresh();
        expect(one.lease.isLeader).toBe(false);
        one.fitness.isFit = true;
        await one.lease.refresh();
        expect(told).toEqual(['loss', 3]);
      });

      test('the next one takes over when the lease has run out, and the late leader can write no more', async () => {
        const one = await join();
        const two = await join();
        await write(one, 1);
        await kind.expire(one.seat);
        await two.lease.refresh();
        expect(two.lease).toMatchObject({ isLeader: true, epoch: 2 });
        // It stood still meanwhile, its clock, too: it takes itself for the leader.
        expect(one.lease).toMatchObject({ isLeader: true, epoch: 1 });
        await expect(write(one, one.lease.epoch)).rejects.toThrow(NotLeaderError);
        await write(two, two.lease.epoch);
        one.pass(3000);
        await one.lease.refresh();
        expect(one.lease.isLeader).toBe(false);
        expect(one.log.entries().at(-1)).toMatchObject({ msg: 'this pod is no longer the leader', epoch: 1 });
      });

      test('it gives up a second before its lease can run out, whatever it hears', async () => {
        const { lease, pass } = await join();
        const told = heard(lease);
        pass(8999);
        expect(lease.isLeader).toBe(true);
        pass(1);
        expect(lease).toMatchObject({ isLeader: false, epoch: undefined });
        expect(told).toEqual(['loss']);
        await lease.refresh();
        expect(told).toEqual(['loss', 2]);
      });

      test('a renewal keeps the term', async () => {
        const { lease, pass } = await join();
        const told = heard(lease);
        for (let second = 1; second <= 60; second += 1) {
          pass(1000);
          await lease.refresh();
        }
        expect([lease.epoch, told]).toEqual([1, []]);
      });

      test('a lease that is granted too late is not used', async () => {
        const backend = kind.lease({ app: 'server', cluster: 'paris', instance: randomUUID() });
        let now = 0;
        const late = { ...backend, acquire: () => ((now += 9000), backend.acquire()) };
        const logger = silentLogger;
        const lease = new TimedLeader({ backend: late, events: bus.join(), periodic, logger, monotonic: () => now });
        all.push(lease);
        await lease.refresh();
        expect(lease.isLeader).toBe(false);
      });

      test('an epoch that was raised meanwhile is not raised again', async () => {
        const [one, two] = [randomUUID(), randomUUID()].map((instance) =>
          databaseFence(database.knex, { app: 'server', cluster: 'paris', instance }),
        );
        expect(await one!.raise(0)).toBe(1);
        expect(await two!.raise(0)).toBeUndefined();
        expect(await two!.raise(1)).toBe(2);
        expect(await one!.newest()).toBe(2);
      });

      test('no new epoch begins within a write of the leader, and its own renewal does not wait for it', async () => {
        const one = await join();
        const seat = { ...one.seat, instance: randomUUID() };
        const order: string[] = [];
        let raised: Promise<unknown> = Promise.resolve();
        await fenced(database.knex, one.seat, one.lease.epoch, async (trx) => {
          one.pass(3000);
          await one.lease.refresh();
          expect(one.lease.isLeader).toBe(true);
          raised = databaseFence(database.knex, seat)
            .raise(1)
            .then(() => order.push('raised'));
          await waitsForLock(trx);
          order.push('written');
        });
        await raised;
        expect(order).toEqual(['written', 'raised']);
      });

      test('who has no epoch, or that of another, writes nothing', async () => {
        const one = await join();
        const two = await join();
        await expect(write(two, undefined)).rejects.toThrow(NotLeaderError);
        await expect(write(two, one.lease.epoch)).rejects.toThrow(NotLeaderError);
      });
    });
  };

  /** Resolves when some statement waits for a lock of this transaction. */
  const waitsForLock = async (trx: TestDatabase['knex']): Promise<void> => {
    for (;;) {
      const { rows } = await trx.raw<{ rows: unknown[] }>(
        'select from pg_stat_activity where datname = current_database() and pg_backend_pid() = any(pg_blocking_pids(pid))',
      );
      if (rows.length > 0) return;
    }
  };

  several('a lease in PostgreSQL', () => ({
    lease: (seat) => databaseLease(database.knex, seat),
    expire: async ({ app, cluster }) => {
      await database
        .knex('pesit_common.cluster_leaders')
        .where({ app, cluster })
        .update({ until: database.knex.raw('clock_timestamp()') });
    },
  }));

  withRedis(({ url, unique }) => {
    const links: RedisLink[] = [];
    afterEach(() => {
      for (const link of links.splice(0)) link.close();
    });
    const connect = async (at = url): Promise<RedisLink> => {
      const link = new RedisLink(redisAt(at), silentLogger);
      links.push(link);
      await new Promise<void>((resolve) => link.once('connected', resolve));
      return link;
    };

    describe('a lease in Redis', () => {
      let link: RedisLink;
      let prefix: string;
      beforeEach(async () => {
        link = await connect();
      });
      /** Tests share a Redis: a cluster of this name is this test's alone. */
      const own = (seat: Seat): Seat => ({ ...seat, cluster: `${prefix}-${seat.cluster}` });
      several('a lease in Redis', () => {
        prefix = unique();
        return {
          lease: (seat) => redisLease(leaseKey(link, own(seat)), databaseFence(database.knex, seat), seat.instance),
          expire: async (seat) => {
            const { app, cluster } = own(seat);
            expect(await link.commands.del(`pesit:leader:${cluster}:${app}`)).toBe(1);
          },
        };
      });
    });

    const seatOf = (cluster: string): Seat => ({ app: 'server', cluster, instance: randomUUID() });
    const leaderOver = (link: RedisLink, seat: Seat, monotonic?: () => number): TimedLeader => {
      const backend = redisLease(leaseKey(link, seat), databaseFence(database.knex, seat), seat.instance);
      const lease = new TimedLeader({
        ...{ backend, events: new LocalBus().join(), periodic, logger: silentLogger },
        ...(monotonic === undefined ? {} : { monotonic }),
      });
      all.push(lease);
      return lease;
    };

    test('the key runs out 10 s after the last renewal', async () => {
      const seat = seatOf(unique());
      let now = 0;
      const lease = leaderOver(await connect(), seat, () => now);
      await lease.refresh();
      const redis = openRedis(url);
      const key = `pesit:leader:${seat.cluster}:server`;
      expect(await redis.pexpire(key, 100)).toBe(1);
      now = 3000;
      await lease.refresh();
      const left = await redis.pttl(key);
      redis.disconnect();
      expect(left).toBeGreaterThan(9000);
      expect(left).toBeLessThanOrEqual(10_000);
    });

    test('Redis is away: nobody leads after the lease, and somebody again when it is back', async () => {
      const proxy = await startProxy(url);
      const seat = seatOf(unique());
      const link = await connect(proxy.url);
      let now = 0;
      const lease = leaderOver(link, seat, () => now);
      await lease.refresh();
      const closed = new Promise<void>((resolve) => void link.commands.once('close', () => resolve()));
      await proxy.cut();
      await closed;
      for (now = 3000; now < 9000; now += 1000) {
        await lease.refresh();
        expect(lease.isLeader).toBe(true);
      }
      await lease.refresh();
      expect(lease.isLeader).toBe(false);
      await expect(lease.holder()).rejects.toThrow();
      const connected = new Promise<void>((resolve) => link.once('connected', resolve));
      await proxy.mend();
      await connected;
      await lease.refresh();
      expect(lease).toMatchObject({ isLeader: true, epoch: 2 });
      await lease.stop();
      await proxy.close();
    });

    test('after a failover of Redis two may hold the lease: the older one learns from the epoch', async () => {
      const seat = seatOf(unique());
      let now = 0;
      const lease = leaderOver(await connect(), seat, () => now);
      await lease.refresh();
      // The other leads by a Redis that has forgotten the key.
      expect(await databaseFence(database.knex, { ...seat, instance: randomUUID() }).raise(1)).toBe(2);
      for (let look = 0; lease.isLeader; look += 1) {
        expect(look).toBeLessThan(1000);
        now += 3000;
        await lease.refresh();
      }
    });

    test('a database that is away makes no leader, and leaves the lease to others', async () => {
      const seat = seatOf(unique());
      const away = { newest: () => Promise.resolve(0), raise: () => Promise.reject(new Error('away')) };
      const link = await connect();
      const key = leaseKey(link, seat);
      const backend = redisLease(key, away, seat.instance);
      await expect(backend.acquire()).rejects.toThrow('away');
      expect(await key.read()).toBeUndefined();
    });
  });
});
