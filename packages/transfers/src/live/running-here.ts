import type { EventStream } from '@pesit-node/service';

import { TRANSFER_ASIDE, TRANSFER_BEGAN, TRANSFER_ENDED } from '../events.js';
import type { Figures, ObservedTransfer } from '../events.js';

/** The transfers of this process, to be asked for their figures. */
export class RunningHere {
  readonly #running = new Map<string | number, ObservedTransfer>();

  /** @param changed something of the transfer with this id has changed, or soon will in the database */
  constructor(events: EventStream, changed: (id: string | number) => void) {
    events.subscribe(TRANSFER_BEGAN, ({ transfer }) => {
      if (transfer.type === 'FILE') this.#running.set(transfer.id, transfer);
      changed(transfer.id);
    });
    events.subscribe(TRANSFER_ENDED, ({ transfer }) => {
      // Another attempt may have begun under the same id.
      if (this.#running.get(transfer.id) === transfer) this.#running.delete(transfer.id);
      changed(transfer.id);
    });
    events.subscribe(TRANSFER_ASIDE, ({ id }) => changed(id));
  }

  /** Undefined when it does not run here, or has no data yet. */
  figuresOf(id: string | number): Figures | undefined {
    return this.#running.get(id)?.progress();
  }
}
