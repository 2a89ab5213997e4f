/** One statement for several callers: when each is answered, how each fails, and how long it waits. No database, a clock that is told. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { Batches, jsonBytes, jsonRows, oncePerKey } from '../../src/index.js';

/** A statement that was made, and waits for its end. */
interface Made {
  readonly rows: readonly string[];
  readonly at: number;
  readonly commit: () => Promise<void>;
  readonly fail: (error: Error) => Promise<void>;
}

/** Errors as the driver tells them. */
const UNIQUE = Object.assign(new Error('duplicate key'), { code: '23505' });
const DEADLOCK = Object.assign(new Error('deadlock detected'), { code: '40P01' });
const TOO_SLOW = Object.assign(new Error('canceling statement'), { code: '57014' });
const LOST = new Error('Connection terminated unexpectedly');

/** All that can happen without the clock or the database has happened. */
const quiet = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const bench = (underWay?: () => number) => {
  let now = 0;
  const alarms = new Set<{ readonly at: number; readonly ring: () => void }>();
  const made: Made[] = [];
  const outcomes = new Map<string, string>();
  const monotonic = () => now;
  const alarm = (delayMs: number, ring: () => void) => {
    const one = { at: now + delayMs, ring };
    alarms.add(one);
    return () => void alarms.delete(one);
  };
  const run = (rows: readonly string[]) =>
    new Promise<readonly string[]>((resolve, reject) => {
      const commit = () => (resolve(rows.map((row) => row.toUpperCase())), quiet());
      made.push({ rows, at: now, commit, fail: (error) => (reject(error), quiet()) });
    });
  const batches = new Batches<string, string>({ run, underWay, time: { monotonic, alarm } });
  const add = (...rows: readonly string[]) => {
    for (const row of rows) {
      void batches.add(row).then(
        (answer) => outcomes.set(row, answer),
        (error: unknown) => outcomes.set(row, (error as Error).message),
      );
    }
    return quiet();
  };
  const pass = (ms: number) => {
    now += ms;
    for (const one of alarms) if (one.at <= now && alarms.delete(one)) one.ring();
    return quiet();
  };
  return { made, outcomes, add, pass, last: () => made.at(-1) as Made, rows: () => made.map((one) => one.rows) };
};

describe('one statement at a time', () => {
  test('a caller that is alone is served at once; those that come meanwhile go together, in their order', async () => {
    const { add, rows, last, outcomes } = bench();
    await add('a');
    expect(rows()).toEqual([['a']]);
    await add('b', 'c');
    await add('d');
    expect(rows()).toEqual([['a']]);
    expect(outcomes.size).toBe(0);
    await last().commit();
    expect(Object.fromEntries(outcomes)).toEqual({ a: 'A' });
    expect(rows()).toEqual([['a'], ['b', 'c', 'd']]);
    await last().commit();
    expect(Object.fromEntries(outcomes)).toEqual({ a: 'A', b: 'B', c: 'C', d: 'D' });
  });

  test('it has 64 rows at most', async () => {
    const { add, made, last } = bench();
    await add('first');
    await add(...Array.from({ length: 130 }, (_, i) => `r${i}`));
    for (let i = 0; i < 4; i++) await last().commit();
    expect(made.map(({ rows }) => rows.length)).toEqual([1, 64, 64, 2]);
  });
});

describe('a statement that fails', () => {
  const three = async () => {
    const all = bench();
    await all.add('a');
    await all.add('b', 'c', 'd');
    await all.last().commit();
    return all;
  };

  test.each([UNIQUE, DEADLOCK])(
    'because of a row ($message): each is made alone, and that row fails alone',
    async (error) => {
      const { last, rows, outcomes } = await three();
      await last().fail(error);
      await last().commit();
      await last().fail(error);
      await last().commit();
      expect(rows()).toEqual([['a'], ['b', 'c', 'd'], ['b'], ['c'], ['d']]);
      expect(Object.fromEntries(outcomes)).toEqual({ a: 'A', b: 'B', c: error.message, d: 'D' });
    },
  );

  test.each([LOST, TOO_SLOW])(
    'with an outcome that nobody knows ($message): every row of it fails so, none is made again',
    async (error) => {
      const { add, last, rows, outcomes } = await three();
      await add('next');
      await last().fail(error);
      const same = error.message;
      expect(Object.fromEntries(outcomes)).toEqual({ a: 'A', b: same, c: same, d: same });
      expect(rows().slice(2)).toEqual([['next']]);
    },
  );

  test('and the database is lost while its rows are made alone: the others fail so, and are not made', async () => {
    const { last, rows, outcomes } = await three();
    await last().fail(UNIQUE);
    await last().commit();
    await last().fail(LOST);
    expect(rows().slice(2)).toEqual([['b'], ['c']]);
    expect(Object.fromEntries(outcomes)).toEqual({ a: 'A', b: 'B', c: LOST.message, d: LOST.message });
  });

  test('alone: as it is', async () => {
    const { add, last, rows, outcomes } = bench();
    await add('a');
    await last().fail(UNIQUE);
    expect(rows()).toEqual([['a']]);
    expect(outcomes.get('a')).toBe(UNIQUE.message);
  });
});

