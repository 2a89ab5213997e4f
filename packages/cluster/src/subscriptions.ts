import { coalesced } from './coalesced.js';
import type { Topic, TopicListener } from './events.js';

/** Who listens to what, in one process. */
export class Subscriptions {
  readonly #listeners = new Map<Topic, Set<() => void>>();

  add(topic: Topic, listener: TopicListener): () => void {
    const ask = coalesced(listener);
    const ofTopic = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, ofTopic);
    ofTopic.add(ask);
    return () => {
      ofTopic.delete(ask);
    };
  }

  tell(topic: Topic): void {
    for (const ask of this.#listeners.get(topic) ?? []) ask();
  }

  tellAll(): void {
    for (const topic of this.#listeners.keys()) this.tell(topic);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
