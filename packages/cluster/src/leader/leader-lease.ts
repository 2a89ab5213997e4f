import type { EventEmitter } from 'node:events';

export interface LeaderEvents {
  /** This pod leads from now on, under this epoch. */
  gain: [epoch: number];
  /** It leads no more. */
  loss: [];
}

/** Which pod of an app in a cluster does what must be done once. */
export interface LeaderLease extends EventEmitter<LeaderEvents> {
  /** Whether this pod leads now; no longer than its lease, whether the others can be asked or not. */
  readonly isLeader: boolean;
  /** The number of this term, higher than that of every leader before; undefined while this pod does not lead. */
  readonly epoch: number | undefined;
  /** Stands for election, again and again, until `stop`. Returns at once; may be called again. */
  start(): void;
  /** Renews the lease, or asks for one that is free, now. Never rejects. */
  refresh(): Promise<void>;
  /**
   * Which process holds the lease.
   * @returns its instance, undefined when nobody does. @throws when it cannot be asked now.
   */
  holder(): Promise<string | undefined>;
  /** Leads no more, and gives the lease to whoever asks next, as far as that can be said within 2 seconds. Never rejects. */
  stop(): Promise<void>;
}

/** Where a lease is kept. */
export interface LeaseBackend {
  /** @returns the epoch of the new term; undefined when the lease is another's. @throws when that cannot be known. */
  acquire(): Promise<number | undefined>;
  /** @returns false when it is lost. @throws when that cannot be known. */
  renew(epoch: number): Promise<boolean>;
  /** Frees the lease if it is this process's. */
  release(): Promise<void>;
  holder(): Promise<string | undefined>;
}
