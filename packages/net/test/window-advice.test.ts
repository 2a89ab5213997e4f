import { describe, expect, test } from '@jest/globals';
import { windowAdvice } from '../src/index.js';

const KB = 1024;

describe('which window and interval to ask for', () => {
  test.each([
    [20, 32, 2, 1024, 4],
    [80, 256, 4, 1024, 11],
    [0.1, 32, 1, 256, 4],
    [2, 36, 4, 256, 4],
    [900, 36, 4, 1024, 64],
  ])('%d ms and %d KB × %d: %d KB × %d', (roundTrip, intervalKb, window, advisedKb, advised) => {
    const advice = windowAdvice(roundTrip, { syncInterval: intervalKb * KB, syncWindow: window });
    expect(advice).toMatchObject({ intervalKb: advisedKb, window: advised });
  });

  test.each([
    [0.1, 256 * KB, 4],
    [20, 1024 * KB, 16],
    [20, 0, 0],
    [20, 32 * KB, 0],
  ])('nothing to say at %d ms of %d bytes × %d', (roundTrip, syncInterval, syncWindow) => {
    expect(windowAdvice(roundTrip, { syncInterval, syncWindow })).toBeUndefined();
  });

  test('in words', () => {
    expect(windowAdvice(20, { syncInterval: 32 * KB, syncWindow: 2 })?.text).toBe(
      'a round trip takes 20.0 ms: sync points every 32 KB × 2 let about 2.6 MB/s through; ask the partner for 1024 KB × 4 (syncInterval 1024, syncWindow 4: up to 168 MB/s)',
    );
  });
});
