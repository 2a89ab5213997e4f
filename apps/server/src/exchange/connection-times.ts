import type { Logger } from '@pesit-node/service';

import type { PartnerStore } from '../partners/store.js';

/** Keeps `lastConnection` of partners: at once, but with one statement at a time, however many sessions come. */
export class ConnectionTimes {
  readonly #partners: PartnerStore;
  readonly #logger: Logger;
  readonly #waiting = new Set<string>();
  #writing: Promise<void> | undefined;

  constructor(partners: PartnerStore, logger: Logger) {
    this.#partners = partners;
    this.#logger = logger;
  }

  /** A session of the partner was accepted now. */
  add(partnerId: string): void {
    this.#waiting.add(partnerId);
    this.#writing ??= this.#write();
  }

  /** Resolves when all are written. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#waiting.size > 0) {
      const ids = [...this.#waiting];
      this.#waiting.clear();
      try {
        await this.#partners.connected(ids);
      } catch (error) {
        this.#logger.debug({ partners: ids, reason: (error as Error).message }, 'time of connection not recorded');
      }
    }
    this.#writing = undefined;
  }
}
