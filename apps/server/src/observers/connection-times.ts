import type { EventStream, Logger } from '@pesit-node/service';

import type { PartnerSeen } from '../partners/seen.js';
import type { PartnerStore } from '../partners/store.js';
import { PARTNER_SEEN } from '../exchange/events.js';

/**
 * Keeps `lastConnection` and what was seen of partners: at once, but with one statement at a time, however many sessions come.
 */
export class ConnectionTimes {
  readonly #partners: PartnerStore;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, PartnerSeen>();
  #writing: Promise<void> | undefined;

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
    await this.#writing;
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
    }
    this.#writing = undefined;
  }
}
