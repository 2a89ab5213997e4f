import { expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Trigger, type Fault } from '../src/faults.js';
import { parseOptions } from '../src/options.js';
import { KB, MB, planRound, type RoundPlan } from '../src/plan.js';
import { inWords } from '../src/round.js';
import { sha256, writeSource } from '../src/source.js';

const VICTIMS = ['server', 'client', 'database'] as const;
const plans: readonly RoundPlan[] = Array.from({ length: 3000 }, (_, seed) => planRound(seed, VICTIMS));
const count = (is: (plan: RoundPlan) => boolean): number => plans.filter(is).length;

test('the seed alone decides', () => {
  expect(planRound(42, VICTIMS)).toEqual(planRound(42, VICTIMS));
  expect(planRound(42, VICTIMS)).not.toEqual(planRound(43, VICTIMS));
});

test('everything that can go wrong does, in both directions, with every format', () => {
  for (const direction of ['push', 'pull'] as const) {
    for (const action of ['cut', 'reset', 'half-close', 'stall', 'drop', 'damage', 'kill'] as const) {
      const has = (plan: RoundPlan) =>
        plan.transfers[0].direction === direction && plan.faults.some((f) => f.action.do === action);
      expect([direction, action, count(has)]).toEqual([direction, action, expect.any(Number)]);
      expect(count(has)).toBeGreaterThan(80);
    }
    for (const victim of VICTIMS) {
      const isKilled = ({ action }: Fault): boolean => action.do === 'kill' && action.victim === victim;
      expect(count((plan) => plan.transfers[0].direction === direction && plan.faults.some(isKilled))).toBeGreaterThan(
        80,
      );
    }
  }
  for (const format of ['BU', 'BV', 'BF', 'TV', 'TF'])
    expect(count(({ transfers }) => transfers[0].file.format === format)).toBeGreaterThan(300);
  for (const at of ['bytes', 'fpdu', 'time']) {
    expect(count(({ faults }) => faults.some(({ moment }) => moment.at === at))).toBeGreaterThan(150);
  }
});

test('now and then a file goes the other way meanwhile', () => {
  const both = plans.filter(({ transfers }) => transfers.length === 2);
  expect(both.length).toBeGreaterThan(600);
  expect(both.filter(({ transfers: [one, other] }) => one.direction === other?.direction)).toEqual([]);
});

test('files of 0 bytes to 64 MB, mostly small', () => {
  const sizes = plans.map(({ transfers }) => transfers[0].file.size).sort((a, b) => a - b);
  expect(sizes[0]).toBe(0);
  expect(sizes.at(-1)).toBeGreaterThan(48 * MB);
  expect(sizes.at(-1)).toBeLessThanOrEqual(64 * MB + 30_000);
  expect(sizes[Math.floor(sizes.length / 2)]).toBeLessThan(512 * KB);
});

test('only an acknowledgement is dropped: it has its entity for itself', () => {
  const dropped = plans
    .flatMap(({ faults }) => faults)
    .filter(({ action }) => action.do === 'drop')
    .map(({ moment }) => (moment.at === 'fpdu' ? `${moment.name} ${moment.side}` : moment.at));
  expect(dropped.filter((text) => !/^ACK\(.*\) before$/.test(text))).toEqual([]);
});

test('a plan in words', () => {
  const plan: RoundPlan = {
    seed: 7,
    transfers: [
      { direction: 'push', file: { size: 1000, format: 'BF', recordLength: 250, ebcdic: false, runs: false } },
      { direction: 'pull', file: { size: 7, format: 'TV', recordLength: 80, ebcdic: true, runs: false } },
    ],
    session: {
      ...{ dialect: 'raw', entity: 4096, interval: 4, window: 2 },
      ...{ compression: 'both', crc: true, resync: false },
    },
    latencyMs: 8,
    faults: [
      { moment: { at: 'bytes', direction: 'request', count: 17 }, action: { do: 'cut' } },
      {
        moment: { at: 'fpdu', direction: 'answer', name: 'ACK(SYN)', occurrence: 3, side: 'before' },
        action: { do: 'drop', cut: true },
      },
      { moment: { at: 'time', ms: 5 }, action: { do: 'kill', victim: 'database', afterMs: 20 } },
    ],
    absenceMs: 0,
  };
  expect(inWords(plan)).toBe(
    'push 1000 B BF250 and pull 7 B TV80 EBCDIC, raw 4096, 4 KB x 2, compression both, CRC, 8 ms each way: cut at byte 17 of the requests; ' +
      'drop and cut before ACK(SYN) 3; kill the database (+20 ms) after 5 ms',
  );
});

test('a fault at byte n strikes inside the entity that holds it', () => {
  const trigger = new Trigger({ moment: { at: 'bytes', direction: 'answer', count: 25 }, action: { do: 'cut' } });
  expect(trigger.strikesAt('answer', 10, ['ACK(WRITE)'])).toBeUndefined();
  expect(trigger.strikesAt('request', 100, ['DTF'])).toBeUndefined();
  expect(trigger.strikesAt('answer', 10, ['ACK(SYN)'])).toBeUndefined();
  expect(trigger.strikesAt('answer', 10, ['ACK(SYN)'])).toBe(5);
});

test('a fault at the nth FPDU of a name counts those that share an entity', () => {
  const moment = { at: 'fpdu', direction: 'request', name: 'SYN', occurrence: 2, side: 'after' } as const;
  const trigger = new Trigger({ moment, action: { do: 'cut' } });
  expect(trigger.strikesAt('request', 50, ['DTF', 'SYN'])).toBeUndefined();
  expect(trigger.strikesAt('request', 50, ['DTF', 'DTF'])).toBeUndefined();
  expect(trigger.strikesAt('request', 70, ['SYN', 'DTF'])).toBe(70);
});

test('the source of a text is lines, none of them empty, none too long; the same for the same seed', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pesit-torture-test-'));
  try {
    for (const size of [2, 3, 81, 5000, MB + 2]) {
      const plan = { size, format: 'TV', recordLength: 80, ebcdic: false, runs: size % 2 === 0 } as const;
      const [path, again] = [join(directory, 'a'), join(directory, 'b')];
      const hash = await writeSource(path, plan, size);
      expect(await writeSource(again, plan, size)).toBe(hash);
      expect(await sha256(path)).toBe(hash);
      const text = await readFile(path, 'latin1');
      expect(text).toHaveLength(size);
      expect(text.at(-1)).toBe('\n');
      const lines = text.slice(0, -1).split('\n');
      expect(Math.min(...lines.map((line) => line.length))).toBeGreaterThan(0);
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    }
    expect(
      await writeSource(
        join(directory, 'empty'),
        { size: 0, format: 'TF', recordLength: 80, ebcdic: false, runs: false },
        1,
      ),
    ).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('the command line', () => {
  expect(parseOptions(['--rounds', '3', '--seed', '9', '--json', 'x.json'])).toMatchObject({
    ...{ rounds: 3, seed: 9, json: 'x.json', embedded: false, calm: false, pods: 1 },
  });
  expect(parseOptions(['--pods', '2'])).toMatchObject({ pods: 2 });
  expect(() => parseOptions(['--pods', '3'])).toThrow('--pods: expected 1 or 2, got 3');
  expect(() => parseOptions(['--pods', '2', '--embedded'])).toThrow('pods share PostgreSQL');
  expect(parseOptions(['--help'])).toBeUndefined();
  expect(() => parseOptions(['--rounds', '0'])).toThrow('--rounds: expected a whole number from 1, got "0"');
});
