import { fieldRoutes } from '@pesit-node/service';
import type { Logger, PasswordHasher, Routes } from '@pesit-node/service';
import { productOf } from '@pesit-node/transfers';

import { PARTNER } from './fields.js';
import type { PartnerRow } from './fields.js';
import type { PartnerStore } from './store.js';

/** What its last sessions have shown; null before the first. */
const lastSeen = ({ seen }: PartnerRow) =>
  Object.keys(seen).length === 0 ? null : { ...seen, product: productOf(seen) };

export const partnerRoutes = (routes: Routes, store: PartnerStore, passwords: PasswordHasher, logger: Logger): void => {
  fieldRoutes(routes, {
    path: '/api/v1/config/partners',
    fields: PARTNER,
    store,
    computed: (row) => ({ lastSeen: lastSeen(row) }),
    keep: (password) => passwords.hash(password),
    logger,
  });
};
