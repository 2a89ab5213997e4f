import { expect, test } from '@jest/globals';
import { judge, resentBytes, type Fate, type Observation } from '../src/judge.js';
import { MB, type SessionPlan, type TransferPlan } from '../src/plan.js';

const HASH = 'ab'.repeat(32);
const plan: TransferPlan = {
  direction: 'push',
  file: { size: 5 * MB, format: 'BV', recordLength: 4096, ebcdic: false, runs: false },
};
const session: SessionPlan = {
  dialect: 'raw',
  entity: 4096,
  interval: 64,
  window: 2,
  compression: 'none',
  crc: false,
  resync: false,
};
const record = {
  ...{ id: 1, status: 'COMPLETED', size: 5 * MB, checksum: `sha256:${HASH}` },
  ...{ bytesTransferred: 5 * MB, articles: 1280 },
};
const file = { path: 'inbox/a', size: 5 * MB, hash: HASH };
const good: Observation = {
  hash: HASH,
  delivered: [file],
  leftovers: [],
  clientRecords: [record],
  serverRecords: [record],
  dataBytes: 5 * MB + 100_000,
  attempts: 2,
  resyns: 0,
};

test('a round that is well', () => {
  expect(judge(plan, session, good)).toEqual([]);
  expect(resentBytes(good)).toBe(100_000);
});

test('a record of an attempt that was refused is no second delivery', () => {
  expect(
    judge(plan, session, { ...good, serverRecords: [{ id: 2, status: 'FAILED', diagnostic: '2-207' }, record] }),
  ).toEqual([]);
});

test.each<[Fate, string, Partial<Observation>]>([
  ['lost', 'no file was delivered', { delivered: [] }],
  ['doubled', '2 files: inbox/a, inbox/b', { delivered: [file, { ...file, path: 'inbox/b' }] }],
  ['wrong', 'inbox/a: 5 bytes, 5242880 were sent, or other ones', { delivered: [{ ...file, size: 5, hash: 'cd' }] }],
  [
    'unfinished',
    'the client app has no COMPLETED record, but FAILED (3-310)',
    { clientRecords: [{ status: 'FAILED', diagnostic: '3-310' }] },
  ],
  ['unfinished', 'the server app has no COMPLETED record, but none', { serverRecords: [] }],
  [
    'unfinished',
    'the server app keeps record 2 IN_PROGRESS',
    { serverRecords: [record, { id: 2, status: 'IN_PROGRESS' }] },
  ],
  ['doubled', 'the server app has COMPLETED (-), COMPLETED (-)', { serverRecords: [record, { ...record, id: 2 }] }],
  ['wrong', 'record 1 of the server app says size 7, not 5242880', { serverRecords: [{ ...record, size: 7 }] }],
  [
    'wrong',
    `record 1 of the client app says null, not sha256:${HASH}`,
    { clientRecords: [{ ...record, checksum: null }] },
  ],
  [
    'wrong',
    'articles: 1280 in the client app, 1281 in the server app',
    { serverRecords: [{ ...record, articles: 1281 }] },
  ],
  ['wrong', 'left in the staging directory: 1.part, 1.points', { leftovers: ['1.part', '1.points'] }],
  // 2 x 64 KB and one megabyte for each of the two interruptions.
  [
    'wrong',
    '2359297 bytes were sent again in 3 attempts, 2359296 are the limit',
    { attempts: 3, dataBytes: 5 * MB + 2_359_297 },
  ],
  ['wrong', '1 bytes were sent again in 1 attempts, 0 are the limit', { attempts: 1, dataBytes: 5 * MB + 1 }],
])('%s: %s', (fate, text, change) => {
  expect(judge(plan, session, { ...good, ...change })).toContainEqual({ fate, text });
});

test('a resynchronisation may cost as much as a restart', () => {
  const one = { ...good, attempts: 1, dataBytes: 5 * MB + 1_000_000 };
  expect(judge(plan, session, one)).toHaveLength(1);
  expect(judge(plan, session, { ...one, resyns: 1 })).toEqual([]);
});

test('without points the whole file may go again, without acknowledgements what was in flight', () => {
  const whole = { ...good, dataBytes: 10 * MB };
  expect(judge(plan, { ...session, interval: 0 }, whole)).toEqual([]);
  expect(judge(plan, { ...session, window: 0 }, whole)).toEqual([]);
  expect(judge(plan, session, whole)).toHaveLength(1);
});
