import { createStoreTables } from '@pesit-node/certificates';
import type { Migration } from '@pesit-node/service';

/** Keystores and truststores. */
export const stores: Migration = { name: '0017-stores', up: createStoreTables };
