import type { Logger } from '@pesit-node/service';

import type { PartnerSeen } from '../partners/seen.js';
import type { PartnerStore } from '../partners/store.js';

/**
 * Keeps `lastConnection` and what was seen of partners: at once, but with one statement at a time, however many sessions come.
 */
export class ConnectionTimes {
  readonly #partners: PartnerStore;
  readonly #logger: Logger;
  readonly #waiting = new Map<string, PartnerSeen>();
  #writing: Promise<void> | undefined;

  constructor(partners: PartnerStore, logger: Logger) {
    this.#partners = partners;
    this.#logger = logger;
  }

  /** The partner is connected now, and this was seen of it. */
  add(partnerId: string, seen: PartnerSeen): void {
    this.#waiting.set(partnerId, { ...this.#waiting.get(partnerId), ...seen });
    this.#writing ??= this.#write();
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
        this.#logger.debug({ partners, reason: (error as Error).message }, 'time of connection not recorded');
      }
    }
    this.#writing = undefined;
  }
}
