import { diagnosticRow } from '@pesit-node/protocol';
import type { EventStream, Metrics } from '@pesit-node/service';

import {
  FILE_FLUSHED,
  SESSION_OPENED,
  SESSION_REFUSED,
  TRANSFER_BEGAN,
  TRANSFER_CONFIRMED,
  TRANSFER_ENDED,
  TRANSFER_POINT,
  TRANSFER_REFUSED,
  TRANSFER_WENT_ON,
} from './events.js';
import type { EndStatus, Figures, ObservedTransfer } from './events.js';

interface Running {
  readonly startedAt: number;
  /** Up to here it is counted. */
  counted: Figures;
  isFromKnown: boolean;
}

const START: Figures = { dataBytes: 0, syncPoint: 0 };

/** A peer may say any number: those that the specification has not are one label. */
const labelOf = (diagnostic: string): string => (diagnosticRow(diagnostic) === undefined ? 'other' : diagnostic);

/**
 * Counts the sessions and transfers of an app from its events, and at each scrape: the data path is not touched, what is on
 * its way is asked for its figures.
 *
 * @param now milliseconds; default `performance.now`
 */
export const meterTransfers = (
  events: EventStream,
  metrics: Metrics,
  now: () => number = () => performance.now(),
): void => {
  const running = new Map<ObservedTransfer, Running>();

  const goesFrom = (transfer: ObservedTransfer, from: Figures): void => {
    const known = running.get(transfer);
    if (known === undefined) return;
    known.isFromKnown = true;
    known.counted = from;
    if (from.syncPoint > 0) metrics.add('pesit_transfer_restarts_total', { direction: transfer.direction });
  };

  // A resynchronisation takes figures back: they are counted when they are beyond what they were.
  const count = (transfer: ObservedTransfer, known: Running): void => {
    const { direction, progress } = transfer;
    const from = known.isFromKnown ? undefined : transfer.from?.();
    if (from !== undefined) goesFrom(transfer, from);
    const { dataBytes, syncPoint } = progress() ?? START;
    const { counted } = known;
    metrics.add('service_bytes_transferred_total', { direction }, Math.max(0, dataBytes - counted.dataBytes));
    metrics.add('pesit_sync_points_total', { direction }, Math.max(0, syncPoint - counted.syncPoint));
    known.counted = {
      dataBytes: Math.max(dataBytes, counted.dataBytes),
      syncPoint: Math.max(syncPoint, counted.syncPoint),
    };
  };

  const over = (
    { direction, peer }: Pick<ObservedTransfer, 'direction' | 'peer'>,
    status: EndStatus | undefined,
    diagnostic: string | undefined,
  ): void => {
    if (status !== undefined) {
      metrics.add('service_transfers_total', { direction, status });
      metrics.add('pesit_peer_transfers_total', { peer, direction, status });
    }
    if (status !== 'COMPLETED' && status !== 'CANCELLED' && diagnostic !== undefined) {
      metrics.add('pesit_transfer_errors_total', { direction, diagnostic: labelOf(diagnostic) });
    }
  };

  metrics.beforeScrape(() => {
    for (const [transfer, known] of running) count(transfer, known);
  });
  metrics.gauge('pesit_transfers_running', () =>
    (['SEND', 'RECEIVE'] as const).map((direction) => ({
      labels: { direction },
      value: [...running.keys()].filter((transfer) => transfer.direction === direction).length,
    })),
  );

  events.subscribe(TRANSFER_BEGAN, ({ transfer }) => {
    // Data that an earlier attempt has moved are not counted again.
    running.set(transfer, { startedAt: now(), counted: transfer.progress() ?? START, isFromKnown: false });
    metrics.add('pesit_transfers_started_total', { direction: transfer.direction });
  });
  events.subscribe(TRANSFER_WENT_ON, ({ transfer, from }) => {
    goesFrom(transfer, from);
  });
  events.subscribe(TRANSFER_ENDED, ({ transfer, status, diagnostic }) => {
    const known = running.get(transfer);
    if (known === undefined) return;
    count(transfer, known);
    running.delete(transfer);
    const { direction } = transfer;
    if (status === 'COMPLETED') {
      metrics.observe('pesit_transfer_duration_seconds', { direction }, (now() - known.startedAt) / 1000);
    }
    over(transfer, status, diagnostic);
  });
  events.subscribe(TRANSFER_REFUSED, (transfer) => {
    over(transfer, transfer.status, transfer.diagnostic);
  });
  events.subscribe(TRANSFER_POINT, ({ waitedMs }) => {
    if (waitedMs !== undefined) metrics.observe('pesit_acknowledgement_seconds', { of: 'SYN' }, waitedMs / 1000);
  });
  events.subscribe(TRANSFER_CONFIRMED, ({ waitedMs }) => {
    metrics.observe('pesit_acknowledgement_seconds', { of: 'TRANS.END' }, waitedMs / 1000);
  });
  events.subscribe(FILE_FLUSHED, ({ ms }) => {
    metrics.observe('pesit_flush_duration_seconds', {}, ms / 1000);
  });
  events.subscribe(SESSION_OPENED, () => {
    metrics.add('pesit_sessions_total', {});
  });
  events.subscribe(SESSION_REFUSED, ({ diagnostic }) => {
    metrics.add('pesit_sessions_refused_total', {
      diagnostic: diagnostic === undefined ? 'none' : labelOf(diagnostic),
    });
  });
};
