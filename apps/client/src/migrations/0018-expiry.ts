import { createExpiryTables } from '@pesit-node/certificates';
import type { Migration } from '@pesit-node/service';

/** What was said of certificates that expire. */
export const expiry: Migration = { name: '0018-expiry', up: createExpiryTables };
