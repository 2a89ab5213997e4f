import { expect, test } from '@jest/globals';

import { RefusalRate } from '../src/transfers/refusal-rate.js';
import type { RefusalKind } from '../src/transfers/refusal-rate.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const REFUSAL: RefusalKind = {
  ...{ partnerId: 'ACME', listener: 'NODE1', direction: 'RECEIVE', virtualFileId: 'X', diagnostic: '2-226' },
};

const rate = (options: { readonly perHour?: number } = {}) => {
  let time = 0;
  const of = new RefusalRate({ perMinute: 3, perHour: 1000, ...options, now: () => time });
  return {
    wait: (ms: number) => (time += ms),
    place: (count: number, kind: Partial<RefusalKind> = {}): string =>
      Array.from({ length: count }, () => of.place({ ...REFUSAL, ...kind }).kind).join(' '),
    one: (kind: Partial<RefusalKind> = {}) => of.place({ ...REFUSAL, ...kind }),
  };
};

test('the first of a minute have records of their own, the next one counts, the rest is counted', () => {
  const { place, one } = rate();
  expect(place(5)).toBe('own own own counting counted');
  expect(one()).toMatchObject({ record: { occurrences: 3, id: undefined } });
});

test.each(['partnerId', 'listener', 'direction', 'virtualFileId', 'diagnostic'] as const)(
  'refusals of another %s are not equal',
  (field) => {
    const { place } = rate();
    place(5);
    expect(place(1, { [field]: 'other' })).toBe('own');
  },
);

test('as long as they are many they are counted in the same record, after an hour in the next one', () => {
  const { place, wait, one } = rate();
  place(5);
  for (let minute = 1; minute < 60; minute++) {
    wait(MINUTE);
    expect(place(5)).toBe('counted counted counted counted counted');
  }
  expect(one()).toMatchObject({ record: { occurrences: 2 + 59 * 5 + 1 } });
  wait(MINUTE);
  expect(place(5)).toBe('own own own counting counted');
});

test.each([
  ['few in the minute before', 2, MINUTE],
  ['none in the minute before', 5, 2 * MINUTE],
])('%s: each has a record again', (_name, count, pause) => {
  const { place, wait } = rate();
  place(5);
  wait(MINUTE);
  place(count);
  wait(pause);
  expect(place(1)).toBe('own');
});

test('ever new ones of a partner are bounded by the hour, then told apart by direction and diagnostic alone', () => {
  const { one, wait } = rate({ perHour: 5 });
  const kinds = (count: number, kind: Partial<RefusalKind> = {}) =>
    Array.from({ length: count }, (_, n) => one({ virtualFileId: `F${n}`, ...kind }));
  expect(
    kinds(7)
      .map(({ kind }) => kind)
      .join(' '),
  ).toBe('own own own own own counting counted');
  expect(one({ virtualFileId: 'new', diagnostic: '2-205' })).toMatchObject({ kind: 'counting', severalFiles: true });
  expect(one({ virtualFileId: 'new', partnerId: 'BANK2' }).kind).toBe('own');
  wait(HOUR);
  expect(one({ virtualFileId: 'new' }).kind).toBe('own');
});
