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

export const meterRetries = (events: EventStream, metrics: Metrics<'client'>): void => {
  events.subscribe(TRANSFER_PUT_OFF, ({ reason }) => {
    metrics.add('pesit_transfer_retries_total', { reason });
  });
};
