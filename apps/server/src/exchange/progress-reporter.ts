import type { EventStream, Logger } from '@pesit-node/service';
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
  readonly #logger: Logger;
  readonly #everyMs: number;
  /** With the figures last written. */
  readonly #running = new Map<Reported, TransferProgress>();
  #timer: NodeJS.Timeout | undefined;
  #writing = false;

  constructor(events: EventStream, journal: TransferJournal, logger: Logger, everyMs = EVERY_MS) {
    this.#journal = journal;
    this.#logger = logger;
    this.#everyMs = everyMs;
    events.subscribe(TRANSFER_BEGAN, ({ transfer }) => {
      if (isReported(transfer)) this.#add(transfer);
    });
    events.subscribe(TRANSFER_ENDED, ({ transfer }) => {
      if (isReported(transfer)) this.#remove(transfer);
    });
  }

  #add(transfer: Reported): void {
    this.#running.set(transfer, NOTHING);
    this.#timer ??= setInterval(() => void this.#report(), this.#everyMs).unref();
  }

  #remove(transfer: Reported): void {
    this.#running.delete(transfer);
    if (this.#running.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #report(): Promise<void> {
    // A slow database gets no second statement while it works on the first.
    if (this.#writing) return;
    this.#writing = true;
    try {
      const changed = new Map<RecordHandle, TransferProgress>();
      for (const [transfer, reported] of this.#running) {
        const progress = transfer.progress();
        if (progress.dataBytes === reported.dataBytes && progress.syncPoint === reported.syncPoint) continue;
        this.#running.set(transfer, progress);
        changed.set(transfer.record, progress);
      }
      await this.#journal.progress(changed);
    } catch (error) {
      this.#logger.debug({ reason: (error as Error).message }, 'progress not written');
    } finally {
      this.#writing = false;
    }
  }
}
