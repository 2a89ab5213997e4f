import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { deferred, reasonOf, settledWithin } from '@pesit-node/ground';
import type { Database, Listening, Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';

import { isTopic, TOPICS } from './events.js';
import type { ClusterEvents, Topic, TopicListener } from './events.js';
import { Subscriptions } from './subscriptions.js';

/** One channel for all clusters of a database; a message is `<cluster> <instance that tells> <topic>…`, far below 8,000 bytes. */
const CHANNEL = 'pesit_events';
/** Between two looks whether notifications come through: who only listens would not notice. */
const LOOK_MS = 10_000;
/** How long one may be on its way. */
const PROBE_MS = 5000;
const CLOSE_MS = 2000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 30_000;

const DEAF =
  'PostgreSQL takes LISTEN, and a notification did not arrive: a pooler in transaction mode, such as PgBouncer, loses them; ' +
  'lead database.url past it, or set its pool_mode to session';

export interface DatabaseEventsOptions {
  readonly database: Pick<Database, 'knex' | 'listen'>;
  readonly cluster: string;
  /** Names this process: its own events are not heard. */
  readonly instance: string;
  readonly periodic: Pick<PeriodicWork, 'add'>;
  readonly logger: Logger;
  /** How long a notification of the pool to this process may be on its way, milliseconds. Default 5000. */
  readonly probeMs?: number;
  /** First and longest wait between two attempts to listen, milliseconds; doubled each time. Default 250 and 30,000. */
  readonly retryMs?: { readonly first: number; readonly longest: number };
}

/**
 * Events through LISTEN and NOTIFY of PostgreSQL, where there is no Redis: one connection a process, beside the pool, that hears and
 * tells. Topics that are told while a notification is on its way go with the next one, in no transaction of anybody else: PostgreSQL
 * commits those that notify one after the other. A connection that was lost is replaced, and whoever listens is asked to look.
 */
export class DatabaseEvents implements ClusterEvents {
  readonly #options: Required<DatabaseEventsOptions>;
  readonly #subscriptions = new Subscriptions();
  readonly #stop = new AbortController();
  readonly #own: string;
  readonly #watch: PeriodicHandle;
  readonly #untold = new Set<Topic>();
  #isTelling = false;
  #listening: Listening | undefined;
  /** Ends the connection that is there. */
  #giveUp: ((error: Error) => void) | undefined;
  /** The text of the probe that is on its way, and whom it tells. */
  #probe: { readonly text: string; readonly arrived: () => void } | undefined;
  #probes = 0;
  #state: 'connecting' | 'connected' | 'lost' = 'connecting';
  readonly #run: Promise<void>;

  /** Begins to connect at once. */
  constructor(options: DatabaseEventsOptions) {
    this.#options = { probeMs: PROBE_MS, retryMs: { first: FIRST_RETRY_MS, longest: LONGEST_RETRY_MS }, ...options };
    this.#own = `pesit_${options.instance.replaceAll('-', '')}`;
    this.#watch = options.periodic.add({
      name: 'look whether notifications of PostgreSQL arrive',
      intervalMs: LOOK_MS,
      jitter: 0.1,
      first: 'after an interval',
      run: () => this.look(),
    });
    this.#run = this.#keepListening();
  }

  get connected(): boolean {
    return this.#state === 'connected';
  }

  tell(topic: Topic): void {
    this.#untold.add(topic);
    void this.#tell();
  }

  subscribe(topic: Topic, listener: TopicListener): () => void {
    return this.#subscriptions.add(topic, listener);
  }

  /** Looks whether a notification arrives here; a connection by which none does is given up. Never rejects. */
  async look(): Promise<void> {
    const giveUp = this.#giveUp;
    if (!this.connected) return;
    // A pool that cannot be asked says nothing of this connection.
    if (!(await this.#hears().catch(() => true))) giveUp?.(new Error(DEAF));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#subscriptions.clear();
    this.#giveUp?.(new Error('closed'));
    // A server that does not answer keeps nobody.
    await settledWithin(this.#run, CLOSE_MS);
    await this.#watch.remove();
  }

  async #keepListening(): Promise<void> {
    const { first, longest } = this.#options.retryMs;
    const { signal } = this.#stop;
    let pause = first;
    while (!signal.aborted) {
      try {
        await this.#listen(() => (pause = first));
      } catch (error) {
        this.#lost(reasonOf(error));
      }
      await delay(pause / 2 + randomInt(Math.ceil(pause / 2)), undefined, { signal }).catch(() => undefined);
      pause = Math.min(pause * 2, longest);
    }
  }

  /** @param hears called when notifications arrive @throws when the connection is gone, or there was none */
  async #listen(hears: () => void): Promise<never> {
    const over = deferred<never>();
    // Awaited below, perhaps after it has rejected.
    over.promise.catch(() => undefined);
    const listening = await this.#options.database.listen({
      channels: [CHANNEL, this.#own],
      heard: (channel, payload) => this.#heard(channel, payload),
      lost: over.reject,
    });
    this.#giveUp = over.reject;
    try {
      this.#stop.signal.throwIfAborted();
      if (!(await Promise.race([this.#hears(), over.promise]))) throw new Error(DEAF);
      hears();
      this.#ready(listening);
      return await over.promise;
    } finally {
      this.#giveUp = undefined;
      this.#listening = undefined;
      await listening.close();
    }
  }

  /** @returns whether a notification of the pool came in time @throws when it could not be sent */
  async #hears(): Promise<boolean> {
    const { database, probeMs } = this.#options;
    const text = String((this.#probes += 1));
    let isHere = false;
    const arrival = deferred<undefined>();
    this.#probe = {
      text,
      arrived: () => {
        isHere = true;
        arrival.resolve(undefined);
      },
    };
    await database.knex.raw('select pg_notify(?, ?)', [this.#own, text]);
    const timer = setTimeout(() => {
      // A process that stood still reads first what came meanwhile.
      setImmediate(() => arrival.resolve(undefined));
    }, probeMs).unref();
    await arrival.promise;
    clearTimeout(timer);
    return isHere;
  }

  #heard(channel: string, payload: string): void {
    if (channel === this.#own) {
      if (payload === this.#probe?.text) this.#probe.arrived();
      return;
    }
    const [cluster, from, ...topics] = payload.split(' ', 3 + TOPICS.length);
    if (cluster !== this.#options.cluster || from === this.#options.instance) return;
    for (const topic of topics) if (isTopic(topic)) this.#subscriptions.tell(topic);
  }

  #ready(listening: Listening): void {
    if (this.#state === 'lost') this.#options.logger.info('hears of other pods through PostgreSQL again');
    this.#state = 'connected';
    this.#listening = listening;
    void this.#tell();
    // Events that were told until now may have been missed.
    this.#subscriptions.tellAll();
  }

  #lost(reason: string): void {
    if (this.#state === 'lost' || this.#stop.signal.aborted) return;
    this.#state = 'lost';
    this.#options.logger.warn(
      { reason },
      'cannot hear of other pods through PostgreSQL: the service keeps working, and looks at the database every few seconds instead',
    );
  }

  /** Keeps topics that cannot be told now until the connection is there again. */
  async #tell(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (
      let listening = this.#listening;
      listening !== undefined && this.#untold.size > 0;
      listening = this.#listening
    ) {
      const topics = [...this.#untold];
      this.#untold.clear();
      const { cluster, instance } = this.#options;
      await listening.notify(CHANNEL, [cluster, instance, ...topics].join(' ')).catch(() => {
        for (const topic of topics) this.#untold.add(topic);
      });
    }
    this.#isTelling = false;
  }
}
