import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { DAY_MS } from '../src/claims.js';
import { licenseTime, mergeRecords, observe, recovered, withSeenTimes } from '../src/clock.js';
import { HOUR_MS, Machine } from './support/machine.js';

const started = () => new Machine('2027-03-01T08:00:00Z').start();

describe('an honest clock', () => {
  test('thirty days, then nothing', () => {
    const machine = started();
    expect(machine.daysLeft).toBe(30);
    expect(machine.days(29).daysLeft).toBe(1);
    expect(machine.pass(23 * HOUR_MS).daysLeft).toBe(1);
    expect(machine.pass(HOUR_MS).daysLeft).toBe(0);
  });

  test('days in which the service is down count as well', () => {
    expect(started().days(1).stop().days(28).start().daysLeft).toBe(1);
    expect(started().days(1).stop().days(300).start().daysLeft).toBe(0);
  });

  test('a few minutes to and fro change nothing', () => {
    const machine = started();
    for (const minutes of [3, -2, 4, -3]) {
      machine.days(1).setClock(machine.now + minutes * 60_000);
      machine.pass(HOUR_MS);
    }
    expect(machine.daysLeft).toBe(26);
  });
});

describe('the clock is turned back', () => {
  test('while the service runs: days go on as before', () => {
    const machine = started().days(20);
    expect(machine.setClock('2027-03-01T08:00:00Z').pass(HOUR_MS).daysLeft).toBe(10);
    expect(machine.days(5).daysLeft).toBe(5);
    expect(machine.days(5).daysLeft).toBe(0);
  });

  test('while it is down', () => {
    const machine = started().days(29).stop().setClock('2027-03-01T08:00:00Z').start();
    expect(machine.daysLeft).toBe(1);
    expect(machine.days(1).daysLeft).toBe(0);
  });

  test('every morning, by an office that works eight hours', () => {
    const machine = started();
    for (let day = 0; day < 60; day += 1) {
      machine
        .pass(8 * HOUR_MS)
        .stop()
        .pass(16 * HOUR_MS)
        .setClock('2027-03-01T08:00:00Z')
        .start();
    }
    expect(machine.used).toBeLessThanOrEqual(30 * DAY_MS);
    expect(machine.days(11).daysLeft).toBe(0);
  });

  test('behind what it ran, after a long stop: days do not stand still', () => {
    const machine = started().days(1).stop().days(20).start();
    expect(machine.daysLeft).toBe(9);
    expect(machine.setClock('2027-03-01T08:00:00Z').days(5).daysLeft).toBe(4);
  });

  test('once the evaluation is over', () => {
    const machine = started().days(31).stop().setClock('2027-03-02T08:00:00Z').start();
    expect(machine.daysLeft).toBe(0);
    expect(machine.setClock('2020-01-01').pass(HOUR_MS).daysLeft).toBe(0);
    const idle = started().stop().days(40).start().stop().setClock('2027-03-02T08:00:00Z').start();
    expect(idle.daysLeft).toBe(0);
  });
});

describe('the clock was wrong and is corrected', () => {
  test('ten years ahead: over while it says so, and nothing is lost', () => {
    const machine = started().days(2).setClock('2037-03-03T08:00:00Z').pass(HOUR_MS);
    expect(machine.daysLeft).toBe(0);
    expect(machine.setClock(machine.real).pass(HOUR_MS).daysLeft).toBe(28);
    expect(machine.stop().setClock('2037-03-03T08:00:00Z').start().daysLeft).toBe(0);
    expect(machine.stop().setClock(machine.real).start().daysLeft).toBe(28);
  });

  test('forty days ahead under the running service', () => {
    const machine = started().days(2).setClock('2027-04-12T08:00:00Z').pass(HOUR_MS);
    expect(machine.daysLeft).toBe(0);
    expect(machine.setClock(machine.real).pass(HOUR_MS).daysLeft).toBe(28);
  });

  test('twenty days ahead at a start: the days stand still until the right clock gets there, none is lost', () => {
    const machine = started().days(2).stop().setClock('2027-03-23T08:00:00Z').start().pass(HOUR_MS);
    expect(machine.daysLeft).toBe(8);
    expect(machine.setClock(machine.real).days(19).daysLeft).toBe(8);
    expect(machine.days(3).daysLeft).toBe(6);
    expect(machine.used).toBe(24 * DAY_MS + HOUR_MS);
  });

  test('far forward and back gives no day', () => {
    const machine = started().days(20);
    for (const to of ['2028-01-01', '2037-01-01', '2027-05-01', '2099-12-31']) {
      machine.stop().setClock(to).start().pass(60_000).stop().setClock(machine.real).start().pass(60_000);
      expect(machine.daysLeft).toBeLessThanOrEqual(10);
    }
  });

  test('a first start before the clock was set: the days begin then, and move with the clock', () => {
    const machine = new Machine('2027-03-01T08:00:00Z').setClock('1970-01-01T00:00:10Z').start().days(1);
    expect(machine.daysLeft).toBe(29);
    machine.setClock(machine.real).pass(HOUR_MS);
    expect(machine.daysLeft).toBe(29);
    expect(new Date(machine.record!.startedAt).toISOString()).toBe('2027-03-01T08:00:00.000Z');
    expect(machine.setClock('1970-01-01').days(28).daysLeft).toBe(1);
    expect(machine.days(1).daysLeft).toBe(0);
  });

  test('a license is not ended by it', () => {
    const machine = started().days(2).stop().setClock('2027-06-01').start().pass(HOUR_MS);
    machine.setClock(machine.real).pass(HOUR_MS);
    expect(licenseTime(machine.record!, machine.now)).toBe(machine.real);
  });

  test('an expired license is not revived by turning the clock back', () => {
    const machine = started().days(100).setClock('2027-03-02').pass(HOUR_MS);
    expect(new Date(licenseTime(machine.record!, machine.now)).toISOString()).toBe('2027-06-09T09:00:00.000Z');
  });
});

