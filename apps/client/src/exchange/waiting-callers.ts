import { EventEmitter } from 'node:events';

import type { TransferRow } from '../transfers/row.js';

/** Who waits for the end of which transfer. */
export class WaitingCallers {
  readonly #ends = new EventEmitter<Record<string, [TransferRow | undefined]>>().setMaxListeners(0);

  /** Resolves with the record when the transfer is over; undefined after `ms`, when `signal` is aborted, or when dismissed. */
  wait(id: string, ms: number, signal: AbortSignal): Promise<TransferRow | undefined> {
    return new Promise((resolve) => {
      const done = (row?: TransferRow): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.#ends.off(id, done);
        resolve(row);
      };
      const onAbort = (): void => done();
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#ends.on(id, done);
    });
  }

  over(row: TransferRow): void {
    this.#ends.emit(row.id, row);
  }

  dismiss(): void {
    for (const id of this.#ends.eventNames()) this.#ends.emit(id, undefined);
  }
}
