import { randomInt } from 'node:crypto';
import { EventEmitter } from 'node:events';

import type { Logger, PeriodicHandle, PeriodicWork } from '@pesit-node/service';
import { Redis } from 'ioredis';

import type { RedisServer } from './redis-server.js';

/** A Redis that does not answer must not hold up whoever asks it: what is kept there is never the only copy. */
const ANSWER_MS = 1000;
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 2000;
const LOOK_MS = 3000;

const pauseBefore = (attempt: number): number => {
  const pause = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt, 10));
  return pause / 2 + randomInt(pause / 2);
};

const options = {
  lazyConnect: true,
  connectTimeout: ANSWER_MS,
  commandTimeout: ANSWER_MS,
  sentinelCommandTimeout: ANSWER_MS,
  // A host that vanished sends nothing, not even a reset: the kernel would wait for a quarter of an hour.
  socketTimeout: 2 * ANSWER_MS,
  // Holds up the end of the process, also when the connection is gone already.
  disconnectTimeout: 100,
  // A command that cannot be sent now is not kept for later: it would tell of what is long past.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: pauseBefore,
  sentinelRetryStrategy: pauseBefore,
  // A replica after a failover: the name leads to the new master by now.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
};

interface LinkEvents {
  /** Both connections are there, for the first time or again. */
  connected: [];
}

/**
 * The connections of a process to Redis: one for commands, one that listens. They come back by themselves; a loss is logged
 * once, and so is the return.
 */
export class RedisLink extends EventEmitter<LinkEvents> {
  readonly commands: Redis;
  readonly subscriber: Redis;
  readonly #logger: Logger;
  #state: 'connecting' | 'connected' | 'lost' = 'connecting';
  #since = new Date();
  #closed = false;

  /** Begins to connect at once. */
  constructor(server: RedisServer, logger: Logger) {
    super();
    this.#logger = logger;
    this.commands = new Redis({ ...options, ...server, connectionName: 'pesit-node' });
    this.subscriber = new Redis({ ...options, ...server, connectionName: 'pesit-node-events' });
    for (const connection of [this.commands, this.subscriber]) {
      connection.on('ready', () => this.#ready());
      connection.on('error', (error: Error) =>
        this.#lost(error.message || (error as NodeJS.ErrnoException).code || ''),
      );
      connection.on('close', () => this.#lost('the connection was closed'));
      connection.connect().catch(() => undefined);
    }
  }

  get connected(): boolean {
    return this.#state === 'connected';
  }

  /** When that was so first, this time. */
  get since(): Date {
    return this.#since;
  }

  /** Looks again and again whether Redis answers: who only listens would not notice. */
  watch(periodic: Pick<PeriodicWork, 'add'>): PeriodicHandle {
    return periodic.add({
      name: 'look whether Redis answers',
      intervalMs: LOOK_MS,
      jitter: 0.1,
      run: () => this.look(),
    });
  }

  /** Asks both connections for an answer; one that has none for 2 seconds is given up. Never rejects. */
  async look(): Promise<void> {
    await Promise.allSettled([this.commands.ping(), this.subscriber.ping()]);
  }

  close(): void {
    this.#closed = true;
    this.commands.disconnect();
    this.subscriber.disconnect();
  }

  #ready(): void {
    if (this.#closed || this.commands.status !== 'ready' || this.subscriber.status !== 'ready') return;
    if (this.#state === 'lost') this.#logger.info('connected to Redis again');
    if (this.#state !== 'connected') this.#since = new Date();
    this.#state = 'connected';
    this.emit('connected');
  }

  #lost(reason: string): void {
    if (this.#closed || this.#state === 'lost') return;
    if (this.#state === 'connected') this.#since = new Date();
    this.#state = 'lost';
    this.#logger.warn(
      { reason },
      'could not reach Redis: the service keeps working, and looks at the database instead',
    );
  }
}
