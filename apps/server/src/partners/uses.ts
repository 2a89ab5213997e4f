import type { Uses } from '@pesit-node/service';

import { namedBy, transfersOf } from '../transfers/uses.js';
import type { PartnerRow } from './fields.js';

const FILES = {
  ...{ table: 'virtual_files', key: 'file_id', column: 'allowed_partners' },
  ...{ field: 'allowedPartners', noun: 'virtual file' },
};

/** The uses that keep a partner from being deleted. */
export const PARTNER_USES: Uses<PartnerRow> = {
  of: async (knex, { partner_id: id }) => [
    ...(await transfersOf(knex, 'partner_id', id)),
    ...(await namedBy(knex, FILES, id)),
  ],
  forced:
    'files that are running come to their end, and its sessions end then (3-304); interrupted ones cannot be restarted; lists that name it stay as they are.',
};
