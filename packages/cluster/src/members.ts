import type { EventEmitter } from 'node:events';

import type { AppName } from '@pesit-node/service';

/** One process of one app. */
export interface PodIdentity {
  readonly app: AppName;
  /** `cluster.name`. */
  readonly cluster: string;
  /** `POD_NAMESPACE`. */
  readonly namespace: string;
  /** `POD_NAME`, or the name of the machine. */
  readonly name: string;
  /** UUID of the process. */
  readonly instance: string;
}

/** A pod that lives, as far as the database knows. */
export interface LivingPod {
  readonly instance: string;
  readonly name: string;
  /** Start of its membership by the clock of the database, milliseconds since 1970. */
  readonly since: number;
}

/** A pod as it describes itself. */
export interface PodFacts {
  /** Host and port of its REST interface. */
  readonly address: string | null;
  readonly version: string | null;
  readonly ready: boolean | null;
  /** Why it is not; null when it is, or has not said so yet. */
  readonly notReadyReason: string | null;
  /** PeSIT sessions that are open. */
  readonly sessions: number | null;
}

/** Those of a pod that has not said anything. */
export const NO_FACTS: PodFacts = {
  address: null,
  version: null,
  ready: null,
  notReadyReason: null,
  sessions: null,
};

/** A living pod with what it said last; null: nothing yet. */
export interface RosterPod extends PodFacts {
  readonly app: AppName;
  readonly instance: string;
  readonly name: string;
  readonly since: Date;
}

/** The other pods as one pod sees them. All see the same, some seconds apart. */
export interface MembersView {
  readonly cluster: string;
  readonly self: LivingPod;
  /** Names of the clusters of this app on this database that have a living pod, oldest first. */
  readonly clusters: readonly string[];
  /** Living pods of this app in this cluster, oldest first. */
  readonly pods: readonly LivingPod[];
}

/** Clusters and pods on this database, for the app that has most. */
export interface ClusterUsage {
  readonly clusters: number;
  /** Pods of the cluster that has most. */
  readonly podsPerCluster: number;
}

export interface MembersEvents {
  /** A pod or a cluster came or went, or the view is known for the first time. */
  change: [MembersView];
}

/** Who is in the cluster. */
export interface Members extends EventEmitter<MembersEvents> {
  /** Undefined until the database was asked once. While it is away, the last that is known. */
  readonly view: MembersView | undefined;
  /** Becomes a member, and stays one until `leave`. Returns at once; may be called again. */
  start(): void;
  /** Renews the membership and looks at the others now. Never rejects. */
  refresh(): Promise<void>;
  /** @throws when the database cannot be asked. */
  usage(): Promise<ClusterUsage>;
  /**
   * Living pods of both apps in this cluster with their facts, oldest first; asks the database now.
   * @throws when it cannot be asked.
   */
  roster(): Promise<readonly RosterPod[]>;
  /** Gives the place to the next one, as far as the database answers within 2 seconds. Never rejects. */
  leave(): Promise<void>;
}
