import type { AppName } from '@pesit-node/service';

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
  readonly redis: RedisState | null;
}

/** The connection of the pod that answers to Redis. */
export interface RedisState {
  readonly connected: boolean;
  /** Since when it is, or is not. */
  readonly since: Date;
}

export interface StatusSources {
  readonly enabled: boolean;
  readonly pod: PodIdentity;
  readonly members: Pick<Members, 'roster'>;
  readonly leader: Pick<LeaderLease, 'isLeader' | 'holder'>;
  /** Which process of the other app leads there. @throws when it cannot be asked now. */
  readonly otherHolder: (app: AppName) => Promise<string | undefined>;
  readonly facts: () => Promise<PodFacts>;
  /** Null where there is no Redis. */
  readonly redis: () => RedisState | null;
  readonly startedAt: Date;
}

/** The pods of both apps in the cluster. */
export interface ClusterOverview {
  readonly enabled: boolean;
  readonly clusterName: string;
  /** Pods of the server app first, each app's oldest first. */
  readonly members: readonly StatusMember[];
  readonly memberCount: number;
}

const shownFacts = ({ address, version, ready, notReadyReason, sessions }: PodFacts): PodFacts => ({
  ...{ address, version, ready, notReadyReason, sessions },
});

/** Pods of these apps. @throws when the database cannot be asked. While Redis cannot, no other pod is known to lead. */
const membersOf = async (sources: StatusSources, apps: readonly AppName[]): Promise<readonly StatusMember[]> => {
  const { enabled, pod, leader, startedAt } = sources;
  const self: RosterPod = {
    ...(await sources.facts()),
    ...{ app: pod.app, instance: pod.instance, name: pod.name, since: startedAt },
  };
  const roster = enabled ? await sources.members.roster() : [];
  const pods = roster.some(({ instance }) => instance === pod.instance)
    ? roster.map((other) => (other.instance === pod.instance ? { ...self, since: other.since } : other))
    : [...roster, self];
  const holderOf = async (app: AppName): Promise<string | undefined> => {
    if (!enabled) return undefined;
    return (app === pod.app ? leader.holder() : sources.otherHolder(app)).catch(() => undefined);
  };
  const members = await Promise.all(
    apps.map(async (app) => {
      const holder = await holderOf(app);
      const ofApp = pods.filter((one) => one.app === app);
      return ofApp.map(({ instance, since, name, ...facts }) => ({
        ...{ name, ...shownFacts(facts), app, startedAt: since },
        isLeader: instance === pod.instance ? leader.isLeader : instance === holder,
      }));
    }),
  );
  return members.flat();
};

/** @throws when the database cannot be asked. While Redis cannot, no other pod is known to lead. */
export const clusterStatus = async (sources: StatusSources): Promise<ClusterStatus> => {
  const { enabled, pod, leader } = sources;
  const members = await membersOf(sources, [pod.app]);
  return {
    ...{ enabled, clusterName: pod.cluster, nodeName: pod.name, isLeader: leader.isLeader },
    ...{ members, memberCount: members.length, redis: sources.redis() },
  };
};

/** @throws when the database cannot be asked. */
export const clusterOverview = async (sources: StatusSources): Promise<ClusterOverview> => {
  const members = await membersOf(sources, ['server', 'client']);
  return { enabled: sources.enabled, clusterName: sources.pod.cluster, members, memberCount: members.length };
};
