import type { PodRequests } from '@pesit-node/cluster';
import { PesitError } from '@pesit-node/protocol';
import { conflict, notFound, unavailable } from '@pesit-node/service';
import type { ApiError, Caller } from '@pesit-node/service';

import type { Cancelling, RunningTransfers } from '../recovery/running-transfers.js';
import type { TransferRow, TransferStore } from './store.js';

export interface CancelOptions {
  readonly store: Pick<TransferStore, 'get'>;
  readonly running: RunningTransfers;
  readonly requests: PodRequests;
}

/** How long the partner is waited for to acknowledge the IDT, milliseconds; the cancel stands whatever it does. */
const END_MS = 3000;
/** How long another pod is waited for: it may have to wait for the partner. */
const WAIT_MS = END_MS + 7000;

const QUESTION = 'cancel transfer';

/** §9: cancelled by an administrator, IDT 2-216 with end code 12. No restart follows. */
const cancelledBy = (actor: string): PesitError =>
  new PesitError(`cancelled by ${actor}`, {
    fault: 'local',
    diagnostic: '2-216',
    condition: 'cancelled',
    peerText: 'cancelled by the administration',
  });

const tooLate = ({ id, status }: Pick<TransferRow, 'id' | 'status'>): ApiError =>
  conflict(`Transfer ${id} is ${status}: only one that runs can be cancelled`);

/**
 * Cancels transfers that run, on whatever pod. A file whose end has come is being made last, and then acknowledged: it is not
 * cancelled, for the partner will take it for delivered.
 */
export const cancelling = ({ store, running, requests }: CancelOptions) => {
  const cancelHere = (id: number, actor: string): Promise<Cancelling | undefined> =>
    running.cancel(id, cancelledBy(actor), END_MS);

  requests.answer(QUESTION, async (subject) => {
    const { id, actor } = JSON.parse(subject) as { readonly id: number; readonly actor: string };
    return (await cancelHere(id, actor)) ?? null;
  });

  const existing = async (id: number): Promise<TransferRow> => {
    const row = await store.get(id);
    if (row === undefined) throw notFound('Transfer', id, '/api/v1/transfers');
    return row;
  };

  /**
   * @returns the record as it is then
   * @throws {ApiError} 404; 409 when it has ended, or is about to; 503 when the pod that runs it does not answer
   */
  return async (id: number, by: Caller | undefined): Promise<TransferRow> => {
    const before = await existing(id);
    if (before.status !== 'IN_PROGRESS' && before.status !== 'PENDING') throw tooLate(before);
    const actor = by?.actor ?? 'an operator';
    let said = await cancelHere(id, actor);
    let silent: readonly string[] = [];
    if (said === undefined) {
      const answers = await requests.ask<Cancelling | null>(QUESTION, JSON.stringify({ id, actor }), WAIT_MS);
      said = answers.map(({ answer }) => answer).find((answer) => answer !== undefined && answer !== null) ?? undefined;
      silent = answers.filter(({ answer }) => answer === undefined).map(({ pod }) => pod.name);
    }
    const row = await existing(id);
    if (row.status === 'CANCELLED') return row;
    if (row.status !== 'IN_PROGRESS' && row.status !== 'PENDING') throw tooLate(row);
    if (said === 'cancelled') return row;
    if (said === 'ending') {
      throw conflict(
        `Transfer ${id} can no longer be cancelled: all of its data have come, and it is about to complete`,
      );
    }
    const which = silent.length === 0 ? `the pod ${row.node} that ran it` : silent.join(', ');
    throw unavailable(
      `Transfer ${id} runs on no pod that answered, and ${which} did not: if that is gone, the transfer is FAILED within a minute`,
    );
  };
};

export type CancelTransfer = ReturnType<typeof cancelling>;
