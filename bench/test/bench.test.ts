import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CASES, select } from '../src/cases.js';
import { codecRun } from '../src/codec.js';
import { writeListing, writeRecords } from '../src/files.js';
import { median, percentile, summarize, type Measurement } from '../src/figures.js';
import { parseOptions, parseSize } from '../src/options.js';
import { formatTable } from '../src/report.js';

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
    expect(parseOptions(['--setting', 'LOG_LEVEL=info', '--setting', 'DATA_X=a=b'])?.settings).toEqual({
      LOG_LEVEL: 'info',
      DATA_X: 'a=b',
    });
    expect(() => parseOptions(['--setting', 'info'])).toThrow('--setting: expected NAME=VALUE, got "info"');
    expect(() => parseOptions(['--window', '0'])).toThrow('--window: expected a whole number from 1, got "0"');
  });
});

describe('a peer', () => {
  test('is a server that is called by its address, with defaults for the rest', () => {
    expect(parseOptions(['--peer', 'pesit.example.org:5000'])?.peer).toEqual({
      ...{ host: 'pesit.example.org', port: 5000, server: 'PESIT', partner: 'BENCH', push: 'INBOX' },
      ...{ password: undefined, pull: undefined },
    });
    expect(parseOptions(['--peer', '[2001:db8::1]:5000', '--peer-pull', 'OUT'])?.peer).toMatchObject({
      ...{ host: '2001:db8::1', port: 5000, pull: 'OUT' },
    });
    expect(parseOptions([])?.peer).toBeUndefined();
  });

  test.each(['pesit.example.org', ':5000', 'host:0', 'host:65536', '2001:db8::1:5000', 'host:5000/x'])(
    'is not %s',
    (text) => {
      expect(() => parseOptions(['--peer', text])).toThrow(/--peer: expected HOST:PORT/);
    },
  );

  test('is named where something is said about it', () => {
    expect(() => parseOptions(['--peer-pull', 'OUT'])).toThrow(/--peer-pull needs --peer/);
  });
});

describe('rows', () => {
  test('a transfer brings the raw copy of its own medium along', () => {
    expect(select(['tcp-push-disk']).map(({ name }) => name)).toEqual(['raw-disk', 'raw-disk-hashed', 'tcp-push-disk']);
    expect(select(['small-8']).map(({ name }) => name)).toEqual(['small-8']);
  });

  test('a variation brings its plain row along, and what that is compared with', () => {
    expect(select(['records-fixed']).map(({ name }) => name)).toEqual([
      'raw-memory',
      'raw-memory-hashed',
      'tcp-push-memory',
      'records-fixed',
    ]);
    expect(select(['text-compressed']).map(({ name }) => name)).toEqual(['text-plain', 'text-compressed']);
  });

  test('a plain row stands in the same stage, before its variations', () => {
    for (const row of CASES.filter(({ plain }) => plain !== undefined)) {
      const plain = CASES.findIndex(({ name, stage }) => name === row.plain && stage === row.stage);
      expect([row.name, plain >= 0 && plain < CASES.indexOf(row)]).toEqual([row.name, true]);
    }
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

  test('percentiles are of the nearest rank', () => {
    const values = Array.from({ length: 200 }, (_, i) => 200 - i);
    expect([percentile(values, 0.5), percentile(values, 0.99), percentile([7], 0.99)]).toEqual([100, 198, 7]);
  });

  test('latencies count over all runs; processor time of a small transfer by process, and the delay of event loops', () => {
    const small = (latenciesMs: readonly number[], cpuSeconds: number) =>
      run(1, {
        transfers: 100,
        latenciesMs,
        processes: [
          { name: 'server', cpuSeconds, peakRssMb: 1, loopDelayMs: 3 },
          { name: 'database', cpuSeconds: 0.2 },
        ],
      });
    const result = summarize('small-1', [small([1, 2], 0.4), small([9], 0.4)], [], [], [run(1), run(1)]);
    expect(result.latencyMs).toEqual({ p50: 2, p99: 9 });
    expect(result.processes).toMatchObject([
      { cpuMsPerTransfer: 4, loopDelayMs: 3 },
      { cpuMsPerTransfer: 2, loopDelayMs: null, peakRssMb: null },
    ]);
    expect(formatTable([result])).toMatch(/ server 4, database 2 .* server 1$/m);
    expect(result.ratioToHashed).toBe(1);
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

  test('a variation is compared with the plain run of its own round; records and wire bytes count where they are told', () => {
    const records = run(2, { records: 4_000_000, wireBytes: 250_000_000 });
    expect(summarize('records-fixed', [records], [], [run(1)])).toMatchObject({
      ratioToRaw: null,
      ratioToPlain: 0.5,
      recordsPerSecond: 2_000_000,
      compressionRatio: 4,
    });
    expect(summarize('tcp-push-disk', [run(2)], [])).toMatchObject({
      ratioToPlain: null,
      recordsPerSecond: null,
      compressionRatio: null,
    });
  });

  test('small files count in transfers a second', () => {
    const result = summarize('small-8', [run(2, { bytes: 400 * 4096, transfers: 400 })], []);
    expect(result).toMatchObject({ transfersPerSecond: 200, cpuSecondsPerGb: null, ratioToRaw: null });
  });
});

describe('what the rows of records move', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bench-test-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  test('records of 80 bytes, with and without line ends', async () => {
    const [fixed, lines] = [join(folder, 'fixed'), join(folder, 'lines')];
    await writeRecords(fixed, 800, '');
    await writeRecords(lines, 810, '\n');
    const rest = 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.:';
    const indexes = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
    const record = (index: string) => `00000000000000${index} ${rest}`;
    expect(await readFile(fixed, 'latin1')).toBe(indexes.map(record).join(''));
    expect(await readFile(lines, 'latin1')).toBe(indexes.map((index) => `${record(index)}\n`).join(''));
  });

  test('a listing whose lines fit its record length', async () => {
    const path = join(folder, 'listing');
    await writeListing(path, 100_000);
    const lines = (await readFile(path, 'latin1')).split('\n');
    expect(lines.pop()).toBe('');
    expect(new Set(lines.map(({ length }) => length))).toEqual(new Set([122]));
    expect(lines[1]).toBe(
      'ORDER 0000000001 20270101 CUSTOMER 1                         000000000007919 EUR PAID        FR7612345....................',
    );
  });

  test('the codec takes as many articles as it was asked for', () => {
    expect(codecRun(80, 1_000_000)).toMatchObject({ records: 12_500, bytes: 1_000_000, transfers: 1 });
    expect(codecRun(32_762, 1_000_000)).toMatchObject({ records: 31, bytes: 31 * 32_762 });
  });
});
