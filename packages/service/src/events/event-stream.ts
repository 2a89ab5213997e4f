import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Channel } from 'node:diagnostics_channel';

import type { AppName } from '../config/row.js';
import type { Logger } from '../logging.js';

/** The message on a channel of `node:diagnostics_channel`: a watcher from outside the process's own code gets it, too. */
export interface Published<T> {
  /** The node that the event belongs to: a process may hold several. */
  readonly stream: EventStream;
  readonly app: AppName;
  /** Name of the machine or pod. */
  readonly node: string;
  readonly event: T;
}

/** One kind of event: its channel, and by its type what an event of it carries. */
export class EventKind<T> {
  readonly channel: Channel<unknown, Published<T>>;

  /** @param name as it is found outside, `pesit:transfer:ended` */
  constructor(name: `pesit:${string}:${string}`) {
    this.channel = channel(name) as Channel<unknown, Published<T>>;
  }

  get name(): string {
    return String(this.channel.name);
  }
}

export interface EventStreamOptions {
  readonly app: AppName;
  readonly node: string;
  /** A subscriber has thrown: nothing but this comes of it. */
  readonly failed: (error: unknown, event: string) => void;
}

/**
 * Events of one node for its subscribers: metrics, log, trace, progress, audit. Publishers know no subscriber and
 * wait for none; an event without subscribers costs a look at a flag. The kinds of a package stand in its `events.ts`.
 *
 * Subscribers are called at once, in the order in which they came, and must not block. One that throws ends nothing.
 */
export class EventStream {
  readonly #options: EventStreamOptions;
  readonly #subscriptions = new Set<() => void>();

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  publish<T>({ channel }: EventKind<T>, event: T): void {
    if (!channel.hasSubscribers) return;
    const { app, node } = this.#options;
    channel.publish({ stream: this, app, node, event });
  }

  /** @returns what ends the subscription */
  subscribe<T>(kind: EventKind<T>, listener: (event: T) => void): () => void {
    const take = (message: unknown): void => {
      const { stream, event } = message as Published<T>;
      if (stream !== this) return;
      try {
        listener(event);
      } catch (error) {
        this.#options.failed(error, kind.name);
      }
    };
    subscribe(kind.name, take);
    const end = (): void => {
      this.#subscriptions.delete(end);
      unsubscribe(kind.name, take);
    };
    this.#subscriptions.add(end);
    return end;
  }

  /** Ends every subscription: the node is stopped. */
  close(): void {
    for (const end of this.#subscriptions) end();
  }
}

/** The stream of a node: a subscriber that throws is logged. */
export const eventStream = (whose: Pick<EventStreamOptions, 'app' | 'node'>, logger: Logger): EventStream =>
  new EventStream({
    ...whose,
    failed: (error, event) => {
      logger.error({ err: error, event }, 'a subscriber of the event stream failed');
    },
  });
