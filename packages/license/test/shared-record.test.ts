import { randomUUID } from 'node:crypto';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { RedisLink, redisMemory } from '@pesit-node/cluster';
import type { SharedMemory } from '@pesit-node/cluster';
import { withDatabase, emptyTables, silentLogger } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { startProxy, withRedis } from '../../cluster/test/support/redis.js';
import { LICENSE_MIGRATIONS } from '../src/migrations/index.js';
import { SharedRecord } from '../src/shared-record.js';
import { startPod, VirtualClock } from './support/pods.js';

const START = '2027-03-01T08:00:00Z';
const DAY = 86_400_000;
const at = (time: string): number => Date.parse(time);
const record = (startedAt: string, counted: string, highest = counted) => ({
  ...{ startedAt: at(startedAt), counted: at(counted), highest: at(highest) },
});

/** A Redis that keeps texts in the process, can be away, and shows what is in it. */
const memory = () => {
  const texts = new Map<string, string>();
  const state = { away: false, writes: 0 };
  const answer = <T>(value: T): Promise<T> =>
    state.away ? Promise.reject(new Error('Connection is closed.')) : Promise.resolve(value);
  const port: SharedMemory = {
    read: (key) => answer(texts.get(key) ?? null),
    write: async (key, text) => {
      await answer(undefined);
      state.writes += 1;
      texts.set(key, text);
    },
  };
  return { port, texts, state };
};

/** What every memory must do, and what the record makes of it. */
const contract = (name: string, port: () => SharedMemory): void => {
  describe(name, () => {
    const installation = randomUUID();

    test('the first meeting is kept, the second finds it', async () => {
      const shared = new SharedRecord(port());
      const now = record(START, '2027-03-20T08:00:00Z');
      expect(await shared.meet(installation, now)).toEqual(now);
      const restored = record('2027-03-02T08:00:00Z', '2027-03-03T08:00:00Z');
      expect(await shared.meet(installation, restored)).toEqual(now);
      const later = record(START, '2027-03-25T08:00:00Z', '2027-04-01T08:00:00Z');
      expect(await shared.meet(installation, later)).toEqual(later);
      expect(await shared.meet(installation, restored)).toEqual(later);
    });

    test('another installation has another record', async () => {
      const shared = new SharedRecord(port());
      const old = record('2027-01-01T08:00:00Z', '2027-03-20T08:00:00Z');
      await shared.meet(installation, old);
      const fresh = record(START, START);
      expect(await shared.meet(randomUUID(), fresh)).toEqual(fresh);
    });
  });
};

contract('in the process', () => memory().port);

withRedis(({ url }) => {
  let link: RedisLink;
  beforeAll(() => {
    link = new RedisLink(url, silentLogger);
    return new Promise<void>((resolve) => link.once('connected', resolve));
  });
  afterAll(() => link.close());

  contract('in Redis', () => redisMemory(link));
});

