import { endsForGood, PesitError } from '@pesit-node/protocol';
import type { DiagnosticCode } from '@pesit-node/protocol';
import { isDatabaseUnavailable } from '@pesit-node/service';
import { outcomeOf } from '@pesit-node/transfers';

import type { TransferFailure } from '../transfers/record.js';

/**
 * A no to a partner.
 * @param message for the operator: what happened and what to change
 * @param peerText for the partner (PI 29)
 */
export const refusal = (diagnostic: DiagnosticCode, message: string, peerText = message): PesitError =>
  new PesitError(message, { fault: 'local', diagnostic, peerText });

/** Runs queries for a partner; when the database is away it is told to come again. */
export const asking = async <T>(diagnostic: '2-201' | '3-322', work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    throw new PesitError('the database is not available: nobody can be served', {
      fault: 'local',
      diagnostic,
      condition: 'database away',
      peerText: 'the node is not available for now: try again later',
      cause: error,
    });
  }
};

/** PI 19: cancelled by the server, by the requester (§3.7). */
const CANCELLED_BY_SERVER = 12;
const CANCELLED_BY_REQUESTER = 16;

/** How a transfer that did not complete is recorded. */
export const failureOf = (error: unknown, endCode?: number): TransferFailure => {
  const known = error instanceof PesitError ? error : undefined;
  const diagnostic = known?.diagnostic ?? '2-215';
  const cancelled = endCode === CANCELLED_BY_REQUESTER || outcomeOf(diagnostic).cancels;
  return {
    status: cancelled ? 'CANCELLED' : 'FAILED',
    diagnostic,
    message: known?.message ?? 'internal error: the log of the service has the reason',
    restartable: !cancelled && endCode !== CANCELLED_BY_SERVER && !endsForGood(diagnostic),
  };
};
