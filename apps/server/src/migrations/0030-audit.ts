import { createAuditTables } from '@pesit-node/service';
import type { Migration } from '@pesit-node/service';

/** The audit log. */
export const audit: Migration = { name: '0030-audit', up: createAuditTables };
