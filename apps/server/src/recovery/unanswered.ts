import type { TransferIdentity } from '../transfers/record.js';

/** Requests that are remembered; the oldest goes first. */
const MAX_REQUESTS = 1000;

/** The request with which a partner begins a file that it writes (pesit-e.md §5). */
export const requestOf = (identity: TransferIdentity): string => {
  const { partnerId, virtualFileId, transferId, originalSender = '', finalReceiver = '' } = identity;
  return JSON.stringify(['RECEIVE', partnerId, virtualFileId, transferId, originalSender, finalReceiver]);
};

/** The same when it begins to read a file: it knows no PI 13 yet. */
export const readRequestOf = ({ partnerId, virtualFileId }: TransferIdentity, path: string): string =>
  JSON.stringify(['SEND', partnerId, virtualFileId, path]);

/**
 * Transfers that were interrupted before anything of their file had moved. The partner may not have heard that they began: it
 * asks once more as if it never had (PI 15 = 0), and continues in the same record. By this process alone: elsewhere such a
 * request gets a record of its own.
 */
export class UnansweredRequests {
  /** Request → number of its record. */
  readonly #records = new Map<string, number>();

  add(request: string, record: number): void {
    this.#records.delete(request);
    this.#records.set(request, record);
    const [oldest] = this.#records.keys();
    if (this.#records.size > MAX_REQUESTS && oldest !== undefined) this.#records.delete(oldest);
  }

  /** @returns the record of the request, once */
  take(request: string): number | undefined {
    const record = this.#records.get(request);
    this.#records.delete(request);
    return record;
  }
}
