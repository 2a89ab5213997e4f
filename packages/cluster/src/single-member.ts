import { EventEmitter } from 'node:events';

import type { ClusterUsage, Members, MembersEvents, MembersView, PodIdentity, RosterPod } from './members.js';

/** A pod that nobody can join: its database is its own. */
export class SingleMember extends EventEmitter<MembersEvents> implements Members {
  readonly view: MembersView;

  constructor({ cluster, instance, name }: PodIdentity) {
    super();
    const self = { instance, name, since: Date.now() };
    this.view = { cluster, self, clusters: [cluster], pods: [self] };
  }

  start(): void {
    this.emit('change', this.view);
  }

  refresh(): Promise<void> {
    return Promise.resolve();
  }

  usage(): Promise<ClusterUsage> {
    return Promise.resolve({ clusters: 1, podsPerCluster: 1 });
  }

  /** None but the pod itself, which knows itself better. */
  roster(): Promise<readonly RosterPod[]> {
    return Promise.resolve([]);
  }

  leave(): Promise<void> {
    return Promise.resolve();
  }
}
