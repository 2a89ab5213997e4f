import { randomInt, randomUUID } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { LocalBus } from '@pesit-node/cluster';
import { silentLogger, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { openRedis, withRedis } from '../../../packages/cluster/test/support/redis.js';
import { SessionPlaces } from '../src/sessions/session-places.js';
import { REMOTE_SERVER } from '../src/remote-servers/fields.js';
import { placeStore } from '../src/remote-servers/place-store.js';
import type { PlaceStore } from '../src/remote-servers/place-store.js';
import { expectNoSecrets } from './support/service.js';
import type { Service, ServiceOptions } from './support/service.js';
import { deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

/** Nobody looks by himself. */
const NEVER = 60_000;

/** `maxConnections` of a remote server counts the sessions of all pods. */
withDatabase((harness) => {
  const world = useWorld(harness);

  /** A partner that takes one session, and keeps count: of those that were there at once, and of those that were too many. */
  const partnerOfOne = async (before: NonNullable<Parameters<typeof world.partner>[0]>['before'] = {}) => {
    let most = 0;
    const partner = await world.partner({
      maxConnections: 1,
      before: {
        ...before,
        connect: (_, { connects, ended }) => {
          most = Math.max(most, connects.length - ended.length);
        },
      },
    });
    const expectOneAtATime = (...services: readonly Service[]): void => {
      expect(most).toBe(1);
      for (const { log } of services) expect(log.lines.join()).not.toContain('session refused');
    };
    return { partner, expectOneAtATime };
  };

  /** Two pods with their files on one volume, and a remote server that allows one session. */
  const pods = async (port: number, options: ServiceOptions = {}) => {
    const a = await world.service({ node: 'a', ...options });
    const b = await world.service({ node: 'b', data: a.data, ...options });
    await world.remote(a, port, { maxConnections: 1 });
    return { a, b };
  };

  const places = () => world.database().knex('session_places').orderBy(['server_id', 'place']);

  withRedis(({ url, unique }) => {
    test('an idle session of one pod is given up at once when another needs its place', async () => {
      const { partner, expectOneAtATime } = await partnerOfOne();
      const name = unique();
      const config = { 'cluster.enabled': true, 'cluster.name': name, 'redis.url': url };
      const { a, b } = await pods(partner.port, { config, placeLookMs: NEVER });
      const redis = openRedis(url);
      await until(async () => Number((await redis.pubsub('NUMSUB', `pesit:events:${name}`))[1]) === 2);
      await redis.quit();
      for (const [n, pod] of [a, b, a, b].entries()) {
        expect(await world.send(pod)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
        expect(pod.exchange.pool.open).toBe(1);
        expect(partner.ended).toHaveLength(n);
      }
      expect(partner.connects).toHaveLength(4);
      expectOneAtATime(a, b);
    });
  });

  test('without Redis it is given up with the next look', async () => {
    const { partner, expectOneAtATime } = await partnerOfOne();
    const { a, b } = await pods(partner.port, { placeLookMs: 20 });
    for (const pod of [a, b, a]) {
      expect(await world.send(pod)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    }
    expect(partner.connects).toHaveLength(3);
    expect(await places()).toMatchObject([{ place: 1, node: 'a' }]);
    expectOneAtATime(a, b);
  });

  test('a session that is in use is not kept behind its transfer when its place is wanted', async () => {
    const held = deferred();
    const begun = deferred();
    const endTransfer = (): Promise<void> => {
      begun.resolve();
      return held.promise;
    };
    const { partner, expectOneAtATime } = await partnerOfOne({ endTransfer });
    const { a, b } = await pods(partner.port, { placeLookMs: 20 });
    const sending = world.send(a);
    await begun.promise;
    const testing = b.api.post('/servers/1/test');
    await b.log.next('remote server has as many sessions as maxConnections allows: waiting for one to end');
    held.resolve();
    expect((await testing).body).toMatchObject({ success: true });
    expect(await sending).toMatchObject({ status: 'COMPLETED' });
    expectOneAtATime(a, b);
  });

  test('three pods with transfers of their own: all get through, and never two sessions', async () => {
    const { partner, expectOneAtATime } = await partnerOfOne();
    const options = { pollMs: 20, placeLookMs: 20 };
    const { a, b } = await pods(partner.port, options);
    const c = await world.service({ node: 'c', data: a.data, ...options });
    const all = Array.from({ length: 4 }, (_, n) =>
      [a, b, c].map((pod) => world.send(pod, { partnerId: `P${n % 2}` })),
    );
    for (const record of await Promise.all(all.flat())) {
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    }
    expect(partner.written).toHaveLength(12);
    expectOneAtATime(a, b, c);
  });

  test('what one process does with its own sessions is as before', async () => {
    const { partner, expectOneAtATime } = await partnerOfOne();
    const service = await world.service({ placeLookMs: NEVER });
    await world.remote(service, partner.port, { maxConnections: 1 });
    for (const fields of [{}, { partnerId: 'OTHER' }, {}]) {
      expect(await world.send(service, fields)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    }
    await service.stop();
    expect(await places()).toEqual([]);
    expectOneAtATime(service);
  });

  test('costs a statement when a session is opened and when it is closed, and none for the transfers between', async () => {
    const { partner } = await partnerOfOne();
    const service = await world.service({ placeLookMs: NEVER });
    await world.remote(service, partner.port, { maxConnections: 1 });
    const statements: string[] = [];
    const { knex } = world.database();
    const listen = ({ sql }: { readonly sql: string }): void => {
      // The start removes what an earlier process left, in its own time.
      if (/session_(?:places|wishes)/.test(sql) && !sql.includes('not "instance"')) statements.push(sql);
    };
    knex.on('query', listen);
    for (const send of [world.send, world.send, world.send]) await send(service);
    expect(statements).toHaveLength(1);
    await service.stop();
    knex.removeListener('query', listen);
    expect(statements).toHaveLength(2);
    expect(partner.connects).toHaveLength(1);
  });

  describe('the place of a pod that was killed', () => {
    const dead = { node: 'dead', instance: randomUUID() };

    test('is free when its lease has run out', async () => {
      const { partner } = await partnerOfOne();
      const service = await world.service({ placeLookMs: NEVER });
      const serverId = await world.remote(service, partner.port, { maxConnections: 1 });
      const store = placeStore(world.database().knex, dead);
      const asked = { session: randomUUID(), serverId, limit: 1, leaseSeconds: 1 };
      expect(await store.take(asked)).toBe(true);
      const [{ until: end }] = await places();
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
      const [place] = await places();
      expect(place).toMatchObject({ place: 1, node: 'test-node' });
      expect(place.session).not.toBe(asked.session);
      const { rows } = await world
        .database()
        .knex.raw('select start_time, end_time > ? as later from transfers', [end]);
      expect(rows).toMatchObject([{ later: true }]);
    });

    test('is free at once for the process after it, which has its name', async () => {
      const { partner } = await partnerOfOne();
      const first = await world.service({ node: 'other' });
      const serverId = await world.remote(first, partner.port, { maxConnections: 1 });
      const store = placeStore(world.database().knex, dead);
      expect(await store.take({ session: randomUUID(), serverId, limit: 1, leaseSeconds: 3600 })).toBe(true);
      const again = await world.service({ node: 'dead' });
      expect(await world.send(again)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    });
  });

  describe('places', () => {
    let databases: readonly TestDatabase[];
    beforeAll(async () => {
      const another = (): Promise<TestDatabase> => harness.another(world.database());
      databases = [await another(), await another(), await another()];
    });
    const owner = (node: string) => ({ node, instance: randomUUID() });
    const server = async (limit: number, name = `s${limit}`): Promise<number> => {
      const unset = { ...REMOTE_SERVER.defaults, host: 'h', port: 1, server_id: 'S', client_id: 'C' };
      const values = { ...unset, name, max_connections: limit };
      const [row] = await world.database().knex('remote_servers').insert(values, 'id');
      return row.id as number;
    };

    test('of three pods that take and give at random are never more than the limit', async () => {
      const limits = [1, 2, 5];
      const ids = await Promise.all(limits.map((limit) => server(limit)));
      const held = limits.map(() => 0);
      const most = limits.map(() => 0);
      let taken = 0;
      const worker = async (store: PlaceStore): Promise<void> => {
        for (let n = 0; n < 40; n++) {
          const which = randomInt(limits.length);
          const [session, serverId, limit] = [randomUUID(), ids[which]!, limits[which]!];
          if (!(await store.take({ session, serverId, limit, leaseSeconds: 60 }))) continue;
          taken++;
          held[which]!++;
          most[which] = Math.max(most[which]!, held[which]!);
          for (let turn = randomInt(5); turn > 0; turn--) await new Promise(setImmediate);
          held[which]!--;
          await store.give(session);
        }
      };
      const workers = databases.flatMap(({ knex }, n) => {
        const store = placeStore(knex, owner(`pod-${n}`));
        return [worker(store), worker(store), worker(store)];
      });
      await Promise.all(workers);
      expect(most.map((count, n) => count <= limits[n]!)).toEqual([true, true, true]);
      expect(taken).toBeGreaterThan(40);
      expect(await places()).toEqual([]);
    });

    test('beyond a limit that was lowered are waited for', async () => {
      const serverId = await server(3);
      const store = placeStore(databases[0]!.knex, owner('a'));
      const sessions = [randomUUID(), randomUUID(), randomUUID()];
      const take = (session: string, limit: number) => store.take({ session, serverId, limit, leaseSeconds: 60 });
      for (const session of sessions) expect(await take(session, 3)).toBe(true);
      await store.give(sessions[0]!);
      const one = randomUUID();
      expect(await take(one, 2)).toBe(false);
      // Somebody waits: who gives one back tells.
      expect(await store.give(sessions[1]!)).toBe(true);
      expect(await take(one, 2)).toBe(true);
      expect(await store.give(one)).toBe(false);
    });

    const placesOver = (store: PlaceStore, leaseMs: number): SessionPlaces =>
      new SessionPlaces({ store, events: new LocalBus().join(), logger: silentLogger, leaseMs });

    test('none comes free in time: 3-309, in words', async () => {
      const serverId = await server(1);
      const mine = placesOver(placeStore(databases[0]!.knex, owner('a')), 60_000);
      const asked = { serverId, serverName: 'bank', limit: 1 };
      const nobody = (): Promise<boolean> => Promise.resolve(false);
      await mine.take(asked, randomUUID(), 0, nobody);
      const late = mine.take(asked, randomUUID(), 0, nobody);
      await expect(late).rejects.toMatchObject({
        ...{ diagnostic: '3-309', fault: 'local' },
        message: expect.stringMatching(/"bank" may have 1 session at a time \(maxConnections\), of all pods together/),
      });
      const gone = new AbortController();
      const waiting = mine.take(asked, randomUUID(), NEVER, nobody, gone.signal);
      const reason = new Error('cancelled');
      gone.abort(reason);
      await expect(waiting).rejects.toBe(reason);
    });

    test.each([
      ['does not answer', () => new Promise<never>(() => undefined)],
      ['fails', () => Promise.reject(new Error('no connection'))],
    ])('that cannot be renewed are given up before they run out: the database %s', async (_, renew) => {
      const serverId = await server(1);
      const mine = placesOver({ ...placeStore(databases[0]!.knex, owner('a')), renew }, 6000);
      const session = randomUUID();
      await mine.take({ serverId, serverName: 'bank', limit: 1 }, session, 0, () => Promise.resolve(false));
      const given: string[] = [];
      let lostAt = Infinity;
      const lost = new Promise((resolve) => {
        mine.on('lost', (one) => {
          lostAt = Date.now();
          resolve(given.push(one));
        });
      });
      // As the runner of periodic work does, until it is so.
      await until(async () => {
        await Promise.race([mine.look().catch(() => undefined), lost]);
        return given.length > 0;
      });
      expect(given).toEqual([session]);
      expect(mine.holds(session)).toBe(false);
      const [{ until: end }] = await places();
      expect(lostAt).toBeLessThan(end.getTime());
    });

    test('a wish that was seen while a session ended does not end the next one', async () => {
      const serverId = await server(1);
      const [mine, other] = [0, 1].map((n) => placesOver(placeStore(databases[n]!.knex, owner(`pod-${n}`)), 60_000));
      const asked = { serverId, serverName: 'bank', limit: 1 };
      const nobody = (): Promise<boolean> => Promise.resolve(false);
      const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
      await mine!.take(asked, first, 0, nobody);
      await expect(other!.take(asked, second, 0, nobody)).rejects.toMatchObject({ diagnostic: '3-309' });
      await mine!.look();
      await mine!.give(first);
      await other!.take(asked, second, 0, nobody);
      await other!.give(second);
      await mine!.take(asked, third, 0, nobody);
      expect(mine!.heedWish(serverId)).toBe(false);
    });

    test('that somebody removed are lost', async () => {
      const serverId = await server(1);
      const mine = placesOver(placeStore(databases[0]!.knex, owner('a')), 60_000);
      const session = randomUUID();
      await mine.take({ serverId, serverName: 'bank', limit: 1 }, session, 0, () => Promise.resolve(false));
      const lost: string[] = [];
      mine.on('lost', (one) => lost.push(one));
      await mine.look();
      expect(lost).toEqual([]);
      await world.database().knex('session_places').delete();
      await mine.look();
      expect(lost).toEqual([session]);
    });
  });
});
