import { EventEmitter } from 'node:events';

import type { EventStream } from '@pesit-node/service';

import { isOver } from '../transfers/row.js';
import type { TransferRow } from '../transfers/row.js';
import { TRANSFER_OVER } from '../exchange/events.js';

/** Who waits for the end of which transfer. */
export class WaitingCallers {
  readonly #ends = new EventEmitter<Record<string, [TransferRow | undefined]>>().setMaxListeners(0);
  /** Waited for at the last look. */
  #seen: ReadonlySet<string> = new Set();

  constructor(events: EventStream) {
    events.subscribe(TRANSFER_OVER, ({ row }) => {
      this.#over(row);
    });
  }

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

  /**
   * For transfers that end in other processes. Leaves out a caller that came after the last look: its transfer may not have begun.
   * @param find the record of a transfer
   */
  async look(find: (id: string) => Promise<TransferRow | undefined>): Promise<void> {
    const ids = this.#ends.eventNames();
    const long = ids.filter((id) => this.#seen.has(id));
    this.#seen = new Set(ids);
    for (const id of long) {
      const row = await find(id);
      if (row !== undefined && isOver(row)) this.#over(row);
    }
  }

  #over(row: TransferRow): void {
    this.#ends.emit(row.id, row);
  }

  dismiss(): void {
    for (const id of this.#ends.eventNames()) this.#ends.emit(id, undefined);
  }
}
