import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { LeaseClock, LeaseWatch, renewTogether } from '../../src/index.js';

/** A clock that goes when told, and rings. */
class Hand {
  now = 0;
  readonly #alarms = new Set<{ readonly at: number; readonly ring: () => void }>();

  readonly monotonic = (): number => this.now;
  readonly alarm = (delayMs: number, ring: () => void): (() => void) => {
    const alarm = { at: this.now + delayMs, ring };
    this.#alarms.add(alarm);
    return () => void this.#alarms.delete(alarm);
  };

  /** @param rings false: the process stands still meanwhile */
  pass(ms: number, rings = true): void {
    this.now += ms;
    if (!rings) return;
    for (const alarm of this.#alarms) {
      if (alarm.at <= this.now && this.#alarms.delete(alarm)) alarm.ring();
    }
  }
}

describe('a lease as its holder counts it', () => {
  const hold = (margin = 0.1) => {
    const hand = new Hand();
    const told: number[] = [];
    const clock = new LeaseClock({ leaseMs: 1000, margin, over: () => void told.push(hand.now), time: hand });
    return { hand, told, clock };
  };

  test('begins when it was asked for, and is given up a margin before its end', () => {
    const { hand, told, clock } = hold();
    expect([clock.isHeld, clock.isDue]).toEqual([false, true]);
    const since = clock.now();
    hand.pass(300);
    expect(clock.granted(since)).toBe(true);
    hand.pass(599);
    expect([clock.isHeld, told]).toEqual([true, []]);
    hand.pass(1);
    expect([clock.isHeld, told]).toEqual([false, [900]]);
  });

  test('a grant whose answer took too long is not used', () => {
    const { hand, told, clock } = hold();
    hand.pass(900);
    expect([clock.granted(0), clock.isHeld, told]).toEqual([false, false, []]);
  });

  test('a renewal keeps the term; one whose answer comes after a newer one shortens nothing', () => {
    const { hand, told, clock } = hold();
    clock.granted(0);
    hand.pass(249);
    expect(clock.isDue).toBe(false);
    hand.pass(1);
    expect(clock.isDue).toBe(true);
    clock.granted(250);
    clock.granted(100);
    hand.pass(899);
    expect([clock.term, told]).toEqual([1, []]);
    hand.pass(1);
    expect([clock.term, told]).toEqual([undefined, [1150]]);
  });

  test('a process that stood still has another term afterwards, and hears that the first is over', () => {
    const { hand, told, clock } = hold();
    clock.granted(0);
    hand.pass(5000, false);
    expect([clock.term, told]).toEqual([undefined, []]);
    clock.granted(5000);
    expect([clock.term, told]).toEqual([2, [5000]]);
  });

  test('who gives it back is told nothing; whose lease another has is', () => {
    const { hand, told, clock } = hold();
    clock.granted(0);
    expect([clock.end(), clock.end(), told]).toEqual([true, false, []]);
    clock.granted(0);
    clock.lost();
    clock.lost();
    hand.pass(2000);
    expect([clock.isHeld, told]).toEqual([false, [0]]);
  });

  test('many are renewed by one statement: those that it does not find are lost, one that ended meanwhile is not touched', async () => {
    const hand = new Hand();
    const over: string[] = [];
    const leases = new Map(
      ['a', 'b', 'c'].map((key) => {
        const clock = new LeaseClock({ leaseMs: 1000, over: () => void over.push(key), time: hand });
        clock.granted(0);
        return [key, clock];
      }),
    );
    const c = leases.get('c')!;
    await renewTogether(leases, (keys) => {
      expect(keys).toEqual(['a', 'b', 'c']);
      leases.delete('c');
      c.end();
      hand.pass(500);
      return Promise.resolve(new Map([['a', true]]));
    });
    expect(over).toEqual(['b']);
    hand.pass(400);
    expect([...leases.values(), c].map(({ isHeld }) => isHeld)).toEqual([false, false, false]);
    expect(over).toEqual(['b', 'a']);
  });
});

describe('leases of others', () => {
  test('are judged by whom the database has answered for a whole lease without a gap, and who is awake', () => {
    const hand = new Hand();
    const watch = new LeaseWatch(1000, hand.monotonic);
    const passes = (ms: number, fails = false): boolean => {
      hand.pass(ms);
      if (fails) watch.failed();
      else watch.heard(hand.now);
      return watch.mayJudge;
    };
    expect([watch.mayJudge, passes(0), passes(900), passes(200)]).toEqual([false, false, false, true]);
    // It stood still, or the database was away.
    hand.pass(1000);
    expect([watch.mayJudge, passes(0), passes(900), passes(200)]).toEqual([false, false, false, true]);
    expect([passes(1, true), passes(1), passes(1000), passes(900)]).toEqual([false, false, false, false]);
  });
});

/** What happens to one holder, one after the other; milliseconds. */
type Step =
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'stand still'; readonly ms: number }
  | { readonly kind: 'ask'; readonly there: number; readonly back: number; readonly fails: boolean };

const LEASE_MS = 1000;
const ms = fc.nat(1500);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('pass' as const), ms }),
  fc.record({ kind: fc.constant('stand still' as const), ms: fc.nat(5000) }),
  fc.record({ kind: fc.constant('ask' as const), there: ms, back: ms, fails: fc.boolean() }),
);

describe('whatever statements take, whatever fails, however long a process stands still', () => {
  test('no holder believes in its lease when another could have it, and two never do at a time', () => {
    const holders = fc.array(fc.record({ who: fc.nat(2), step }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(holders, (steps) => {
        const hand = new Hand();
        const clocks = [0, 1, 2].map(() => new LeaseClock({ leaseMs: LEASE_MS, margin: 0.1, time: hand }));
        /** As the database has it. */
        let row = { holder: -1, until: 0 };
        const answers: { readonly at: number; readonly run: () => void }[] = [];
        const look = (): void => {
          const believe = clocks.flatMap((clock, index) => (clock.isHeld ? [index] : []));
          expect(believe.length).toBeLessThanOrEqual(1);
          if (believe[0] !== undefined) {
            expect(row.holder).toBe(believe[0]);
            expect(hand.now).toBeLessThan(row.until);
          }
        };
        /** Time goes by in steps of what is due. */
        const go = (until: number, rings: boolean): void => {
          for (;;) {
            const next = answers.filter(({ at }) => at <= until).sort((one, two) => one.at - two.at)[0];
            if (next === undefined) break;
            hand.pass(Math.max(0, next.at - hand.now), rings);
            answers.splice(answers.indexOf(next), 1);
            next.run();
            look();
          }
          hand.pass(until - hand.now, rings);
          look();
        };
        for (const { who, step: what } of steps) {
          const clock = clocks[who]!;
          if (what.kind === 'pass') go(hand.now + what.ms, true);
          if (what.kind === 'stand still') go(hand.now + what.ms, false);
          if (what.kind !== 'ask') continue;
          const since = clock.now();
          answers.push({
            at: since + what.there,
            run: () => {
              if (row.holder !== who && hand.now < row.until) return;
              row = { holder: who, until: hand.now + LEASE_MS };
              if (what.fails) return;
              answers.push({ at: hand.now + what.back, run: () => void clock.granted(since) });
            },
          });
        }
        go(hand.now + 5000, true);
        expect(clocks.some(({ isHeld }) => isHeld)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });
});
