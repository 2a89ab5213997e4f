/** Ports to the rooms that this package may not import. */

export type StoreKind = 'keystore' | 'truststore';

/** Something that names a store, and would not work without it. */
export interface StoreUse {
  readonly kind: StoreKind;
  readonly store: string;
  /** In words: `listener`, `remote server`, `configuration`. */
  readonly what: string;
  /** Its name. */
  readonly name: string;
}

/** Every use of a store in this app, asked at each answer. */
export type StoreUses = () => Promise<readonly StoreUse[]>;

/** Hints between the pods that a store has changed; `ClusterEvents` of cluster has them under a topic. */
export interface StoreHints {
  readonly tell: () => void;
  readonly subscribe: (listener: () => Promise<void>) => () => void;
}
