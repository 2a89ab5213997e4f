/** One transfer over as many attempts as it takes. */
import { setTimeout as delay } from 'node:timers/promises';

import { PesitRequester } from '@pesit-node/net';
import type { RequesterOptions } from '@pesit-node/net';
import { explain, PesitError } from '@pesit-node/protocol';
import { delayAfter, toPesitError, verdictOn } from '@pesit-node/transfers';
import type { RetryPolicy } from '@pesit-node/transfers';

import type { Terminal } from '../frame/terminal.js';

/** A failure for good, with what is known of the attempts. */
export class TransferFailure extends Error {
  override readonly name = 'TransferFailure';
  readonly error: PesitError;
  readonly attempts: number;
  /** No session was open when it failed. */
  readonly connecting: boolean;

  constructor(error: PesitError, attempts: number, connecting: boolean) {
    super(explain(error), { cause: error });
    this.error = error;
    this.attempts = attempts;
    this.connecting = connecting;
  }
}

export interface Attempts<T> {
  readonly options: () => RequesterOptions;
  readonly policy: RetryPolicy;
  readonly signal: AbortSignal;
  readonly terminal: Terminal;
  /** One attempt over an open session. @param signal interrupts it as one that is continued later */
  readonly run: (session: PesitRequester, signal: AbortSignal) => Promise<T>;
  /**
   * Told of each failure of an attempt, an interruption too, before another follows, or none does.
   * @returns whether to try again at once, from the start: the partner did not want the restart
   */
  readonly failed?: (error: PesitError) => Promise<boolean>;
}

export interface Done<T> {
  readonly result: T;
  readonly attempts: number;
}

/** Ends an attempt as one that is continued later (PI 19: a restart follows). */
export const interruption = (reason: unknown): PesitError =>
  new PesitError(`interrupted by ${typeof reason === 'string' ? reason : 'the user'}`, {
    fault: 'local',
    diagnostic: '2-223',
    peerText: 'interrupted by the user, a restart follows',
  });

/** Whether another process may continue what ended so. */
export const mayBeContinued = (error: PesitError): boolean => verdictOn(error) !== 'final';

/** @throws TransferFailure */
export const overAttempts = async <T>(work: Attempts<T>): Promise<Done<T>> => {
  const { policy, terminal } = work;
  const abort = new AbortController();
  const interrupt = (): void => abort.abort(interruption(work.signal.reason));
  if (work.signal.aborted) interrupt();
  work.signal.addEventListener('abort', interrupt, { once: true });
  const { signal } = abort;
  try {
    for (let number = 1; ;) {
      const end = await attempt(work, signal);
      if ('result' in end) return { result: end.result, attempts: number };
      const { error, connecting } = end;
      if ((await work.failed?.(error)) === true && !signal.aborted) {
        terminal.note(`the partner does not continue the transfer (${explain(error)}): starting over`);
        continue;
      }
      if (signal.aborted || verdictOn(error) === 'final' || number >= policy.attempts)
        throw new TransferFailure(error, number, connecting);
      const wait = delayAfter(number, policy);
      terminal.note(
        `attempt ${number} of ${policy.attempts} failed: ${explain(error)}; trying again in ${(wait / 1000).toFixed(1)} s`,
      );
      await delay(wait, undefined, { signal }).catch(() => {
        throw new TransferFailure(toPesitError(signal.reason), number, true);
      });
      number++;
    }
  } finally {
    work.signal.removeEventListener('abort', interrupt);
  }
};

type End<T> = { readonly result: T } | { readonly error: PesitError; readonly connecting: boolean };

const attempt = async <T>({ options, run }: Attempts<T>, signal: AbortSignal): Promise<End<T>> => {
  let session: PesitRequester | undefined;
  try {
    session = await PesitRequester.open({ ...options(), signal });
    return { result: await run(session, signal) };
  } catch (thrown) {
    return { error: toPesitError(thrown), connecting: session === undefined };
  } finally {
    await session?.release();
  }
};
