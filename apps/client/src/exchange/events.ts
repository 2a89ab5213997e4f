/** The events that only the client app has; those of sessions and transfers are in `packages/transfers`. */
import { EventKind } from '@pesit-node/service';
import type { EventStream, Metrics } from '@pesit-node/service';

import type { TransferRow } from '../transfers/row.js';

/** The record of a transfer says that it is over, whoever ran it. */
export const TRANSFER_OVER = new EventKind<{ readonly row: TransferRow }>('pesit:transfer:over');

/** Another attempt follows: after a failure, because the partner asked to come later, or because this process gave it up. */
export const TRANSFER_PUT_OFF = new EventKind<{ readonly reason: 'failed' | 'postponed' | 'interrupted' }>(
  'pesit:transfer:put-off',
);

/** Fields of a log line of an attempt: `transferId` and `server` among it. */
export type AttemptFacts = Readonly<Record<string, unknown>>;

/** This process begins an attempt of a transfer. */
export const ATTEMPT_STARTED = new EventKind<AttemptFacts>('pesit:attempt:started');

/** The partner cannot continue where the transfer was: the file goes whole, as a new transfer, in the same attempt. */
export const ATTEMPT_STARTED_OVER = new EventKind<AttemptFacts>('pesit:attempt:started-over');

/** An attempt is over. Its record may follow later, or say that another process has the transfer. */
export const ATTEMPT_ENDED = new EventKind<{
  /** `put off`: another follows by itself; `interrupted`: by this side. */
  readonly outcome: 'completed' | 'failed' | 'put off' | 'interrupted';
  readonly facts: AttemptFacts;
}>('pesit:attempt:ended');

export const meterRetries = (events: EventStream, metrics: Metrics<'client'>): void => {
  events.subscribe(TRANSFER_PUT_OFF, ({ reason }) => {
    metrics.add('pesit_transfer_retries_total', { reason });
  });
};
