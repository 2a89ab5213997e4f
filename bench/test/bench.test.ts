import { describe, expect, test } from '@jest/globals';
import { select } from '../src/cases.js';
import { median, summarize, type Measurement } from '../src/figures.js';
import { parseOptions, parseSize } from '../src/options.js';

describe('options', () => {
  test('sizes carry decimal and binary units', () => {
    expect(parseSize('4096')).toBe(4096);
    expect(parseSize('64MB')).toBe(64_000_000);
    expect(parseSize('1.5 GiB')).toBe(1_610_612_736);
    expect(() => parseSize('big')).toThrow('--size: expected a size such as 1GiB or 64MB, got "big"');
  });

  test('--only is repeatable and takes lists; the defaults are those of the README', () => {
    expect(parseOptions(['--only', 'small-1,small-8', '--only', 'raw-disk'])).toMatchObject({
      only: ['small-1', 'small-8', 'raw-disk'],
      size: 1_073_741_824,
      entity: 32_768,
      interval: 256,
      window: 4,
      repetitions: 3,
    });
    expect(parseOptions(['--database', 'embedded'])?.database).toBe('embedded');
    expect(() => parseOptions(['--database', 'mysql'])).toThrow(
      '--database: expected postgresql or embedded, got "mysql"',
    );
    expect(() => parseOptions(['--window', '0'])).toThrow('--window: expected a whole number from 1, got "0"');
  });
});

describe('rows', () => {
  test('a transfer brings the raw copy of its own medium along', () => {
    expect(select(['tcp-push-disk']).map(({ name }) => name)).toEqual(['raw-disk', 'tcp-push-disk']);
    expect(select(['small-8']).map(({ name }) => name)).toEqual(['small-8']);
  });

  test('an unknown name is refused with the names there are', () => {
    expect(() => select(['tcp-push'])).toThrow(/no row "tcp-push"; the rows are disk-write-flush, raw-disk,/);
  });
});

describe('figures', () => {
  const run = (seconds: number, extra: Partial<Measurement> = {}): Measurement => ({
    seconds,
    bytes: 1e9,
    transfers: 1,
    processes: [
      { name: 'server', cpuSeconds: 1, peakRssMb: 150, idleRssMb: 120 },
      { name: 'client', cpuSeconds: 0.5, peakRssMb: 140, idleRssMb: 120 },
    ],
    ...extra,
  });

  test('median', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });

  test('the ratio compares each run with the raw copy of its own round', () => {
    const result = summarize('tcp-push-disk', [run(2), run(4), run(2)], [run(1), run(1), run(1.5)]);
    expect(result).toMatchObject({
      mbPerSecond: 500,
      ratioToRaw: 0.5,
      cpuSecondsPerGb: 1.5,
      peakRssMb: 150,
      transfersPerSecond: null,
      runs: [2, 4, 2],
    });
  });

  test('small files count in transfers a second', () => {
    const result = summarize('small-8', [run(2, { bytes: 400 * 4096, transfers: 400 })], []);
    expect(result).toMatchObject({ transfersPerSecond: 200, cpuSecondsPerGb: null, ratioToRaw: null });
  });
});
