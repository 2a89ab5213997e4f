import { createFetchedCrlTables } from '@pesit-node/certificates';
import type { Migration } from '@pesit-node/service';

/** CRLs that were fetched for truststores. */
export const fetchedCrls: Migration = { name: '0029-fetched-crls', up: createFetchedCrlTables };
