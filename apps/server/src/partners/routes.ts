import { fieldRoutes, validation } from '@pesit-node/service';
import type { ChangeAudit, Config, EventStream, PasswordHasher, Routes } from '@pesit-node/service';
import { productOf } from '@pesit-node/transfers';

import { PARTNER } from './fields.js';
import type { PartnerRow } from './fields.js';
import { PARTNER_USES } from './uses.js';
import type { PartnerStore } from './store.js';

/** Properties that its last sessions have shown; null before the first. */
const lastSeen = ({ seen }: PartnerRow) =>
  Object.keys(seen).length === 0 ? null : { ...seen, product: productOf(seen) };

const PASSWORDS = ['password', 'preconnectPassword'] as const;

export interface PartnerRoutesDeps {
  /** Read at each request: SIGHUP changes it. */
  readonly config: Pick<Config<'server'>, 'password.min-length'>;
  readonly partners: PartnerStore;
  readonly passwords: PasswordHasher;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
}

export const partnerRoutes = (
  routes: Routes,
  { config, partners: store, passwords, events, audit }: PartnerRoutesDeps,
): void => {
  fieldRoutes(routes, {
    path: '/api/v1/config/partners',
    fields: PARTNER,
    store,
    computed: (row) => ({ lastSeen: lastSeen(row) }),
    uses: PARTNER_USES,
    admit: (change) => {
      const least = config['password.min-length'];
      const short = PASSWORDS.filter((field) => (change[field]?.length ?? least) < least);
      const message = `expected at least ${least} characters: password.min-length of the configuration`;
      if (short.length > 0) return Promise.reject(validation(short.map((field) => ({ field, message }))));
      return Promise.resolve();
    },
    keep: (password) => passwords.hash(password),
    ...{ events, audit },
  });
};
