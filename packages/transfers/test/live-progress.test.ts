/** Rates and figures of running transfers, by a clock of the test. */
import { describe, expect, test } from '@jest/globals';

import { LiveProgress } from '../src/live/live-progress.js';
import { Rate } from '../src/live/rate.js';

describe('Rate', () => {
  test.each<[string, readonly (readonly [bytes: number, at: number])[], number | undefined]>([
    ['nothing to look back on', [[1000, 0]], undefined],
    [
      'too little time',
      [
        [0, 0],
        [1000, 100],
      ],
      undefined,
    ],
    [
      'two points',
      [
        [0, 0],
        [1000, 500],
      ],
      2000,
    ],
    [
      'many in little time',
      [
        [0, 0],
        [100, 100],
        [200, 200],
        [1000, 1000],
      ],
      1000,
    ],
    [
      'only the last ten seconds count',
      [
        [0, 0],
        [1_000_000, 1000],
        [1_001_000, 12_000],
        [1_011_000, 22_000],
      ],
      1000,
    ],
    [
      'stands still',
      [
        [0, 0],
        [5000, 1000],
        [5000, 30_000],
      ],
      0,
    ],
    [
      'goes back: it begins anew',
      [
        [0, 0],
        [5000, 1000],
        [3000, 2000],
        [4000, 3000],
      ],
      1000,
    ],
  ])('%s', (_, points, expected) => {
    const rate = new Rate();
    for (const [bytes, at] of points) rate.add(bytes, at);
    if (expected === undefined) expect(rate.perSecond).toBeUndefined();
    else expect(rate.perSecond).toBeCloseTo(expected);
  });

  test('figures that are told from time to time: the same ones say nothing for 5 seconds', () => {
    const rate = new Rate();
    rate.hear(0, 0);
    rate.hear(2000, 2000);
    rate.hear(2000, 3000);
    expect(rate.perSecond).toBe(1000);
    rate.hear(2000, 8000);
    expect(rate.perSecond).toBe(250);
  });
});

describe('LiveProgress', () => {
  const row = { id: 7, version: 'a', bytes: 100, syncPoint: null, expected: 5000, isAnnounced: false, node: 'pod-1' };

  test('figures of this process are newer than the row; each is told once', () => {
    let figures: { dataBytes: number; syncPoint: number } | undefined;
    let now = 0;
    const progress = new LiveProgress(
      () => figures,
      () => now,
    );
    progress.look([row]);
    const told = {
      id: 7,
      bytesTransferred: 100,
      expectedBytes: 5000,
      isAnnounced: false,
      rate: null,
      estimatedEnd: null,
      syncPoint: 0,
    };
    expect(progress.moved()).toEqual([{ ...told, node: 'pod-1' }]);
    expect(progress.moved()).toEqual([]);
    figures = { dataBytes: 1000, syncPoint: 2 };
    progress.sample();
    now = 1000;
    figures = { dataBytes: 3000, syncPoint: 3 };
    progress.sample();
    const [moved] = progress.moved();
    expect(moved).toMatchObject({ bytesTransferred: 3000, syncPoint: 3, rate: 2900 });
    const left = new Date(moved?.estimatedEnd ?? '').getTime() - Date.now();
    // 2000 bytes at 2900 a second: the estimate is some milliseconds old.
    expect(left).toBeLessThanOrEqual(690);
    progress.look([]);
    expect([progress.all(), progress.of(7)]).toEqual([[], undefined]);
  });

  test('another attempt has a rate of its own', () => {
    let now = 0;
    const progress = new LiveProgress(
      () => undefined,
      () => now,
    );
    progress.look([row]);
    now = 1000;
    progress.look([{ ...row, bytes: 2100 }]);
    expect(progress.of(7)).toMatchObject({ rate: 2000, bytesTransferred: 2100 });
    progress.look([{ ...row, version: 'b', bytes: 2100 }]);
    expect(progress.of(7)).toMatchObject({ rate: null });
  });
});