describe('company', () => {
  test('nobody waits for it where no more than eight are under way', async () => {
    const { add, rows } = bench(() => 8);
    await add('a');
    expect(rows()).toEqual([['a']]);
  });

  test('where more are under way, two milliseconds at most, from the first one on', async () => {
    const { add, pass, rows } = bench(() => 9);
    await add('a');
    await pass(1);
    await add('b');
    expect(rows()).toEqual([]);
    await pass(1);
    expect(rows()).toEqual([['a', 'b']]);
  });

  test('not when all are there', async () => {
    const { add, rows } = bench(() => 9);
    await add('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
    expect(rows()).toEqual([]);
    await add('i');
    expect(rows().map(({ length }) => length)).toEqual([9]);
  });

  test('rows that have waited for a statement wait no more', async () => {
    const { add, pass, last, rows } = bench(() => 20);
    await add('a');
    await pass(2);
    await add('b');
    await pass(2);
    await last().commit();
    expect(rows()).toEqual([['a'], ['b']]);
  });
});

test('whatever happens, each row is answered once, by the end of a statement that held it, in the order of arrival', async () => {
  const event = fc.oneof(
    fc.record({ kind: fc.constant('arrive' as const), count: fc.integer({ min: 1, max: 80 }) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 3 }) }),
    fc.record({ kind: fc.constant('end' as const), as: fc.constantFrom('commit', 'commit', UNIQUE, LOST, DEADLOCK) }),
  );
  const history = fc.array(event, { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(history, fc.integer({ min: 0, max: 70 }), async (events, underWay) => {
      const { add, pass, made, outcomes } = bench(() => underWay);
      const ended: { readonly of: Made; readonly as: string }[] = [];
      let arrived = 0;
      const end = async (as: Error | 'commit') => {
        const of = made[ended.length];
        if (of === undefined) return;
        const before = outcomes.size;
        ended.push({ of, as: as === 'commit' ? as : as.message });
        await (as === 'commit' ? of.commit() : of.fail(as));
        // Nobody but its own callers is answered by it: when the database is lost, those whose turn it had not been, too.
        const own = new Set(as === LOST ? made.flatMap((one) => one.rows) : of.rows);
        expect([...outcomes.keys()].slice(before).filter((row) => !own.has(row))).toEqual([]);
      };
      for (const one of events) {
        if (one.kind === 'arrive') await add(...Array.from({ length: one.count }, () => `r${arrived++}`));
        else if (one.kind === 'pass') await pass(one.ms);
        else await end(one.as as Error | 'commit');
        expect(made.length - ended.length).toBeLessThanOrEqual(1);
      }
      for (let i = 0; outcomes.size < arrived && i <= arrived * 3; i++) {
        await pass(2);
        await end('commit');
      }
      expect(outcomes.size).toBe(arrived);
      expect(made.every(({ rows }) => rows.length <= 64)).toBe(true);
      for (const [row, outcome] of outcomes) {
        // What it was told is the end of the last statement that held it.
        const last = ended.findLast(({ of }) => of.rows.includes(row)) as (typeof ended)[number];
        if (outcome === row.toUpperCase()) expect(last.as).toBe('commit');
        else expect([last.as, LOST.message]).toContain(outcome);
        // Taken back before it was made again, and never after a commit or an unknown end.
        const earlier = ended.filter(({ of }) => of.rows.includes(row)).slice(0, -1);
        expect(earlier.map(({ as }) => as).filter((as) => as === 'commit' || as === LOST.message)).toEqual([]);
      }
      const first = new Map<string, number>();
      for (const [index, { rows }] of made.entries())
        for (const row of rows) if (!first.has(row)) first.set(row, index);
      const order = Array.from({ length: arrived }, (_, i) => first.get(`r${i}`) ?? 0);
      expect(order).toEqual([...order].sort((a, b) => a - b));
    }),
    { numRuns: 150 },
  );
});

test('equal rows are one of a statement that reads, and share its answer', async () => {
  const made: (readonly string[])[] = [];
  const run = oncePerKey<string, { readonly of: string }>(
    (row) => row.toLowerCase(),
    (rows) => (made.push(rows), Promise.resolve(rows.map((of) => ({ of })))),
  );
  const answers = await run(['a', 'b', 'A', 'c', 'b']);
  expect(answers.map(({ of }) => of)).toEqual(['a', 'b', 'a', 'c', 'b']);
  expect(answers[2]).toBe(answers[0]);
  expect(await run(['x'])).toEqual([{ of: 'x' }]);
  expect(made).toEqual([['a', 'b', 'c'], ['x']]);
});

test('rows travel as JSON: bytes as PostgreSQL reads them, half a surrogate pair as the driver writes it', () => {
  expect(jsonRows([{ a: jsonBytes(Buffer.from([0, 255])), b: jsonBytes(undefined), c: 'x\\ud800' }])).toBe(
    '[{"a":"\\\\x00ff","b":null,"c":"x\\\\ud800"}]',
  );
  expect(jsonRows([{ a: 'x\ud800y' }])).toBe('[{"a":"x\ufffdy"}]');
});
