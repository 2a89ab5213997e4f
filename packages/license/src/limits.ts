import type { ClusterUsage, MembersView } from '@pesit-node/cluster';

import type { Limits } from './claims.js';

/** Whether a pod may work, and in words why not. */
export type Place = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

/** −1 is more than any number. */
const measure = (limit: number): number => (limit === -1 ? Infinity : limit);

export const exceeds = (
  { clusters, podsPerCluster }: ClusterUsage,
  { maxClusters, maxPodsPerCluster }: Limits,
): boolean => clusters > measure(maxClusters) || podsPerCluster > measure(maxPodsPerCluster);

export const lessGenerous = (one: Limits, other: Limits): boolean =>
  measure(one.maxClusters) < measure(other.maxClusters) ||
  measure(one.maxPodsPerCluster) < measure(other.maxPodsPerCluster);

/** 1 for the oldest. One that is not in the list is the youngest of all. */
const rank = (list: readonly string[], item: string): number => {
  const index = list.indexOf(item);
  return (index === -1 ? list.length : index) + 1;
};

/**
 * Whether a pod is within the license. All pods come to the same answer from the same lists: the oldest clusters keep their
 * place, and in each the oldest pods.
 */
export const placeOf = (view: MembersView, { maxClusters, maxPodsPerCluster }: Limits): Place => {
  const { cluster, self, clusters, pods } = view;
  const clusterRank = rank(clusters, cluster);
  if (clusterRank > measure(maxClusters)) {
    return {
      allowed: false,
      reason: `cluster ${cluster} is number ${clusterRank} on this database, the license allows ${maxClusters}: install a larger license, or stop a cluster`,
    };
  }
  const podRank = rank(
    pods.map(({ instance }) => instance),
    self.instance,
  );
  if (podRank > measure(maxPodsPerCluster)) {
    return {
      allowed: false,
      reason: `pod ${self.name} is number ${podRank} of cluster ${cluster}, the license allows ${maxPodsPerCluster}: install a larger license, or run fewer pods`,
    };
  }
  return { allowed: true };
};
