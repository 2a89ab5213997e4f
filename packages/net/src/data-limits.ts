import type { Burst } from '@pesit-node/protocol';

/** How much data may be on its way at a time, bytes; what is left out is what this package finds fastest. */
export interface DataLimits {
  /** Most data of one burst to the peer; one article goes in any case. */
  readonly burst?: number;
  /** Most that is taken from the socket at a time, at least 4096. */
  readonly read?: number;
}

/**
 * The limits that sizes of buffers come to, bytes: what is sent as one burst is read from the file, and given to the socket, in one
 * piece.
 */
export const dataLimits = (sizes: {
  readonly chunk: number;
  readonly readBuffer: number;
  readonly socketBuffer: number;
}): DataLimits => ({
  burst: Math.min(sizes.chunk, sizes.readBuffer, sizes.socketBuffer),
  read: sizes.socketBuffer,
});

/** A burst that is full earlier. */
export class LimitedBurst implements Burst {
  readonly #burst: Burst;
  readonly #limit: number;
  #reserved = 0;

  constructor(burst: Burst, limit: number) {
    this.#burst = burst;
    this.#limit = limit;
  }

  get slots(): readonly Buffer[] {
    return this.#burst.slots;
  }

  get lastPoint(): number {
    return this.#burst.lastPoint;
  }

  get maxUnsegmentedArticle(): number {
    return this.#burst.maxUnsegmentedArticle;
  }

  reserve(length: number): boolean {
    if (this.#reserved > 0 && this.#reserved + length > this.#limit) return false;
    if (!this.#burst.reserve(length)) return false;
    this.#reserved += length;
    return true;
  }
}
