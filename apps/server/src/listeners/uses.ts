import type { Uses } from '@pesit-node/service';

import { namedBy } from '../transfers/uses.js';
import type { StoredListener } from './store.js';

const PARTNERS = {
  ...{ table: 'partners', key: 'partner_id', column: 'allowed_listeners' },
  ...{ field: 'allowedListeners', noun: 'partner' },
};

/** The uses that keep a listener from being deleted. */
export const LISTENER_USES: Uses<StoredListener> = {
  of: async (knex, { server_id: id, wanted }) => [
    ...(wanted ? ['it is to run: stop it'] : []),
    ...(await namedBy(knex, PARTNERS, id)),
  ],
  forced:
    'it is stopped on every pod, and files that are running come to their end, within `shutdown.drain-timeout`; lists that name it stay as they are.',
};