describe('a text that this installation did not write counts for nothing, and is written over', () => {
  const installation = randomUUID();
  const now = record(START, '2027-03-20T08:00:00Z');
  const times = [now.startedAt, now.counted, now.highest];
  const forged = (values: readonly (number | string)[], signature = 'f'.repeat(64)) =>
    `${values.join(' ')} ${signature}`;

  test.each([
    ['empty', ''],
    ['nonsense', 'nonsense'],
    ['no signature', times.join(' ')],
    ['an earlier start', forged([at('2020-01-01'), times[1]!, times[2]!])],
    ['the year 9999', forged([times[0]!, times[1]!, at('9999-12-31')])],
    ['times in the past', forged([at('2030-01-01'), 0, 0])],
    ['not a number', forged(['NaN', 'Infinity', '-1'])],
    ['huge', 'x'.repeat(1_000_000)],
  ])('%s', async (_, text) => {
    const { port, texts } = memory();
    const shared = new SharedRecord(port);
    await shared.meet(installation, now);
    const [key, own] = [...texts][0]!;
    texts.set(key, text);
    expect(await shared.meet(installation, now)).toEqual(now);
    expect(texts.get(key)).toBe(own);
  });

  test('one digit changed, and the record of another installation', async () => {
    const { port, texts } = memory();
    const shared = new SharedRecord(port);
    await shared.meet(installation, now);
    const [key, own] = [...texts][0]!;
    await shared.meet(randomUUID(), record('2026-01-01T00:00:00Z', '2027-03-28T08:00:00Z'));
    const other = [...texts.values()].find((text) => text !== own)!;
    for (const text of [other, `9${own.slice(1)}`, `${own} `, own.toUpperCase()]) {
      texts.set(key, text);
      expect(await shared.meet(installation, now)).toEqual(now);
      expect(texts.get(key)).toBe(own);
    }
  });

  test('neither key nor text tells which installation it is', async () => {
    const { port, texts } = memory();
    await new SharedRecord(port).meet(installation, now);
    const [key, text] = [...texts][0]!;
    expect(`${key} ${text}`).not.toContain(installation);
    expect(key).toMatch(/^license:[0-9a-f]{64}$/);
  });
});

withDatabase((harness) => {
  let database: TestDatabase;
  let clock: VirtualClock;
  let redis: ReturnType<typeof memory>;

  beforeAll(async () => {
    database = await harness.open({ migrations: [LICENSE_MIGRATIONS], searchPath: ['public'] });
  });
  beforeEach(async () => {
    await emptyTables(database, 'pesit_common');
    clock = new VirtualClock(START);
    redis = memory();
  });

  const WITNESSES = ['license_evaluation', 'license_witness'];
  const start = (port: SharedMemory = redis.port) => startPod(database, clock, { memory: port });
  const rows = (table: string): Promise<Record<string, unknown>[]> =>
    database.knex.withSchema('pesit_common').from(table).select();
  /** A copy of everything in the database, put back later. */
  const copy = async () => {
    const tables = await Promise.all(WITNESSES.map(rows));
    return async () => {
      for (const [index, table] of WITNESSES.entries()) {
        await database.knex.withSchema('pesit_common').from(table).update(tables[index]![0]!);
      }
    };
  };

  describe('the database is restored from an older copy, and the clock turned back', () => {
    const twentyDays = async () => {
      const { keeper } = await start();
      await keeper.refresh();
      const restore = await copy();
      for (let day = 0; day < 20; day += 1) {
        clock.days(1);
        await keeper.refresh();
      }
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
      await keeper.stop();
      await restore();
      clock.set(START);
    };

    test('without Redis the days of the copy would be back', async () => {
      await twentyDays();
      const { keeper } = await startPod(database, clock);
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 30 });
    });

    test('Redis remembers, and time goes on from there', async () => {
      await twentyDays();
      const { keeper } = await start();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10, evaluationStartDate: '2027-03-01' });
      clock.days(9);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 1 });
      clock.days(1);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ blocked: true });
    });

    test('the database has it again, too', async () => {
      await twentyDays();
      await start();
      const { keeper } = await startPod(database, clock);
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
    });

    test('a Redis that is away at the start is asked when it is there', async () => {
      await twentyDays();
      redis.state.away = true;
      const { keeper } = await start();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 30 });
      redis.state.away = false;
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
    });

    test.each(['license_evaluation', 'license_witness'])('and %s deleted besides', async (table) => {
      await twentyDays();
      await database.knex.withSchema('pesit_common').from(table).delete();
      expect((await start()).keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
    });

    test('and both deleted besides: the audit still knows which installation it is', async () => {
      await twentyDays();
      for (const table of WITNESSES) await database.knex.withSchema('pesit_common').from(table).delete();
      expect((await start()).keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
    });

    test('a start that somebody wrote over is put right', async () => {
      await twentyDays();
      const later = new Date(at(START) + 25 * DAY);
      clock.days(25);
      for (const table of WITNESSES) {
        await database.knex
          .withSchema('pesit_common')
          .from(table)
          .update({ started_at: later, counted: later, highest: later });
      }
      await database.knex.withSchema('pesit_common').from('license_events').update({ at: later });
      expect((await start()).keeper.status).toMatchObject({ evaluationDaysRemaining: 5 });
    });
  });

  describe('nobody is punished', () => {
    test('by a Redis that was emptied: it is told again', async () => {
      const { keeper } = await start();
      await keeper.refresh();
      const [[key, before]] = [...redis.texts] as [[string, string]];
      clock.days(5);
      redis.texts.clear();
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 25 });
      expect(redis.texts.get(key)).toBeDefined();
      expect(redis.texts.get(key)).not.toBe(before);
    });

    test('by the record of another installation in the same Redis', async () => {
      clock.set('2026-01-01T08:00:00Z');
      const other = await start();
      await other.keeper.refresh();
      await emptyTables(database, 'pesit_common');
      clock.set(START);
      const { keeper } = await start();
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 30 });
      expect(redis.texts.size).toBe(2);
    });

    test('by a Redis that is away', async () => {
      redis.state.away = true;
      const { keeper, log } = await start();
      clock.days(3);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 27 });
      expect(log.entries().filter(({ level }) => level !== 'info')).toEqual([]);
    });
  });

  test('Redis is written to once a minute at most', async () => {
    const { keeper } = await start();
    await keeper.refresh();
    const before = redis.state.writes;
    for (let count = 0; count < 24; count += 1) {
      clock.pass(5000);
      await keeper.refresh();
    }
    expect(redis.state.writes - before).toBe(2);
  });

  test('both tables and the audit have the installation; one that runs already gets its name', async () => {
    await start();
    const [evaluation, witness, event] = await Promise.all([...WITNESSES, 'license_events'].map(rows));
    expect(evaluation![0]!['installation']).toMatch(/^[0-9a-f-]{36}$/);
    expect([witness![0]!['installation'], event![0]!['installation']]).toEqual(
      Array(2).fill(evaluation![0]!['installation']),
    );
    const { knex } = database;
    for (const table of [...WITNESSES, 'license_events']) {
      await knex.raw('alter table pesit_common.?? drop column installation', [table]);
    }
    await knex.transaction(async (trx) => {
      await trx.raw('set local search_path to pesit_common');
      await LICENSE_MIGRATIONS.migrations[1]!.up(trx);
    });
    const after = (await Promise.all([...WITNESSES, 'license_events'].map(rows))).map(([row]) => row!['installation']);
    expect(new Set(after).size).toBe(1);
    expect(after[0]).toMatch(/^[0-9a-f-]{36}$/);
  });
});

