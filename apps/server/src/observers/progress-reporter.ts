import type { EventStream, PeriodicTask } from '@pesit-node/service';
import { TRANSFER_BEGAN, TRANSFER_ENDED } from '@pesit-node/transfers';
import type { ObservedTransfer } from '@pesit-node/transfers';

import type { TransferJournal } from '../transfers/journal.js';
import type { RecordHandle, TransferProgress } from '../transfers/record.js';

/** A running transfer. */
export interface Reported {
  readonly record: RecordHandle;
  readonly progress: () => TransferProgress;
}

/** Files have a record that is written while they run; a message is over when it begins. */
const isReported = (transfer: ObservedTransfer): transfer is ObservedTransfer & Reported => 'record' in transfer;

const EVERY_MS = 2000;
const NOTHING: TransferProgress = { dataBytes: 0, articles: 0, syncPoint: 0 };

/** Writes the figures of all running transfers in one statement every two seconds: never one a sync point. */
export class ProgressReporter {
  readonly #journal: TransferJournal;
  readonly #everyMs: number;
  /** With the figures last written. */
  readonly #running = new Map<Reported, TransferProgress>();

  constructor(events: EventStream, journal: TransferJournal, everyMs = EVERY_MS) {
    this.#journal = journal;
    this.#everyMs = everyMs;
    events.subscribe(TRANSFER_BEGAN, ({ transfer }) => {
      if (isReported(transfer)) this.#running.set(transfer, NOTHING);
    });
    events.subscribe(TRANSFER_ENDED, ({ transfer }) => {
      if (isReported(transfer)) this.#running.delete(transfer);
    });
  }

  /** For the runner of periodic work; asks nothing of the database while no transfer has new figures. */
  get task(): PeriodicTask {
    return {
      name: 'figures of running transfers',
      intervalMs: this.#everyMs,
      jitter: 0.1,
      first: 'after an interval',
      run: () => this.#report(),
    };
  }

  async #report(): Promise<void> {
    const changed = new Map<RecordHandle, TransferProgress>();
    for (const [transfer, reported] of this.#running) {
      const progress = transfer.progress();
      if (progress.dataBytes === reported.dataBytes && progress.syncPoint === reported.syncPoint) continue;
      this.#running.set(transfer, progress);
      changed.set(transfer.record, progress);
    }
    await this.#journal.progress(changed);
  }
}
