import { FieldService, validation } from '@pesit-node/service';
import type { ChangeAudit, Config, EventStream, PasswordHasher } from '@pesit-node/service';

import { PARTNER } from './fields.js';
import type { PartnerRow } from './fields.js';
import type { PartnerStore } from './store.js';

const PASSWORDS = ['password', 'preconnectPassword'] as const;

export interface PartnerServiceDeps {
  /** Read each time: SIGHUP changes it. */
  readonly config: Pick<Config<'server'>, 'password.min-length'>;
  readonly partners: PartnerStore;
  readonly passwords: Pick<PasswordHasher, 'hash'>;
  readonly events: EventStream;
  readonly audit: ChangeAudit;
}

/** Where the interface has them. */
export const PARTNERS = { path: '/api/v1/config/partners', fields: PARTNER } as const;

export type PartnerService = FieldService<typeof PARTNER.rows, PartnerRow>;

/** Creates and changes partners; their passwords are stored as hashes. */
export const partnerService = ({
  config,
  partners: store,
  passwords,
  events,
  audit,
}: PartnerServiceDeps): PartnerService =>
  new FieldService({
    ...PARTNERS,
    store,
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
