/** Places of sessions over all pods, on the real database: never more than the limit, and all of them can be had. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';

import { beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { CLUSTER_MIGRATIONS } from '@pesit-node/cluster';
import { captureLog, emptyTables, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { SessionPlaces } from '../src/admission/session-places.js';
import { MIGRATIONS } from '../src/migrations/index.js';

withDatabase((harness) => {
  let database: TestDatabase;
  let instances: string[] = [];

  beforeAll(async () => {
    database = await harness.open({ migrations: [CLUSTER_MIGRATIONS, MIGRATIONS] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_server', 'pesit_common');
    instances = [];
  });

  /** A pod whose lease runs; what it tells, the others are asked to look at by the test. */
  const pod = async (living: () => readonly string[] = () => instances): Promise<SessionPlaces> => {
    const instance = randomUUID();
    instances.push(instance);
    await database.knex('pesit_common.cluster_pods').insert({
      ...{ instance, app: 'server', cluster: 'pesit', namespace: 'default', pod: instance.slice(0, 8) },
    });
    const { logger } = captureLog();
    const events = { tell: () => undefined };
    return new SessionPlaces({ knex: database.knex, instance, living, exclusive: false, events, logger });
  };
  const acme = (limit: number) => ({ kind: 'partner', id: 'ACME', limit }) as const;
  const node1 = (limit: number) => ({ kind: 'listener', id: 'NODE1', limit }) as const;

  test('one place: who has it keeps it from the other pod, and gives it back', async () => {
    const [a, b] = [await pod(), await pod()];
    expect(await a.take(acme(1))).toBeUndefined();
    expect(await b.take(acme(1))).toEqual(acme(1));
    expect(await a.take(acme(1))).toEqual(acme(1));
    a.give(acme(1));
    await a.look();
    expect(await b.take(acme(1))).toBeUndefined();
    expect(await a.take(acme(1))).toEqual(acme(1));
  });

  test('a session takes a place of both or of none, and is told which was full', async () => {
    const [a, b] = [await pod(), await pod()];
    expect(await a.take(node1(2), acme(1))).toBeUndefined();
    expect(await b.take(node1(2), acme(1))).toEqual(acme(1));
    expect(await b.take(node1(2), { ...acme(1), id: 'OTHER' })).toBeUndefined();
    expect(await a.take(node1(2), { ...acme(1), id: 'THIRD' })).toEqual(node1(2));
    // Nobody has a place of the third one, nor keeps one of the listener.
    b.give(node1(2), { ...acme(1), id: 'OTHER' });
    await b.look();
    expect(await a.take(node1(2), { ...acme(1), id: 'THIRD' })).toBeUndefined();
  });

  test.each([1, 5, 16, 40, 100])(
    'limit %i: all of it can be had by all pods together, and no place more',
    async (limit) => {
      const pods = [await pod(), await pod(), await pod()] as const;
      let taken = 0;
      // One pod has had a burst, and keeps spare places.
      for (let i = 0; i < limit; i++) expect(await pods[0].take(acme(limit))).toBeUndefined();
      for (let i = 0; i < limit; i++) pods[0].give(acme(limit));
      for (let turn = 0; turn < 6 * limit; turn++) {
        const [one] = [pods[turn % 3] as SessionPlaces];
        if ((await one.take(acme(limit))) === undefined) taken++;
        // As the topic tells them to.
        else for (const each of pods) await each.look();
        expect(taken).toBeLessThanOrEqual(limit);
      }
      expect(taken).toBe(limit);
    },
  );

  test('sessions that come and go at once on three pods never are more than the limit', async () => {
    const pods = [await pod(), await pod(), await pod()];
    const limit = 20;
    let open = 0;
    let most = 0;
    const session = async (one: SessionPlaces, count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        if ((await one.take(node1(limit), acme(limit))) !== undefined) continue;
        most = Math.max(most, ++open);
        // Others act meanwhile.
        await database.knex.raw('select 1');
        open--;
        one.give(node1(limit), acme(limit));
      }
    };
    await Promise.all(Array.from({ length: 45 }, (_, i) => session(pods[i % 3] as SessionPlaces, 10)));
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(limit);
    for (const one of pods) await one.close();
    expect(await database.knex('session_places').select()).toEqual([]);
  });

  test('the places of a pod that died are free when its lease is over', async () => {
    const dead = await pod();
    const seen = [...instances];
    const b = await pod(() => seen);
    for (let i = 0; i < 3; i++) expect(await dead.take(acme(3))).toBeUndefined();
    const over = () =>
      database
        .knex('pesit_common.cluster_pods')
        .where({ instance: instances[0] })
        .update({ seen_at: database.knex.raw("now() - interval '11 seconds'") });
    await over();
    // This pod has not seen yet that it is gone.
    expect(await b.take(acme(3))).toEqual(acme(3));
    seen.length = 0;
    expect(await b.take(acme(3))).toBeUndefined();
  });

  test('a limit that was lowered lets no session in until enough have ended', async () => {
    const [a, b] = [await pod(), await pod()];
    for (let i = 0; i < 4; i++) expect(await a.take(acme(8))).toBeUndefined();
    expect(await a.take(acme(3))).toEqual(acme(3));
    expect(await b.take(acme(3))).toEqual(acme(3));
    for (let i = 0; i < 2; i++) a.give(acme(3));
    await a.look();
    expect(await b.take(acme(3))).toBeUndefined();
    expect(await b.take(acme(3))).toEqual(acme(3));
  });

  describe('statements', () => {
    const counted = async (work: () => Promise<void>): Promise<number> => {
      let count = 0;
      const hear = (): void => {
        count++;
      };
      database.knex.on('query', hear);
      await work();
      database.knex.off('query', hear);
      return count;
    };

    test('sessions one after the other cost none after the first, where the limit is not near', async () => {
      const one = await pod();
      const count = await counted(async () => {
        for (let i = 0; i < 50; i++) {
          expect(await one.take(node1(100), acme(32))).toBeUndefined();
          one.give(node1(100), acme(32));
        }
      });
      expect(count).toBe(1);
    });

    test('a burst after a burst costs none, and what no third one takes is given back', async () => {
      jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
      try {
        const one = await pod();
        const owners = [node1(100), acme(32)] as const;
        const burst = async () => {
          for (let i = 0; i < 20; i++) expect(await one.take(...owners)).toBeUndefined();
          for (let i = 0; i < 20; i++) one.give(...owners);
        };
        await burst();
        expect(await counted(burst)).toBe(0);
        const asked = once(database.knex, 'query-response');
        jest.advanceTimersByTime(1000);
        await asked;
        const kept = await database.knex('session_places').orderBy('owner').select('owner', 'places');
        expect(kept).toEqual([
          { owner: 'listener NODE1', places: 6 },
          { owner: 'partner ACME', places: 2 },
        ]);
      } finally {
        jest.useRealTimers();
      }
    });

    test('a session costs one at most when it begins', async () => {
      const one = await pod();
      const count = await counted(async () => {
        for (let i = 0; i < 8; i++) expect(await one.take(node1(100), acme(8))).toBeUndefined();
        expect(await one.take(node1(100), acme(8))).toEqual(acme(8));
      });
      expect(count).toBe(9);
    });
  });
});