withRedis(({ url }) => {
  withDatabase((harness) => {
    test('over a real Redis that goes and comes back', async () => {
      const database = await harness.open({ migrations: [LICENSE_MIGRATIONS], searchPath: ['public'] });
      const proxy = await startProxy(url);
      const link = new RedisLink(proxy.url, silentLogger);
      try {
        await new Promise<void>((resolve) => link.once('connected', resolve));
        const clock = new VirtualClock(START);
        const { keeper } = await startPod(database, clock, { memory: redisMemory(link) });
        await keeper.refresh();
        clock.days(20);
        await keeper.refresh();
        await proxy.cut();
        clock.days(5);
        await keeper.refresh();
        expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 5 });
        const connected = new Promise<void>((resolve) => link.once('connected', resolve));
        await proxy.mend();
        await connected;
        await keeper.refresh();
        const rewound = { started_at: new Date(START), counted: new Date(START), highest: new Date(START) };
        for (const table of ['license_evaluation', 'license_witness']) {
          await database.knex.withSchema('pesit_common').from(table).update(rewound);
        }
        clock.set(START);
        const again = await startPod(database, clock, { memory: redisMemory(link) });
        expect(again.keeper.status).toMatchObject({ evaluationDaysRemaining: 5 });
      } finally {
        link.close();
        await proxy.close();
      }
    });
  });
});