describe('an extension', () => {
  test('is added to what remains, and to nothing when nothing remains', () => {
    const machine = started().days(20).extend(10);
    expect(machine.daysLeft).toBe(20);
    expect(machine.extend(5).daysLeft).toBe(25);
    expect(machine.days(125).daysLeft).toBe(0);
    expect(machine.extend(7).daysLeft).toBe(7);
    expect(machine.days(7).daysLeft).toBe(0);
  });

  test('begins an evaluation of no days', () => {
    const machine = new Machine('2027-03-01T08:00:00Z', 0).start().days(3);
    expect(machine.daysLeft).toBe(0);
    expect(machine.extend(10).daysLeft).toBe(10);
  });

  test('granted in the year 2126 lasts as long as any other', () => {
    const machine = started().days(31).setClock('2126-01-01').pass(HOUR_MS).extend(10);
    expect(machine.daysLeft).toBe(10);
    machine.setClock(machine.real).pass(HOUR_MS);
    expect(machine.daysLeft).toBe(10);
    expect(machine.days(10).daysLeft).toBe(0);
  });
});

describe('the database', () => {
  test('an older copy gives no day', () => {
    const machine = started().days(3);
    const copy = machine.record!;
    machine.days(20).stop().restore(copy).start();
    expect(machine.daysLeft).toBe(7);
    expect(machine.restore(copy).setClock('2027-03-04T08:00:00Z').pass(HOUR_MS).daysLeft).toBe(7);
  });

  test('two witnesses: the earlier start and the later times hold', () => {
    const one = { startedAt: 2e12, counted: 2.1e12, highest: 2.2e12 };
    const other = { startedAt: 1.9e12, counted: 2.05e12, highest: 2.3e12 };
    const both = { startedAt: 1.9e12, counted: 2.1e12, highest: 2.3e12 };
    expect([mergeRecords(one, other), mergeRecords(other, one)]).toEqual([both, both]);
    const unset = { startedAt: 1000, counted: 2000, highest: 3000 };
    expect([mergeRecords(one, unset), mergeRecords(unset, one)]).toEqual([one, one]);
  });

  const now = Date.parse('2027-03-29T08:00:00Z');
  const earliest = Date.parse('2027-03-01T09:00:00Z');
  const latest = Date.parse('2027-03-30T08:00:00Z');
  const beyond = Date.parse('2099-01-01');

  test('what the history knows holds against a record that is younger', () => {
    const young = { startedAt: now, counted: now, highest: now };
    const seen = { startedAt: earliest, counted: now, highest: latest };
    expect(withSeenTimes(young, { earliest, latest }, now)).toEqual(seen);
    expect(withSeenTimes(young, {}, now)).toEqual(young);
    // Records that a wrong clock left.
    expect(withSeenTimes(young, { earliest: 0, latest: beyond }, now)).toEqual(young);
  });

  test('what the history knows stands in for a record that is gone, and time goes on from there', () => {
    expect(recovered({}, now)).toEqual({ startedAt: now, counted: now, highest: now });
    expect(recovered({ earliest, latest }, now)).toEqual({ startedAt: earliest, counted: latest, highest: latest });
    expect(recovered({ earliest: 0, latest: earliest }, now)).toEqual({ startedAt: now, counted: now, highest: now });
    // A time that cannot be ends an evaluation, but no license.
    expect(recovered({ earliest, latest: beyond }, now)).toEqual({
      startedAt: earliest,
      counted: now,
      highest: beyond,
    });
  });
});

const moves = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom('run', 'stay down'), ms: fc.integer({ min: 1, max: 20 * DAY_MS }) }),
    fc.record({ kind: fc.constant('set clock'), ahead: fc.integer({ min: -4000 * DAY_MS, max: 4000 * DAY_MS }) }),
    fc.record({ kind: fc.constant('set clock'), ahead: fc.integer({ min: -40 * DAY_MS, max: 40 * DAY_MS }) }),
    fc.record({ kind: fc.constant('restore') }),
  ),
  { minLength: 1, maxLength: 30 },
);

test('whatever is done to the clock, nobody uses an evaluation of 30 days for more than 30 days', () => {
  fc.assert(
    fc.property(moves, (list) => {
      const machine = started();
      const first = machine.record!;
      for (const move of list) {
        if (move.kind === 'run') machine.start().pass(move.ms).stop();
        else if (move.kind === 'stay down') machine.stop().pass(move.ms);
        else if (move.kind === 'set clock') machine.ahead = move.ahead;
        // The first copy, put back under the running service.
        else machine.start().restore(first);
      }
      // The service looks at the clock once an hour here.
      expect(machine.used).toBeLessThanOrEqual(30 * DAY_MS + HOUR_MS);
    }),
    { numRuns: 300 },
  );
});

test('neither counted nor highest time ever goes back, and neither runs ahead of both clocks', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1.75e12, max: 4e12 }), fc.nat(DAY_MS), fc.boolean()), { maxLength: 30 }),
      (looks) => {
        let record = { startedAt: 1.8e12, counted: 1.8e12, highest: 1.8e12 };
        for (const [now, ran, starting] of looks) {
          const next = observe(record, { now, ran, starting });
          expect(next.counted).toBeGreaterThanOrEqual(record.counted + ran);
          expect(next.highest).toBeGreaterThanOrEqual(record.highest);
          expect(next.highest).toBeGreaterThanOrEqual(next.counted);
          expect(next.highest).toBeLessThanOrEqual(Math.max(record.highest + ran, record.counted + ran, now));
          record = next;
        }
      },
    ),
  );
});
