import { describe, expect, test } from '@jest/globals';
import { Collapse } from '@pesit-node/service';

const entry = (object: string) => ({ action: 'login failed', objectType: 'login', object });

describe('entries that strangers cause', () => {
  const build = (perHour = 3) => {
    const clock = { now: 1_000_000_000_000 };
    const collapse = new Collapse({ perHour, now: () => clock.now });
    const take = (key: string) =>
      collapse.take(key, entry(key)).map(({ object, details }) => [object, details?.['times']]);
    const due = () => collapse.due().map(({ object, details }) => [object, details?.['times']]);
    const pass = (ms: number): void => void (clock.now += ms);
    return { take, due, pass };
  };

  test('the first is noted at once, its repeats within the minute as one', () => {
    const { take, due, pass } = build();
    expect(take('a')).toEqual([['a', undefined]]);
    for (let time = 0; time < 1000; time++) expect(take('a')).toEqual([]);
    expect(take('b')).toEqual([['b', undefined]]);
    expect(due()).toEqual([]);
    pass(60_000);
    expect(due()).toEqual([['a', 1000]]);
    expect(due()).toEqual([]);
    expect(take('a')).toEqual([['a', undefined]]);
  });

  test('beyond the bound of an hour all others are one a minute', () => {
    const { take, due, pass } = build();
    expect(['a', 'b', 'c'].flatMap(take)).toHaveLength(3);
    for (let time = 0; time < 5000; time++) expect(take(`x${time}`)).toEqual([]);
    pass(60_000);
    expect(due()).toEqual([[undefined, 5000]]);
    expect(take('a')).toEqual([]);
    pass(3_600_000);
    expect(take('d')).toEqual([
      [undefined, 1],
      ['d', undefined],
    ]);
  });

  test('a flood of an hour makes a bounded number of entries', () => {
    const { take, due, pass } = build(60);
    let entries = 0;
    for (let minute = 0; minute < 60; minute++) {
      for (let time = 0; time < 200; time++) entries += take(`user-${time % 50}-${minute}`).length;
      pass(60_000);
      entries += due().length;
    }
    expect(entries).toBeLessThan(250);
  });
});
