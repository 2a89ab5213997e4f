import { EventEmitter } from 'node:events';

import type { Cluster } from '@pesit-node/cluster';
import type { HealthComponent } from '@pesit-node/service';

import type { LicenseKeeper, LicenseLog } from './keeper.js';
import { placeOf } from './limits.js';
import type { Place } from './limits.js';

/** Why a listener refuses a new session: PeSIT diagnostic, text for the operator, and what the partner is told (PI 29). */
export interface SessionRefusal {
  readonly diagnostic: '3-322';
  readonly text: string;
  readonly peerText: string;
}

const refused = (text: string): SessionRefusal => ({
  diagnostic: '3-322',
  text,
  peerText: 'the node is not available for now: try again later',
});

export interface AdmissionOptions {
  readonly license: Pick<LicenseKeeper, 'status' | 'on'>;
  readonly cluster: Pick<Cluster, 'members' | 'redisConnected'>;
  readonly logger: LicenseLog;
}

interface AdmissionEvents {
  /** Called when the limits or the number of pods may have changed. */
  change: [];
}

/**
 * Whether this pod may take sessions and transfers: the license is not blocked, and the pod is within its limits. Running
 * transfers are not asked.
 */
export class Admission extends EventEmitter<AdmissionEvents> {
  readonly #options: AdmissionOptions;
  #wasAllowed = true;

  constructor(options: AdmissionOptions) {
    super();
    this.#options = options;
    options.license.on('change', () => this.#changed());
    options.cluster.members.on('change', () => this.#changed());
  }

  /** The answer of a listener to a new session, and why the queue waits; undefined = serve. Never waits. */
  get refusal(): SessionRefusal | undefined {
    const { status } = this.#options.license;
    if (status === undefined) return refused('the license has not been read yet');
    if (status.blocked) return refused(`a license is required: ${status.message}`);
    const place = this.#place;
    if (place === undefined) return refused('the pods of the cluster have not been counted yet');
    return place.allowed ? undefined : refused(place.reason);
  }

  /**
   * For `HealthRegistry`: component `cluster`, DOWN for a pod that the license has no place for. A Redis that is lost is
   * said, and changes nothing.
   */
  health(): HealthComponent {
    const { members, redisConnected } = this.#options.cluster;
    const place = this.#place;
    const redis = redisConnected === undefined ? {} : { redis: redisConnected ? 'CONNECTED' : 'LOST' };
    if (place === undefined || members.view === undefined) {
      return { status: 'DOWN', details: { reason: 'not read yet', ...redis } };
    }
    const { cluster, self, pods } = members.view;
    return {
      status: place.allowed ? 'UP' : 'DOWN',
      details: {
        ...{ cluster, pod: self.name, pods: pods.length },
        ...(place.allowed ? {} : { reason: place.reason }),
        ...redis,
      },
    };
  }

  get #place(): Place | undefined {
    const { license, cluster } = this.#options;
    const { view } = cluster.members;
    return license.status === undefined || view === undefined ? undefined : placeOf(view, license.status);
  }

  #changed(): void {
    const place = this.#place;
    if (place === undefined) return;
    const { logger } = this.#options;
    if (!place.allowed && this.#wasAllowed) {
      logger.error(
        { reason: place.reason },
        'this pod takes no sessions and no transfers: beyond the limits of the license',
      );
    }
    if (place.allowed && !this.#wasAllowed) logger.info({}, 'this pod is within the limits of the license again');
    this.#wasAllowed = place.allowed;
    this.emit('change');
  }
}
