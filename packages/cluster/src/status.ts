import type { LeaderLease } from './leader/leader-lease.js';
import type { Members, PodFacts, PodIdentity, RosterPod } from './members.js';

export interface StatusMember extends PodFacts {
  readonly name: string;
  readonly app: PodIdentity['app'];
  readonly isLeader: boolean;
  readonly startedAt: Date;
}

/** The pods of the app that answers, in its cluster. */
export interface ClusterStatus {
  readonly enabled: boolean;
  readonly clusterName: string;
  readonly nodeName: string;
  /** Whether the pod that answers leads. */
  readonly isLeader: boolean;
  /** Oldest first. */
  readonly members: readonly StatusMember[];
  readonly memberCount: number;
}

export interface StatusSources {
  readonly enabled: boolean;
  readonly pod: PodIdentity;
  readonly members: Pick<Members, 'roster'>;
  readonly leader: Pick<LeaderLease, 'isLeader' | 'holder'>;
  readonly facts: () => Promise<PodFacts>;
  readonly startedAt: Date;
}

/** @throws when the database cannot be asked. While Redis cannot, nobody is known to lead. */
export const clusterStatus = async (sources: StatusSources): Promise<ClusterStatus> => {
  const { enabled, pod, leader, startedAt } = sources;
  const self: RosterPod = { ...(await sources.facts()), instance: pod.instance, name: pod.name, since: startedAt };
  const others = enabled ? await sources.members.roster() : [];
  const pods = others.some(({ instance }) => instance === pod.instance)
    ? others.map((other) => (other.instance === pod.instance ? { ...self, since: other.since } : other))
    : [...others, self];
  const holder = enabled ? await leader.holder().catch(() => undefined) : undefined;
  const members = pods.map(({ instance, name, address, version, ready, sessions, since }) => ({
    ...{ name, address, app: pod.app, version, ready, sessions, startedAt: since },
    isLeader: instance === pod.instance ? leader.isLeader : instance === holder,
  }));
  return {
    ...{ enabled, clusterName: pod.cluster, nodeName: pod.name, isLeader: leader.isLeader },
    ...{ members, memberCount: members.length },
  };
};
