import { describe, expect, test } from '@jest/globals';
import type { MembersView } from '@pesit-node/cluster';
import fc from 'fast-check';

import { exceeds, lessGenerous, placeOf } from '../src/limits.js';

const PROFESSIONAL = { maxClusters: 1, maxPodsPerCluster: 3 };
const BUSINESS = { maxClusters: 5, maxPodsPerCluster: -1 };
const ENTERPRISE = { maxClusters: -1, maxPodsPerCluster: -1 };

const pod = (name: string) => ({ instance: `uuid-${name}`, name, since: 0 });
/** What pod `name` of cluster `cluster` sees. */
const view = (name: string, pods: string, cluster = 'paris', clusters = 'paris'): MembersView => ({
  ...{ cluster, self: pod(name) },
  clusters: clusters.split(' '),
  pods: pods.split(' ').map(pod),
});

describe('places', () => {
  test.each([
    ['a', true],
    ['b', true],
    ['c', true],
    ['d', false],
    ['new', false],
  ])('of four pods the oldest three work: %s %j', (name, allowed) => {
    expect(placeOf(view(name, 'a b c d'), PROFESSIONAL).allowed).toBe(allowed);
    expect(placeOf(view(name, 'a b c d'), BUSINESS).allowed).toBe(true);
  });

  test('a place that becomes free goes to the next', () => {
    expect(placeOf(view('d', 'b c d'), PROFESSIONAL).allowed).toBe(true);
  });

  test('pods of one name are told apart', () => {
    const pods = [1, 2, 3, 4].map((number) => ({ instance: String(number), name: 'same', since: 0 }));
    const places = pods.map((self) => placeOf({ cluster: 'x', self, clusters: ['x'], pods }, PROFESSIONAL).allowed);
    expect(places).toEqual([true, true, true, false]);
  });

  test('a pod beyond says why', () => {
    expect(placeOf(view('d', 'a b c d'), PROFESSIONAL)).toEqual({
      allowed: false,
      reason: 'pod d is number 4 of cluster paris, the license allows 3: install a larger license, or run fewer pods',
    });
  });

  test.each([
    ['paris', PROFESSIONAL, true],
    ['lyon', PROFESSIONAL, false],
    ['lyon', BUSINESS, true],
    ['f', BUSINESS, false],
    ['f', ENTERPRISE, true],
  ])('clusters are told apart by their names, the oldest work: %s with %j %j', (cluster, limits, allowed) => {
    expect(placeOf(view('a', 'a', cluster, 'paris lyon c d e f'), limits).allowed).toBe(allowed);
  });

  test('a cluster beyond says why', () => {
    expect(placeOf(view('a', 'a', 'lyon', 'paris lyon'), PROFESSIONAL)).toEqual({
      allowed: false,
      reason:
        'cluster lyon is number 2 on this database, the license allows 1: install a larger license, or stop a cluster',
    });
  });

  test('as many pods work as the license allows, and no more', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,3}$/), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(names, fc.integer({ min: 1, max: 5 }), (pods, max) => {
        const limits = { maxClusters: 1, maxPodsPerCluster: max };
        const working = pods.filter((name) => placeOf(view(name, pods.join(' ')), limits).allowed);
        expect(working).toEqual(pods.slice(0, max));
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
