import type { Cluster } from '@pesit-node/cluster';
import type { Metrics } from '@pesit-node/service';

import type { Admission } from './admission.js';
import type { LicenseKeeper } from './keeper.js';

export interface Measured {
  readonly license: Pick<LicenseKeeper, 'status'>;
  readonly admission: Pick<Admission, 'refusal'>;
  readonly cluster: Pick<Cluster, 'leader' | 'members' | 'redisConnected'>;
}

const asNumber = (yes: boolean | undefined): number | undefined => (yes === undefined ? undefined : Number(yes));

/** The gauges of license and cluster; what is not known yet has no sample. */
export const licenseMetrics = (metrics: Metrics, { license, admission, cluster }: Measured): void => {
  metrics.gauge('pesit_license_days_remaining', () => license.status?.daysUntilExpiration);
  metrics.gauge('pesit_license_blocked', () => asNumber(license.status?.blocked));
  metrics.gauge('pesit_pod_admitted', () => Number(admission.refusal === undefined));
  metrics.gauge('pesit_cluster_pods', () => cluster.members.view?.pods.length);
  metrics.gauge('pesit_cluster_leader', () => Number(cluster.leader.isLeader));
  metrics.gauge('pesit_redis_up', () => asNumber(cluster.redisConnected));
};
