import { describe, expect, test } from '@jest/globals';
import { windowAdvice } from '../src/window-advice.js';

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

  // PeSIT Wizard answers 2, whatever is asked.
  test.each([
    [0.2, 256, 512],
    [20, 64, 1536],
    [900, 256, 55296],
    [5000, 256, 65280],
  ])('%d ms, a window of 4 lowered to 2, %d KB: %d KB', (roundTrip, intervalKb, advisedKb) => {
    const negotiated = { syncInterval: intervalKb * KB, syncWindow: 2 };
    const advice = windowAdvice(roundTrip, negotiated, { intervalKb, window: 4 });
    expect(advice).toMatchObject({ intervalKb: advisedKb, window: 2 });
  });

  test('a partner that lowers both, or a window of the longest interval, is asked for both', () => {
    const negotiated = { syncInterval: 32 * KB, syncWindow: 2 };
    expect(windowAdvice(20, negotiated, { intervalKb: 256, window: 4 })).toMatchObject({ intervalKb: 1024, window: 4 });
    const farthest = { syncInterval: 65_280 * KB, syncWindow: 1 };
    expect(windowAdvice(5000, farthest, { intervalKb: 65_280, window: 4 })).toMatchObject({ window: 64 });
  });

  test('in words, where the partner lowers the window', () => {
    const negotiated = { syncInterval: 256 * KB, syncWindow: 2 };
    expect(windowAdvice(0.2, negotiated, { intervalKb: 256, window: 4 })?.text).toBe(
      'a round trip takes 0.2 ms: sync points every 256 KB × 2 let about 101 MB/s through; the partner lowers the window from 4 to 2: set syncInterval to 512 (512 KB × 2: up to 202 MB/s), or ask it for a larger window',
    );
  });

  test('in words', () => {
    expect(windowAdvice(20, { syncInterval: 32 * KB, syncWindow: 2 })?.text).toBe(
      'a round trip takes 20.0 ms: sync points every 32 KB × 2 let about 2.6 MB/s through; ask the partner for 1024 KB × 4 (syncInterval 1024, syncWindow 4: up to 168 MB/s)',
    );
  });
});
