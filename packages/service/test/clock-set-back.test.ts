/** Bounds by time hold whatever happens to the clock of the machine. */
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { Collapse, LogBudget } from '@pesit-node/service';

import { FailureLimiter } from '../src/auth/failure-limiter.js';

const WINDOW_MS = 60_000;

beforeEach(() => {
  jest.useFakeTimers({ now: new Date('2026-11-22T12:00:00Z') });
});
afterEach(() => {
  jest.useRealTimers();
});

/** What is used up, and whether it is given again. */
const BOUNDS: readonly (readonly [what: string, use: () => () => boolean])[] = [
  [
    'log lines that strangers cause',
    () => {
      const budget = new LogBudget({ perKey: 1 });
      budget.take('a');
      return () => budget.take('a') !== undefined;
    },
  ],
  [
    'logins after failures',
    () => {
      const limiter = new FailureLimiter({ limit: 1 });
      limiter.failed('a');
      return () => limiter.blockedFor('a') === 0;
    },
  ],
  [
    'audit entries that strangers cause',
    () => {
      const collapse = new Collapse({ perHour: 1 });
      const entry = { action: 'login failed', objectType: 'login' };
      collapse.take('a', entry);
      collapse.take('a', entry);
      return () => collapse.due().length > 0;
    },
  ],
];

test.each(BOUNDS)(
  '%s: a clock that is set back keeps nobody waiting, one that is set forward lets nobody in',
  (_, use) => {
    const isGiven = use();
    jest.setSystemTime(new Date('2027-01-01T12:00:00Z'));
    expect(isGiven()).toBe(false);
    jest.setSystemTime(new Date('2020-01-01T12:00:00Z'));
    expect(isGiven()).toBe(false);
    jest.advanceTimersByTime(WINDOW_MS);
    expect(isGiven()).toBe(true);
  },
);
