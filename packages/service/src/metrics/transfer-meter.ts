import type { Metrics } from './metrics.js';
import type { LabelsOf } from './table.js';

/** A transfer while it is counted. */
export interface MeteredTransfer {
  readonly direction: LabelsOf<'pesit_transfers_running'>['direction'];
  /** A partner or a remote server that is configured. */
  readonly peer: string;
  /** How far it is, in totals since the start of the file; undefined before there are data. */
  readonly progress: () => Figures | undefined;
  /** Where a restart begins, for one that cannot say it in time (`goesFrom`); undefined as long as it is not known. */
  readonly from?: () => Figures | undefined;
}

export interface Figures {
  readonly dataBytes: number;
  readonly syncPoint: number;
}

export type EndStatus = LabelsOf<'service_transfers_total'>['status'];

interface Running {
  readonly startedAt: number;
  /** Up to here it is counted. */
  counted: Figures;
  isFromKnown: boolean;
}

const START: Figures = { dataBytes: 0, syncPoint: 0 };

/**
 * Counts the transfers of an app: when one begins, at each scrape, and when it ends. The data path is not touched: what is
 * on its way is asked for its figures.
 */
export class TransferMeter {
  readonly #metrics: Metrics;
  readonly #known: (diagnostic: string) => boolean;
  readonly #now: () => number;
  readonly #running = new Map<MeteredTransfer, Running>();

  /**
   * @param known whether a diagnostic is one of PeSIT: a peer may send any
   * @param now milliseconds; default `performance.now`
   */
  constructor(metrics: Metrics, known: (diagnostic: string) => boolean, now: () => number = () => performance.now()) {
    this.#metrics = metrics;
    this.#known = known;
    this.#now = now;
    metrics.beforeScrape(() => {
      for (const [transfer, running] of this.#running) this.#count(transfer, running);
    });
    metrics.gauge('pesit_transfers_running', () =>
      (['SEND', 'RECEIVE'] as const).map((direction) => ({
        labels: { direction },
        value: [...this.#running.keys()].filter((transfer) => transfer.direction === direction).length,
      })),
    );
  }

  begins(transfer: MeteredTransfer): void {
    // What an earlier attempt has moved is not counted again.
    this.#running.set(transfer, { startedAt: this.#now(), counted: transfer.progress() ?? START, isFromKnown: false });
    this.#metrics.add('pesit_transfers_started_total', { direction: transfer.direction });
  }

  /** Its data come from here on; behind a point it is a restart. */
  goesFrom(transfer: MeteredTransfer, from: Figures): void {
    const running = this.#running.get(transfer);
    if (running === undefined) return;
    running.isFromKnown = true;
    running.counted = from;
    if (from.syncPoint > 0) this.#metrics.add('pesit_transfer_restarts_total', { direction: transfer.direction });
  }

  /** @param status undefined: another attempt follows by itself */
  ends(transfer: MeteredTransfer, status: EndStatus | undefined, diagnostic?: string): void {
    const running = this.#running.get(transfer);
    if (running === undefined) return;
    this.#count(transfer, running);
    this.#running.delete(transfer);
    const { direction } = transfer;
    if (status === 'COMPLETED') {
      this.#metrics.observe('pesit_transfer_duration_seconds', { direction }, (this.#now() - running.startedAt) / 1000);
    }
    this.over(transfer, status, diagnostic);
  }

  /** A transfer that had not begun is over: refused, or cancelled while it waited. */
  over(
    { direction, peer }: Pick<MeteredTransfer, 'direction' | 'peer'>,
    status: EndStatus | undefined,
    diagnostic?: string,
  ): void {
    if (status !== undefined) {
      this.#metrics.add('service_transfers_total', { direction, status });
      this.#metrics.add('pesit_peer_transfers_total', { peer, direction, status });
    }
    if (status !== 'COMPLETED' && status !== 'CANCELLED' && diagnostic !== undefined) {
      this.#metrics.add('pesit_transfer_errors_total', { direction, diagnostic: this.#label(diagnostic) });
    }
  }

  sessionOpened(): void {
    this.#metrics.add('pesit_sessions_total', {});
  }

  /** @param diagnostic undefined: it did not come to a CONNECT */
  sessionRefused(diagnostic?: string): void {
    this.#metrics.add('pesit_sessions_refused_total', {
      diagnostic: diagnostic === undefined ? 'none' : this.#label(diagnostic),
    });
  }

  #label(diagnostic: string): string {
    return this.#known(diagnostic) ? diagnostic : 'other';
  }

  /** A resynchronisation takes figures back: they are counted when they are beyond what they were. */
  #count(transfer: MeteredTransfer, running: Running): void {
    const { direction, progress } = transfer;
    const from = running.isFromKnown ? undefined : transfer.from?.();
    if (from !== undefined) this.goesFrom(transfer, from);
    const { dataBytes, syncPoint } = progress() ?? START;
    const { counted } = running;
    this.#metrics.add('service_bytes_transferred_total', { direction }, Math.max(0, dataBytes - counted.dataBytes));
    this.#metrics.add('pesit_sync_points_total', { direction }, Math.max(0, syncPoint - counted.syncPoint));
    running.counted = {
      dataBytes: Math.max(dataBytes, counted.dataBytes),
      syncPoint: Math.max(syncPoint, counted.syncPoint),
    };
  }
}
