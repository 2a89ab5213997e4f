import { createDeclaredTables } from '@pesit-node/service';
import type { Migration } from '@pesit-node/service';

/** Secrets that the configuration file has declared and that were applied. */
export const declared: Migration = { name: '0033-declared', up: createDeclaredTables };
