import { createAuthorityTables } from '@pesit-node/certificates';
import type { Migration } from '@pesit-node/service';

/** The local CA, and what it issues. */
export const authority: Migration = { name: '0025-authority', up: createAuthorityTables };
