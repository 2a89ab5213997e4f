import { isDatabaseUnavailable } from '@pesit-node/service';
import type { EventStream } from '@pesit-node/service';
import { TRANSFER_ASIDE, TRANSFER_ENDED, TRANSFER_REFUSED } from '@pesit-node/transfers';
import type { EndStatus, Facts, ObservedTransfer, TransferAside, TransferStatus } from '@pesit-node/transfers';

import { TRANSFER_OVER, TRANSFER_PUT_OFF } from '../exchange/events.js';
import type { RunningTransfer } from '../exchange/run-transfer.js';
import type { ExchangeSettings, SpoolRetention } from '../exchange/settings.js';
import type { AttemptEnd, Job, TransferRow } from '../transfers/row.js';
import type { TransferStore } from '../transfers/store.js';

export interface AttemptEndsOptions {
  readonly store: Pick<TransferStore, 'end' | 'find'>;
  readonly settings: Pick<ExchangeSettings, 'spoolRetention'>;
  /** See `QueueWorkOptions`. */
  readonly pollMs?: number;
  readonly events: EventStream;
  /** Told of each failure of the database. */
  readonly failed: (error: unknown, what: string) => void;
  /** Nothing is tried again any longer. */
  readonly isStopped: () => boolean;
}

/** Why another attempt follows, as the metrics name it. */
const RETRY_REASONS = { failed: 'failed', later: 'postponed', none: 'interrupted', untouched: 'interrupted' } as const;

/** Where nothing is to be kept for later, the content of the request is given up with the end of its transfer. */
const endsWithoutContent = ({ completed, failed }: SpoolRetention): readonly EndStatus[] => [
  ...(completed === 0 ? (['COMPLETED'] as const) : []),
  ...(failed === 0 ? (['FAILED', 'CANCELLED'] as const) : []),
];

const isEnd = (status: TransferStatus): status is EndStatus => status !== 'PENDING' && status !== 'IN_PROGRESS';

/** The end of an attempt is written and told: its record, under the lease of the attempt alone, and its events. */
export class AttemptEnds {
  readonly #options: AttemptEndsOptions;

  constructor(options: AttemptEndsOptions) {
    this.#options = options;
  }

  /** Writes the end of an attempt, however long the database is away: the partner knows it as ended. */
  async record(job: Job, end: AttemptEnd): Promise<TransferRow | undefined> {
    const { store, settings, pollMs = 5000, failed, isStopped } = this.#options;
    const contentGoesWith = endsWithoutContent(settings.spoolRetention);
    for (let attempt = 1; ; attempt++) {
      try {
        const row = await store.end(job, end, contentGoesWith);
        if (row !== undefined) return row;
        const found = await store.find(job.id);
        // An earlier try was written, and its answer lost.
        if (attempt > 1 && found?.status === end.status && found.fence === job.fence) return found;
        this.#aside(job.id, 'end belongs to another', { end: end.status });
        return undefined;
      } catch (error) {
        failed(error, 'could not write the end of a transfer yet');
        if (!isDatabaseUnavailable(error) || isStopped()) return undefined;
        await new Promise((resolve) => setTimeout(resolve, Math.min(pollMs, 1000)).unref());
      }
    }
  }

  /** @param row undefined: another process has the transfer */
  publish(transfer: ObservedTransfer, end: AttemptEnd, row: TransferRow | undefined): void {
    const { events } = this.#options;
    const status = row !== undefined && isEnd(row.status) ? row.status : undefined;
    const diagnostic = 'diagnostic' in end ? end.diagnostic : undefined;
    events.publish(TRANSFER_ENDED, { session: undefined, transfer, status, diagnostic, facts: {} });
    if (row?.status !== 'PENDING' || end.status !== 'PENDING') return;
    events.publish(TRANSFER_PUT_OFF, { reason: RETRY_REASONS[end.counts] });
  }

  /** The record of an attempt says that its transfer is over: removes what was kept for another one, now or with the next sweep. */
  async over(row: TransferRow, transfer: Pick<RunningTransfer, 'cleanUp'>): Promise<void> {
    await transfer.cleanUp(row).catch((error: unknown) => {
      this.#aside(row.id, 'leftovers kept', {}, error);
    });
    this.#options.events.publish(TRANSFER_OVER, { row });
  }

  /** A transfer that does not run here is over: its record. */
  overElsewhere(row: TransferRow): void {
    const { direction, server_name: peer, status, type } = row;
    const { events } = this.#options;
    if (isEnd(status)) {
      const about = { type, direction, peer, status, diagnostic: row.diagnostic ?? undefined };
      events.publish(TRANSFER_REFUSED, { session: undefined, ...about, error: undefined, counted: false, facts: {} });
    }
    events.publish(TRANSFER_OVER, { row });
  }

  #aside(id: string, aside: TransferAside, facts: Facts, error?: unknown): void {
    this.#options.events.publish(TRANSFER_ASIDE, { session: undefined, id, aside, error, facts });
  }
}
