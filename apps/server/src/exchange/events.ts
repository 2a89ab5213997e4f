import type { PesitError } from '@pesit-node/protocol';
import { EventKind } from '@pesit-node/service';

import type { PartnerSeen } from '../partners/seen.js';

/** The events that only the server app has; those of sessions and transfers are in `packages/transfers`. */

/** A session has shown how its partner speaks. */
export const PARTNER_SEEN = new EventKind<{ readonly partnerId: string; readonly seen: PartnerSeen }>(
  'pesit:partner:seen',
);

/** Somebody tried the login of a partner: in a session of its own, of which no other event tells but its end. */
export const PARTNER_TESTED = new EventKind<{
  readonly partnerId: string;
  readonly listener: string;
  /** Milliseconds. */
  readonly latency: number;
  /** Undefined: the session was accepted, and released. */
  readonly error: PesitError | undefined;
}>('pesit:partner:tested');

/** A record of the history will not be written as it should be: what it would have said is in the log alone. */
export const RECORD_LOST = new EventKind<{
  /** Kind of record: `completed transfer`, `refused transfer` … */
  readonly what: string;
  /** `full`: too many wait for the database. `refused`: the database does not take it. */
  readonly why: 'full' | 'refused';
  /** Records that wait. */
  readonly waiting: number;
  /** The answer of the database. */
  readonly error?: unknown;
}>('pesit:record:lost');
