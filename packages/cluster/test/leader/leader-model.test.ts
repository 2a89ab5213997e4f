import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { SimulatedCluster } from '../support/simulated-cluster.js';
import type { Fault, Write } from '../support/simulated-cluster.js';

/** Faults begin in the first 20 s and are over after 35 s. */
const at = fc.oneof(fc.constant(0), fc.nat(20_000));
const ms = fc.nat(15_000);
const pod = fc.nat(2);
const target = fc.constantFrom('redis' as const, 'database' as const);
const cut = fc.record({ kind: fc.constant('cut' as const), at, pod, target, ms });
const slow = fc.record({ kind: fc.constant('slow' as const), at, pod, target, ms, by: fc.nat(12_000) });
const anything: fc.Arbitrary<Fault> = fc.oneof(
  cut,
  slow,
  fc.record({ kind: fc.constant('stand still' as const), at, pod, ms, clock: fc.boolean() }),
  fc.record({ kind: fc.constant('clock of Redis jumps' as const), at, by: fc.integer({ min: -10_000, max: 60_000 }) }),
  fc.record({ kind: fc.constant('Redis forgets' as const), at }),
);

/** Seeded: the same faults take the same course. */
const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
};

/** Two who lead: writes of one epoch by two pods, or one of an older epoch after one of a newer. */
const rivals = (writes: readonly Write[]): readonly (readonly [Write, Write])[] =>
  writes.flatMap((write, index) => {
    const before = writes[index - 1];
    const isRival =
      before !== undefined &&
      (write.epoch < before.epoch || (write.epoch === before.epoch && write.pod !== before.pod));
    return isRival ? [[before, write] as const] : [];
  });

const END = 70_000;

const runOf = async (faults: readonly Fault[], seed: number, fenceHolds = true): Promise<SimulatedCluster> => {
  const cluster = new SimulatedCluster(faults, randomOf(seed), fenceHolds);
  await cluster.run(END);
  return cluster;
};

describe('the leader by Redis and PostgreSQL, in a simulated cluster', () => {
  test('whatever fails: never two whose writes are accepted, and one leads when it is over', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anything, { maxLength: 8 }), fc.nat(), async (faults, seed) => {
        const { accepted, pods } = await runOf(faults, seed);
        expect(rivals(accepted)).toEqual([]);
        const leaders = pods.filter(({ lease }) => lease.isLeader);
        expect(leaders).toHaveLength(1);
        const last = accepted.at(-1);
        expect(last).toMatchObject({ pod: leaders[0]!.index, epoch: leaders[0]!.lease.epoch });
        expect(last!.at).toBeGreaterThan(END - 3000);
      }),
      { numRuns: 200 },
    );
  }, 120_000);

  test('however long messages take or get lost: never two that take themselves for the leader', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(cut, slow), { maxLength: 8 }), fc.nat(), async (faults, seed) => {
        const { accepted, mostLeaders } = await runOf(faults, seed);
        expect(rivals(accepted)).toEqual([]);
        expect(mostLeaders).toBe(1);
      }),
      { numRuns: 100 },
    );
  }, 120_000);

  describe('a leader that stands still for 20 s, its clock, too', () => {
    const still = (index: number): readonly Fault[] => [
      { kind: 'stand still', at: 5000, pod: index, ms: 20_000, clock: false },
    ];
    const leaderAtFirst = async (seed: number): Promise<number> => (await runOf([], seed)).accepted[0]!.pod;

    test('is refused', async () => {
      const { accepted, refused, mostLeaders } = await runOf(still(await leaderAtFirst(7)), 7);
      expect(mostLeaders).toBe(2);
      expect(rivals(accepted)).toEqual([]);
      expect(new Set(refused.map(({ epoch }) => epoch))).toEqual(new Set([1]));
    });

    test('would be a second one without the fence: the model can tell', async () => {
      const { accepted } = await runOf(still(await leaderAtFirst(7)), 7, false);
      expect(rivals(accepted)).not.toEqual([]);
    });
  });
});
