import type { MigrationSet } from '@pesit-node/service';

import { license } from './0001-license.js';
import { installation } from './0002-installation.js';

/** Both apps apply it; where they have one PostgreSQL, they share the license and the evaluation. */
export const LICENSE_MIGRATIONS: MigrationSet = { schema: 'pesit_common', migrations: [license, installation] };
