import { EventKind } from '@pesit-node/service';

import type { PartnerSeen } from '../partners/seen.js';

/** The events that only the server app has; those of sessions and transfers are in `packages/transfers`. */

/** A session has shown how its partner speaks. */
export const PARTNER_SEEN = new EventKind<{ readonly partnerId: string; readonly seen: PartnerSeen }>(
  'pesit:partner:seen',
);
