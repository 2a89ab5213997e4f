import type { ClusterEvents, Topic, TopicListener } from './events.js';
import { Subscriptions } from './subscriptions.js';

/** Events within one process: for a single node, which has nobody to tell, and for nodes side by side in one process. */
export class LocalBus {
  readonly #members = new Set<Subscriptions>();

  join(): ClusterEvents {
    const own = new Subscriptions();
    this.#members.add(own);
    return {
      tell: (topic: Topic) => {
        if (!this.#members.has(own)) return;
        for (const other of this.#members) if (other !== own) other.tell(topic);
      },
      subscribe: (topic: Topic, listener: TopicListener) => own.add(topic, listener),
      close: () => {
        this.#members.delete(own);
        own.clear();
        return Promise.resolve();
      },
    };
  }
}
