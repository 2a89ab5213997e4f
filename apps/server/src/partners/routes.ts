import { fieldRoutes } from '@pesit-node/service';
import type { Routes } from '@pesit-node/service';
import { productOf } from '@pesit-node/transfers';

import type { PartnerRow } from './fields.js';
import { PARTNERS } from './service.js';
import type { PartnerService } from './service.js';
import { PARTNER_USES } from './uses.js';

/** Properties that its last sessions have shown; null before the first. */
const lastSeen = ({ seen }: PartnerRow) =>
  Object.keys(seen).length === 0 ? null : { ...seen, product: productOf(seen) };

export const partnerRoutes = (routes: Routes, service: PartnerService): void => {
  fieldRoutes(routes, {
    ...{ ...PARTNERS, service, uses: PARTNER_USES },
    computed: (row) => ({ lastSeen: lastSeen(row) }),
  });
};
