import type { PesitError } from '@pesit-node/protocol';

/** Limits of a file while it grows: the sender alone decides how much comes, this side how much it takes. */
export interface GrowthRules {
  /** Bytes that the file may have, as it lies on the disk. */
  readonly limit?: { readonly bytes: number; readonly exceeded: () => PesitError } | undefined;
  /**
   * Asked beside the writing each time that `everyBytes` more have come, never twice at a time. Rejects when the file may not grow further.
   */
  readonly watch?: { readonly everyBytes: number; readonly check: () => Promise<void> } | undefined;
}

/** Follows the size of one file: a comparison for each batch of articles, whatever they are. */
export class Growth {
  readonly #rules: GrowthRules;
  readonly #stop: (reason: unknown) => void;
  #next: number;
  #asking = false;

  /** @param size bytes that are there already @param stop called when a check says no */
  constructor(rules: GrowthRules, size: number, stop: (reason: unknown) => void) {
    this.#rules = rules;
    this.#stop = stop;
    this.#next = size + (rules.watch?.everyBytes ?? Infinity);
  }

  /** @throws PesitError when the file is larger than it may be */
  reached(size: number): void {
    const { limit, watch } = this.#rules;
    if (limit !== undefined && size > limit.bytes) throw limit.exceeded();
    if (watch === undefined || size < this.#next || this.#asking) return;
    this.#next = size + watch.everyBytes;
    this.#asking = true;
    void watch
      .check()
      .catch(this.#stop)
      .finally(() => (this.#asking = false));
  }
}
