/** The events that only the client app has; those of sessions and transfers are in `packages/transfers`. */
import type { PesitError, SingleArticleStyle } from '@pesit-node/protocol';
import { EventKind } from '@pesit-node/service';
import type { EventStream, Metrics } from '@pesit-node/service';
import type { Negotiated, ObservedSession } from '@pesit-node/transfers';

import type { ServerSeen } from '../remote-servers/seen.js';
import type { TransferRow } from '../transfers/row.js';

/** A remote server accepted a session, which may be that of a connection test. */
export const SERVER_REACHED = new EventKind<{
  readonly serverId: number;
  readonly negotiated: Negotiated;
  readonly seen: ServerSeen;
}>('pesit:server:reached');

/** It refused a session, or could not be reached. */
export const SERVER_NOT_REACHED = new EventKind<{ readonly serverId: number; readonly error: PesitError }>(
  'pesit:server:not-reached',
);

/** The circuit breaker of a remote server was opened, or closed: on all pods. */
export const CIRCUIT_CHANGED = new EventKind<{
  readonly serverId: number;
  /** Its name. */
  readonly server: string;
  readonly state: 'open' | 'closed';
  /** Why the last contact failed. */
  readonly reason: string | null;
}>('pesit:server:circuit-changed');

/** A session has shown how a remote server speaks: PI 25 as it answered to a file, or how it writes single articles. */
export const SERVER_SEEN = new EventKind<{
  readonly serverId: number;
  readonly maxEntitySize?: number;
  readonly singleArticle?: SingleArticleStyle;
}>('pesit:server:seen');

/** A transfer uses a session of the pool. */
export const SESSION_TAKEN = new EventKind<{
  readonly session: ObservedSession;
  /** Id of the transfer. */
  readonly transfer: string;
  /** It has served before. */
  readonly reused: boolean;
}>('pesit:session:taken');

/** A transfer no longer uses its session. */
export const SESSION_GIVEN_BACK = new EventKind<{
  readonly session: ObservedSession;
  /** Why the transfer failed in it; undefined: it did not. */
  readonly error: unknown;
}>('pesit:session:given-back');

/** Somebody tested the connection with a remote server: in a session of its own, which no other event is about. */
export const CONNECTION_TESTED = new EventKind<{
  readonly session: ObservedSession;
  /** Milliseconds. */
  readonly latency: number;
  /** Undefined: the server accepted a session, which was released. */
  readonly error: PesitError | undefined;
}>('pesit:connection:tested');

/** The record of a transfer says that it is over, whoever ran it. */
export const TRANSFER_OVER = new EventKind<{ readonly row: TransferRow }>('pesit:transfer:over');

/** The queue takes a transfer for an attempt. */
export const TRANSFER_TAKEN = new EventKind<{
  /** Since it was due: its request, `notBefore`, or the time of its next attempt. */
  readonly waitedMs: number;
}>('pesit:transfer:taken');

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

/** Counts what only the client app has: waits in its queue, and attempts that follow by themselves. */
export const meterQueue = (events: EventStream, metrics: Metrics<'client'>): void => {
  events.subscribe(TRANSFER_TAKEN, ({ waitedMs }) => {
    metrics.observe('pesit_queue_wait_seconds', {}, Math.max(0, waitedMs) / 1000);
  });
  events.subscribe(TRANSFER_PUT_OFF, ({ reason }) => {
    metrics.add('pesit_transfer_retries_total', { reason });
  });
};
