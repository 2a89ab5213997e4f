import { isTopic } from './events.js';
import type { ClusterEvents, Topic, TopicListener } from './events.js';
import type { RedisLink } from './redis-link.js';
import { Subscriptions } from './subscriptions.js';

/** Events through Redis pub/sub: one channel a cluster, a message is `<topic> <instance that tells>`. */
export class RedisEvents implements ClusterEvents {
  readonly #link: RedisLink;
  readonly #channel: string;
  readonly #instance: string;
  readonly #subscriptions = new Subscriptions();
  readonly #onConnected = (): void => {
    this.#listen();
  };
  readonly #onMessage = (channel: string, message: string): void => {
    if (channel === this.#channel) this.#heard(message);
  };

  /** @param instance of this process: its own events are not heard. */
  constructor(link: RedisLink, cluster: string, instance: string) {
    this.#link = link;
    this.#channel = `pesit:events:${cluster}`;
    this.#instance = instance;
    link.subscriber.on('message', this.#onMessage);
    link.on('connected', this.#onConnected);
    if (link.connected) this.#listen();
  }

  tell(topic: Topic): void {
    // Not sent: the others look at the database anyway.
    this.#link.commands.publish(this.#channel, `${topic} ${this.#instance}`).catch(() => undefined);
  }

  subscribe(topic: Topic, listener: TopicListener): () => void {
    return this.#subscriptions.add(topic, listener);
  }

  close(): Promise<void> {
    this.#link.off('connected', this.#onConnected);
    this.#link.subscriber.off('message', this.#onMessage);
    this.#subscriptions.clear();
    return Promise.resolve();
  }

  #listen(): void {
    this.#link.subscriber.subscribe(this.#channel).then(
      // Events that were told until now may have been missed.
      () => this.#subscriptions.tellAll(),
      // The connection was lost again: the next one listens.
      () => undefined,
    );
  }

  #heard(message: string): void {
    const [topic = '', from] = message.split(' ', 2);
    if (from !== this.#instance && isTopic(topic)) this.#subscriptions.tell(topic);
  }
}
