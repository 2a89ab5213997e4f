import { randomInt } from 'node:crypto';

import type { PesitError } from '@pesit-node/protocol';
import { retryOf } from '@pesit-node/protocol';

/** `transfer.retry.*`; delays in milliseconds. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly initialDelay: number;
  readonly maxDelay: number;
  readonly multiplier: number;
  /** Share of the delay, 0 to 1. */
  readonly jitter: number;
}

/** `final`: another attempt would end the same way; `later`: the partner asks to come again, which is no failure. */
export type Verdict = 'final' | 'again' | 'later';

const VERDICTS = { no: 'final', yes: 'again', later: 'later' } as const;

/** PI 19 of an IDT: error, a restart follows. */
const RESTART_FOLLOWS = 4;

export const verdictOn = (error: PesitError): Verdict => {
  // Ours: the source changed, or something that a second try does not mend.
  if (error.fault === 'local' && error.diagnostic === '2-215') return 'final';
  const verdict = VERDICTS[retryOf(error.diagnostic)];
  return verdict === 'final' && error.endCode === RESTART_FOLLOWS ? 'again' : verdict;
};

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

/**
 * Answers to a restart, from CREATE or SELECT to WRITE or READ, that say: not from here, but perhaps from the start.
 * 2-204 is what Connect:Express answers to every CREATE with PI 15 (pesit-e.md §5), 2-233 Axway without a context.
 */
const RESTART_REFUSED: ReadonlySet<string> = new Set(['2-204', '2-214', '2-218', '2-233']);

/** Whether the file may go as a new transfer after this answer to its restart. */
export const refusesRestart = (error: PesitError, direction: 'SEND' | 'RECEIVE'): boolean => {
  // We ourselves do not know the point that the partner named.
  if (error.fault === 'local') return direction === 'SEND' && error.diagnostic === '2-214';
  if (error.fault !== 'refused') return false;
  // The partner's file is another one now: what is staged is worth nothing.
  return RESTART_REFUSED.has(error.diagnostic) || (direction === 'RECEIVE' && error.diagnostic === '2-215');
};

/** The answer of partners that have the whole file: the confirmation of its end was lost on the way to us. */
export const ALREADY_TRANSFERRED = '2-250';
