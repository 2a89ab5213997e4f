import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { exceeds, lessGenerous, placeOf } from '../src/limits.js';
import type { Member } from '../src/limits.js';

const member = (name: string, since: number): Member => ({ name, since });
const CLUSTERS = [member('paris', 10)];
const PODS = [member('c', 30), member('a', 20), member('b', 20), member('d', 40)];
const PROFESSIONAL = { maxClusters: 1, maxPodsPerCluster: 3 };
const BUSINESS = { maxClusters: 5, maxPodsPerCluster: -1 };

describe('places', () => {
  test.each([
    ['a', true],
    ['b', true],
    ['c', true],
    ['d', false],
    ['new', false],
  ])('of four pods the oldest three work: %s %j', (pod, allowed) => {
    expect(placeOf({ cluster: 'paris', pod, clusters: CLUSTERS, pods: PODS }, PROFESSIONAL).allowed).toBe(allowed);
    expect(placeOf({ cluster: 'paris', pod, clusters: CLUSTERS, pods: PODS }, BUSINESS).allowed).toBe(true);
  });

  test('a place that becomes free goes to the next', () => {
    const pods = PODS.filter(({ name }) => name !== 'a');
    expect(placeOf({ cluster: 'paris', pod: 'd', clusters: CLUSTERS, pods }, PROFESSIONAL).allowed).toBe(true);
  });

  test('a pod beyond says why', () => {
    expect(placeOf({ cluster: 'paris', pod: 'd', clusters: CLUSTERS, pods: PODS }, PROFESSIONAL)).toEqual({
      allowed: false,
      reason: 'pod d is number 4 of cluster paris, the license allows 3: install a larger license, or run fewer pods',
    });
  });

  test('a second cluster is told apart by its name', () => {
    const clusters = [member('lyon', 20), ...CLUSTERS];
    const pods = [member('a', 1)];
    expect(placeOf({ cluster: 'paris', pod: 'a', clusters, pods }, PROFESSIONAL).allowed).toBe(true);
    expect(placeOf({ cluster: 'lyon', pod: 'a', clusters, pods }, PROFESSIONAL)).toEqual({
      allowed: false,
      reason:
        'cluster lyon is number 2 on this database, the license allows 1: install a larger license, or stop a cluster',
    });
    expect(placeOf({ cluster: 'lyon', pod: 'a', clusters, pods }, BUSINESS).allowed).toBe(true);
  });

  test('whatever the order of the list, as many pods work as the license allows, and no more', () => {
    const members = fc.uniqueArray(fc.record({ name: fc.string({ maxLength: 3 }), since: fc.nat(3) }), {
      selector: ({ name }) => name,
      maxLength: 12,
    });
    fc.assert(
      fc.property(members, fc.integer({ min: 1, max: 5 }), (pods, max) => {
        const working = (list: readonly Member[]) =>
          list.filter(
            ({ name: pod }) =>
              placeOf({ cluster: 'x', pod, clusters: [], pods: list }, { maxClusters: 1, maxPodsPerCluster: max })
                .allowed,
          );
        expect(working(pods)).toHaveLength(Math.min(max, pods.length));
        expect(new Set(working(pods.toReversed()))).toEqual(new Set(working(pods)));
      }),
    );
  });
});

test.each([
  [{ clusters: 1, podsPerCluster: 3 }, PROFESSIONAL, false],
  [{ clusters: 1, podsPerCluster: 4 }, PROFESSIONAL, true],
  [{ clusters: 2, podsPerCluster: 1 }, PROFESSIONAL, true],
  [{ clusters: 5, podsPerCluster: 500 }, BUSINESS, false],
])('%j against %j', (usage, limits, tooMuch) => {
  expect(exceeds(usage, limits)).toBe(tooMuch);
});

test('unlimited is more than any number', () => {
  expect(lessGenerous(PROFESSIONAL, BUSINESS)).toBe(true);
  expect(lessGenerous(BUSINESS, PROFESSIONAL)).toBe(false);
  expect(lessGenerous({ maxClusters: 5, maxPodsPerCluster: 3 }, BUSINESS)).toBe(true);
  expect(lessGenerous(BUSINESS, BUSINESS)).toBe(false);
});
