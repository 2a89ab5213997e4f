import type { MigrationSet } from '@pesit-node/service';

import { cluster } from './0001-cluster.js';
import { leaders } from './0002-leaders.js';
import { podFacts } from './0003-pod-facts.js';
import { volumes } from './0004-volumes.js';
import { podRequests } from './0005-pod-requests.js';

/** Both apps apply it: the pods of both are in the same tables. */
export const CLUSTER_MIGRATIONS: MigrationSet = {
  schema: 'pesit_common',
  migrations: [cluster, leaders, podFacts, volumes, podRequests],
};
