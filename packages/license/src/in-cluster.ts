import type { Cluster } from '@pesit-node/cluster';
import type { SecretBox } from '@pesit-node/service';

import { Admission } from './admission.js';
import { LicenseKeeper } from './keeper.js';
import type { LicenseKeeperOptions } from './keeper.js';

/** The license of a pod: what is installed on one is looked at by all, what runs is counted over all. */
export const licenseInCluster = (
  cluster: Cluster,
  options: Omit<LicenseKeeperOptions, 'usage' | 'shared'> & {
    /** The box under `secrets.key`. */
    readonly secrets: Pick<SecretBox, 'keysFor'>;
  },
): { readonly license: LicenseKeeper; readonly admission: Admission } => {
  const { events, members, memory } = cluster;
  const shared = memory === undefined ? undefined : { memory, secrets: options.secrets };
  const license = new LicenseKeeper({ ...options, shared, usage: () => members.usage() });
  license.on('written', () => events.tell('license'));
  // Before its first look it has nothing to correct, and perhaps no tables to look at.
  events.subscribe('license', () => (license.status === undefined ? undefined : license.refresh()));
  return { license, admission: new Admission({ license, cluster, logger: options.logger }) };
};
