import type { PesitError } from '@pesit-node/protocol';
import { isDatabaseUnavailable } from '@pesit-node/service';
import type { Logger } from '@pesit-node/service';

import type { ContactStatus, RemoteServerStore } from '../remote-servers/store.js';
import { explain } from './outcome.js';

/** A status that did not change is written again after this long, for `lastContact`. */
const REPEAT_MS = 10_000;

/** Keeps the `status` of remote servers after each contact, without a statement for each. */
export class Contacts {
  readonly #store: Pick<RemoteServerStore, 'contacted'>;
  readonly #logger: Logger;
  readonly #last = new Map<
    number,
    { readonly status: ContactStatus; readonly reason: string | null; readonly at: number }
  >();
  readonly #writing = new Set<Promise<void>>();

  constructor(store: Pick<RemoteServerStore, 'contacted'>, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** The server accepted a session. */
  reached(serverId: number): void {
    this.#note(serverId, 'CONNECTED', null);
  }

  /** The server refused a session, or could not be reached. */
  failed(serverId: number, error: PesitError): void {
    this.#note(serverId, error.fault === 'refused' ? 'REFUSED' : 'UNREACHABLE', explain(error));
  }

  /** Forgets what was written: the server was changed or removed. */
  forget(serverId: number): void {
    this.#last.delete(serverId);
  }

  /** Resolves when everything noted so far is written. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #note(serverId: number, status: ContactStatus, reason: string | null): void {
    const last = this.#last.get(serverId);
    const at = performance.now();
    if (last?.status === status && last.reason === reason && at - last.at < REPEAT_MS) return;
    this.#last.set(serverId, { status, reason, at });
    const writing = this.#store
      .contacted(serverId, status, reason)
      .catch((error: unknown) => {
        this.#last.delete(serverId);
        if (!isDatabaseUnavailable(error))
          this.#logger.error({ err: error, serverRow: serverId }, 'status not written');
      })
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }
}
