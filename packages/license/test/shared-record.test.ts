import { createHmac, hkdfSync, randomUUID } from 'node:crypto';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { redisAt, RedisLink, redisMemory } from '@pesit-node/cluster';
import type { SharedMemory } from '@pesit-node/cluster';
import { SecretBox } from '@pesit-node/service';
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

const [OLD_KEY, NEW_KEY] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const SECRETS = new SecretBox([OLD_KEY]);

/** The record under `secrets.key`, and how often a forged one was told. */
const sharedOver = (memory: SharedMemory, secrets = SECRETS) => {
  const told = { forged: 0 };
  const shared = new SharedRecord({ memory, secrets, forged: () => (told.forged += 1) });
  return { meet: shared.meet.bind(shared), told };
};

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
      const shared = sharedOver(port());
      const now = record(START, '2027-03-20T08:00:00Z');
      expect(await shared.meet(installation, now)).toEqual(now);
      const restored = record('2027-03-02T08:00:00Z', '2027-03-03T08:00:00Z');
      expect(await shared.meet(installation, restored)).toEqual(now);
      const later = record(START, '2027-03-25T08:00:00Z', '2027-04-01T08:00:00Z');
      expect(await shared.meet(installation, later)).toEqual(later);
      expect(await shared.meet(installation, restored)).toEqual(later);
    });

    test('another installation has another record', async () => {
      const shared = sharedOver(port());
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
    link = new RedisLink(redisAt(url), silentLogger);
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
    const shared = sharedOver(port);
    await shared.meet(installation, now);
    const [key, own] = [...texts][0]!;
    texts.set(key, text);
    expect(await shared.meet(installation, now)).toEqual(now);
    expect([texts.get(key), shared.told.forged]).toEqual([own, 1]);
  });

  test('signed with what the database knows alone, as a version before this one did', async () => {
    const { port, texts } = memory();
    const shared = sharedOver(port);
    await shared.meet(installation, now);
    const [key, own] = [...texts][0]!;
    const ahead = [at('2020-01-01'), at('2029-01-01'), at('2029-01-01')].join(' ');
    for (const secret of [installation, '', 'secrets.key']) {
      texts.set(key, `${ahead} ${createHmac('sha256', secret).update(ahead).digest('hex')}`);
      expect(await shared.meet(installation, now)).toEqual(now);
      expect(texts.get(key)).toBe(own);
    }
    expect(shared.told.forged).toBe(3);
  });

  test('one digit changed, and the record of another installation', async () => {
    const { port, texts } = memory();
    const shared = sharedOver(port);
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
    await sharedOver(port).meet(installation, now);
    const [key, text] = [...texts][0]!;
    expect(`${key} ${text}`).not.toContain(installation);
    expect(key).toMatch(/^license:[0-9a-f]{64}$/);
  });
});

describe('the key of the signature', () => {
  const installation = randomUUID();
  const old = record(START, '2027-03-20T08:00:00Z');
  const restored = record(START, START);

  test('is of this use alone, RFC 5869 from secrets.key', async () => {
    const { port, texts } = memory();
    await sharedOver(port).meet(installation, old);
    const [[key, text]] = [...texts] as [[string, string]];
    const derived = Buffer.from(hkdfSync('sha256', OLD_KEY, '', 'pesit-node license clock record v1', 32));
    const hmac = (what: string): string =>
      createHmac('sha256', derived).update(`${what} ${installation}`).digest('hex');
    const times = [old.startedAt, old.counted, old.highest].join(' ');
    expect([key, text]).toEqual([`license:${hmac('name')}`, `${times} ${hmac(times)}`]);
  });

  test('is rotated: what the older one has signed counts, and the newest signs', async () => {
    const { port } = memory();
    await sharedOver(port).meet(installation, old);
    const both = sharedOver(port, new SecretBox([NEW_KEY, OLD_KEY]));
    expect(await both.meet(installation, restored)).toEqual(old);
    const alone = sharedOver(port, new SecretBox([NEW_KEY]));
    expect(await alone.meet(installation, restored)).toEqual(old);
    expect([both.told.forged, alone.told.forged]).toEqual([0, 0]);
  });

  test('that is another one has another record: two do not take each other for forged', async () => {
    const { port, texts } = memory();
    const one = sharedOver(port);
    const other = sharedOver(port, new SecretBox([NEW_KEY]));
    await one.meet(installation, old);
    expect(await other.meet(installation, restored)).toEqual(restored);
    expect(await one.meet(installation, restored)).toEqual(old);
    expect([texts.size, one.told.forged, other.told.forged]).toEqual([2, 0, 0]);
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
  const start = (port: SharedMemory = redis.port) =>
    startPod(database, clock, { shared: { memory: port, secrets: SECRETS } });
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

  test('what somebody wrote into Redis is absent, and the log says so', async () => {
    const before = await start();
    await before.keeper.refresh();
    const [key] = [...redis.texts.keys()];
    redis.texts.set(key!, `${at('2020-01-01')} ${at('2029-01-01')} ${at('2029-01-01')} ${'0'.repeat(64)}`);
    const { keeper, log } = await start();
    expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 30 });
    expect(log.entries().filter(({ level }) => level === 'warn')).toEqual([
      expect.objectContaining({
        msg: 'the clock record in Redis is not signed with secrets.key: ignored, and written over',
      }),
    ]);
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
      const link = new RedisLink(redisAt(proxy.url), silentLogger);
      try {
        await new Promise<void>((resolve) => link.once('connected', resolve));
        const clock = new VirtualClock(START);
        const { keeper } = await startPod(database, clock, { shared: { memory: redisMemory(link), secrets: SECRETS } });
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
        const again = await startPod(database, clock, { shared: { memory: redisMemory(link), secrets: SECRETS } });
        expect(again.keeper.status).toMatchObject({ evaluationDaysRemaining: 5 });
      } finally {
        link.close();
        await proxy.close();
      }
    });
  });
});
