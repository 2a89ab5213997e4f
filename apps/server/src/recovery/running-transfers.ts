import type { ServerConnection } from '@pesit-node/net';
import type { PesitError } from '@pesit-node/protocol';
import { deferred, settledWithin } from '@pesit-node/ground';
import type { Deferred } from '@pesit-node/ground';

import type { FileTransfer } from '../exchange/file-transfer.js';
import { taken } from '../transfers/completions.js';
import type { TransferContexts } from '../transfers/contexts.js';

interface Running {
  readonly file: FileTransfer;
  readonly connection: Pick<ServerConnection, 'abort' | 'cancel'>;
  /** TRANS.END has come: it is being made last. */
  isEnding: boolean;
  /** Why somebody wants it to end for good. */
  cancelled: PesitError | undefined;
  /** Resolves when it is over here. */
  readonly over: Deferred<undefined>;
}

/** `ending`: it is being made last, and can no longer be cancelled; `cancelled`: the partner has been told. */
export type Cancelling = 'cancelled' | 'ending';

/** The transfers that sessions of this process have. */
export class RunningTransfers {
  readonly #running = new Map<number, Running>();

  get count(): number {
    return this.#running.size;
  }

  add(file: FileTransfer, connection: Running['connection']): void {
    const state = { isEnding: false, cancelled: undefined, over: deferred<undefined>() };
    this.#running.set(file.record.id, { file, connection, ...state });
  }

  remove({ record }: FileTransfer): void {
    this.#running.get(record.id)?.over.resolve(undefined);
    this.#running.delete(record.id);
  }

  /** TRANS.END has come: from here on it can no longer be cancelled. @throws PesitError 2-216 when it was, by then */
  end({ record }: FileTransfer): void {
    const running = this.#running.get(record.id);
    if (running?.cancelled !== undefined) throw running.cancelled;
    if (running !== undefined) running.isEnding = true;
  }

  /**
   * Ends a transfer for good (IDT 12). Decided at once, against the end of the file: one of the two comes first.
   * @returns undefined when no session of this process has it; otherwise when it is over here, or after `waitMs`
   */
  async cancel(id: number, reason: PesitError, waitMs: number): Promise<Cancelling | undefined> {
    const running = this.#running.get(id);
    if (running === undefined) return undefined;
    if (running.isEnding) return 'ending';
    running.cancelled ??= reason;
    running.connection.cancel(reason);
    await settledWithin(running.over.promise, waitMs);
    return 'cancelled';
  }

  /** Changes as long as the transfer moves; undefined when no session of this process has it. */
  motionOf(id: number): string | undefined {
    const progress = this.#running.get(id)?.file.progress();
    return progress && `${progress.dataBytes}/${progress.syncPoint}`;
  }

  /** Ends the sessions whose transfers another process has taken. @throws when the database cannot be asked */
  async endLost(contexts: Pick<TransferContexts, 'lostAmong'>): Promise<void> {
    const records = [...this.#running.values()].map(({ file }) => file.record);
    for (const id of await contexts.lostAmong(records)) this.abort(id, taken(id));
  }

  /** Ends the sessions of all. */
  abortAll(reason: PesitError): void {
    for (const id of [...this.#running.keys()]) this.abort(id, reason);
  }

  /** Ends the session that has the transfer. */
  abort(id: number, reason: PesitError): void {
    this.#running.get(id)?.connection.abort(reason);
  }
}
