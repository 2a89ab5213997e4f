import type { ClusterEvents } from '@pesit-node/cluster';

/** Between two hints: each makes the other pods ask the database. */
const PACE_MS = 250;

/**
 * Tells the other pods that transfers wait which this one does not take: at once, then at most once in 250 ms. Their poll finds
 * what a hint that is lost would have told.
 */
export class QueueHints {
  readonly #events: ClusterEvents;
  #pause: NodeJS.Timeout | undefined;
  #isWanted = false;

  constructor(events: ClusterEvents) {
    this.#events = events;
  }

  tell(): void {
    this.#isWanted = true;
    if (this.#pause === undefined) this.#tell();
  }

  /** @returns ends it */
  subscribe(heard: () => void): () => void {
    return this.#events.subscribe('queue', heard);
  }

  /** Tells now what was wanted. */
  stop(): void {
    clearTimeout(this.#pause);
    this.#pause = undefined;
    if (this.#isWanted) this.#events.tell('queue');
    this.#isWanted = false;
  }

  #tell(): void {
    this.#isWanted = false;
    this.#events.tell('queue');
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (this.#isWanted) this.#tell();
    }, PACE_MS).unref();
  }
}
