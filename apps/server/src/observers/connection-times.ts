import { setTimeout as delay } from 'node:timers/promises';

import type { EventStream, Logger } from '@pesit-node/service';

import type { PartnerSeen } from '../partners/seen.js';
import type { PartnerStore } from '../partners/store.js';
import { PARTNER_SEEN } from '../exchange/events.js';

/** Between two statements, milliseconds. */
const PAUSE_MS = 1000;

/**
 * Keeps `lastConnection` and what was seen of partners: at once, but with one statement a second, however many sessions come. Each
 * changes rows that the ends of transfers change, too, and waits for them.
 */
export class ConnectionTimes {
  readonly #partners: PartnerStore;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, PartnerSeen>();
  #writing: Promise<void> | undefined;
  #pause = new AbortController();

  constructor(events: EventStream, partners: PartnerStore, logger: Logger) {
    this.#partners = partners;
    this.#logger = logger;
    events.subscribe(PARTNER_SEEN, ({ partnerId, seen }) => {
      this.#waiting.set(partnerId, { ...this.#waiting.get(partnerId), ...seen });
      this.#writing ??= this.#write();
    });
  }

  /** Resolves when all are written. */
  async settled(): Promise<void> {
    this.#pause.abort();
    await this.#writing;
    this.#pause = new AbortController();
  }

  async #write(): Promise<void> {
    while (this.#waiting.size > 0) {
      const seen = new Map(this.#waiting);
      this.#waiting.clear();
      try {
        await this.#partners.connected(seen);
      } catch (error) {
        const partners = [...seen.keys()];
        this.#logger.debug({ partners, reason: (error as Error).message }, 'could not record when partners connected');
      }
      await delay(PAUSE_MS, undefined, { signal: this.#pause.signal, ref: false }).catch(() => undefined);
    }
    this.#writing = undefined;
  }
}
