import type { Limits } from './claims.js';

/** What runs. */
export interface Usage {
  readonly clusters: number;
  /** Of the cluster that has most. */
  readonly podsPerCluster: number;
}

/** A cluster or a pod that lives. */
export interface Member {
  readonly name: string;
  /** When it was seen first, milliseconds: the oldest keep their place. */
  readonly since: number;
}

/** Whether a pod may work, and in words why not. */
export type Place = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

/** −1 is more than any number. */
const measure = (limit: number): number => (limit === -1 ? Infinity : limit);

export const exceeds = ({ clusters, podsPerCluster }: Usage, { maxClusters, maxPodsPerCluster }: Limits): boolean =>
  clusters > measure(maxClusters) || podsPerCluster > measure(maxPodsPerCluster);

export const lessGenerous = (one: Limits, other: Limits): boolean =>
  measure(one.maxClusters) < measure(other.maxClusters) ||
  measure(one.maxPodsPerCluster) < measure(other.maxPodsPerCluster);

/** 1 for the oldest; of equals, by name. One that is not in the list is the youngest of all. */
const rank = (name: string, members: readonly Member[]): number => {
  const byAge = members.toSorted((a, b) => a.since - b.since || (a.name < b.name ? -1 : 1));
  const index = byAge.findIndex((member) => member.name === name);
  return (index === -1 ? members.length : index) + 1;
};

export interface Membership {
  /** The cluster of this pod, by `cluster.name`. */
  readonly cluster: string;
  readonly pod: string;
  /** All clusters on this database that have a living pod; `since` = when the name was first seen, whatever pods it had. */
  readonly clusters: readonly Member[];
  /** Living pods of this cluster. */
  readonly pods: readonly Member[];
}

/**
 * Whether a pod is within the license. All pods come to the same answer from the same lists: the oldest clusters keep their
 * place, and in each the oldest pods.
 */
export const placeOf = (membership: Membership, { maxClusters, maxPodsPerCluster }: Limits): Place => {
  const { cluster, pod, clusters, pods } = membership;
  const clusterRank = rank(cluster, clusters);
  if (clusterRank > measure(maxClusters)) {
    return {
      allowed: false,
      reason: `cluster ${cluster} is number ${clusterRank} on this database, the license allows ${maxClusters}: install a larger license, or stop a cluster`,
    };
  }
  const podRank = rank(pod, pods);
  if (podRank > measure(maxPodsPerCluster)) {
    return {
      allowed: false,
      reason: `pod ${pod} is number ${podRank} of cluster ${cluster}, the license allows ${maxPodsPerCluster}: install a larger license, or run fewer pods`,
    };
  }
  return { allowed: true };
};
