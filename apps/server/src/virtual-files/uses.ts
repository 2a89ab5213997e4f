import type { Uses } from '@pesit-node/service';

import { namedBy, transfersOf } from '../transfers/uses.js';
import type { VirtualFileRow } from './fields.js';

const PARTNERS = {
  ...{ table: 'partners', key: 'partner_id', column: 'allowed_files' },
  ...{ field: 'allowedFiles', noun: 'partner' },
};

/** The uses that keep a virtual file from being deleted. */
export const VIRTUAL_FILE_USES: Uses<VirtualFileRow> = {
  of: async (knex, { file_id: id }) => [
    ...(await transfersOf(knex, 'virtual_file_id', id)),
    ...(await namedBy(knex, PARTNERS, id)),
  ],
  forced:
    'files that are running come to their end; interrupted ones cannot be restarted; lists that name it stay as they are.',
};
