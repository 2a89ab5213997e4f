import { randomInt } from 'node:crypto';

/** `transfer.retry.*`; delays in milliseconds. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly initialDelay: number;
  readonly maxDelay: number;
  readonly multiplier: number;
  /** Share of the delay, 0 to 1. */
  readonly jitter: number;
}

const chance = (): number => randomInt(2 ** 32) / 2 ** 32;

/**
 * Milliseconds to wait after the `count`th attempt in a row, from 1, that did not succeed.
 * @param random from 0 to 1
 */
export const delayAfter = (count: number, policy: RetryPolicy, random = chance()): number => {
  const { initialDelay, maxDelay, multiplier, jitter } = policy;
  const delay = Math.min(maxDelay, initialDelay * multiplier ** (count - 1));
  return Math.round(delay * (1 + jitter * (2 * random - 1)));
};
