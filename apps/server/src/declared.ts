/** The configuration file may declare virtual files, partners and listeners for this app. */
import { DeclaredList, isRemoteServer, PasswordHashError } from '@pesit-node/service';
import type { CreateOf, DeclaredResource, PasswordHasher } from '@pesit-node/service';

import { LISTENER } from './listeners/fields.js';
import type { ListenerRequests } from './listeners/requests.js';
import type { ListenerStore, StoredListener } from './listeners/store.js';
import { PARTNER } from './partners/fields.js';
import type { PartnerRow } from './partners/fields.js';
import type { PartnerService } from './partners/service.js';
import { VIRTUAL_FILE } from './virtual-files/fields.js';
import type { VirtualFileRow } from './virtual-files/fields.js';
import type { VirtualFileService } from './virtual-files/service.js';

const FILES = new DeclaredList({ list: 'files', fields: VIRTUAL_FILE });
const PARTNERS = new DeclaredList({ list: 'partners', fields: PARTNER });
const LISTENERS = new DeclaredList({ list: 'servers', fields: LISTENER, has: (item) => !isRemoteServer(item) });

/** In the order of their texts. */
export const DECLARED_LISTS = [PARTNERS, FILES, LISTENERS];

export interface DeclaredParts {
  readonly virtualFiles: VirtualFileService;
  readonly partners: PartnerService;
  readonly passwords: Pick<PasswordHasher, 'verify'>;
  readonly listeners: ListenerRequests;
  readonly listenerStore: Pick<ListenerStore, 'some'>;
}

type CreateListener = CreateOf<typeof LISTENER.rows>;

const noSecrets = (): Promise<boolean> => Promise.resolve(false);

/** In the order in which they are applied: a listener takes partners when it starts. */
export const declaredResources = ({
  virtualFiles,
  partners,
  passwords,
  listeners,
  listenerStore,
}: DeclaredParts): readonly DeclaredResource[] => [
  {
    list: FILES,
    existing: async (ids) => (await virtualFiles.store.some(ids)).map((row) => [row.file_id, row]),
    create: (body, by) => virtualFiles.create(body, by),
    change: (row, body, by) => virtualFiles.change((row as VirtualFileRow).file_id, body, by),
    matches: noSecrets,
  },
  {
    list: PARTNERS,
    existing: async (ids) => (await partners.store.some(ids)).map((row) => [row.partner_id, row]),
    create: (body, by) => partners.create(body as CreateOf<typeof PARTNER.rows>, by),
    change: (row, body, by) => partners.change((row as PartnerRow).partner_id, body, by),
    matches: async (row, column, password) => {
      const stored = (row as Readonly<Record<string, unknown>>)[column];
      if (typeof stored !== 'string') return false;
      try {
        return await passwords.verify(password, stored);
      } catch (error) {
        if (error instanceof PasswordHashError) return false;
        throw error;
      }
    },
  },
  {
    list: LISTENERS,
    existing: async (ids) => (await listenerStore.some(ids)).map((row) => [row.server_id, row]),
    create: (body, by) => listeners.create(body as CreateListener, true, by),
    change: (row, body, by) => listeners.change((row as StoredListener).server_id, body, by),
    matches: noSecrets,
  },
];
