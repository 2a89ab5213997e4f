import { explain } from '@pesit-node/protocol';
import { isDatabaseUnavailable } from '@pesit-node/service';
import type { EventStream, Logger } from '@pesit-node/service';
import type { Negotiated } from '@pesit-node/transfers';

import { SERVER_NOT_REACHED, SERVER_REACHED, SERVER_SEEN } from '../exchange/events.js';
import type { ServerSeen } from '../remote-servers/seen.js';
import type { ContactStatus } from '../remote-servers/fields.js';
import type { RemoteServerStore } from '../remote-servers/store.js';

/** A status that did not change is written again after this long, for `lastContact`. */
const REPEAT_MS = 10_000;

/** Keeps the `status` of remote servers after each contact, and what they have shown, without a statement for each. */
export class Contacts {
  readonly #store: Pick<RemoteServerStore, 'contacted' | 'learned' | 'saw'>;
  readonly #logger: Logger;
  readonly #last = new Map<number, { readonly said: string; readonly at: number }>();
  readonly #entities = new Map<number, number>();
  readonly #writing = new Set<Promise<void>>();

  constructor(events: EventStream, store: Pick<RemoteServerStore, 'contacted' | 'learned' | 'saw'>, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
    events.subscribe(SERVER_REACHED, ({ serverId, negotiated, seen }) => {
      this.#note(serverId, 'CONNECTED', null, negotiated, seen);
    });
    events.subscribe(SERVER_NOT_REACHED, ({ serverId, error }) => {
      this.#note(serverId, error.fault === 'refused' ? 'REFUSED' : 'UNREACHABLE', explain(error));
    });
    events.subscribe(SERVER_SEEN, ({ serverId, maxEntitySize, singleArticle }) => {
      if (maxEntitySize !== undefined) this.#sawEntity(serverId, maxEntitySize);
      if (singleArticle !== undefined && singleArticle !== 'unknown') {
        this.#write(serverId, store.learned(serverId, singleArticle));
      }
    });
  }

  /** Forgets what was written: the server was changed or removed. */
  forget(serverId: number): void {
    this.#last.delete(serverId);
    this.#entities.delete(serverId);
  }

  /** Resolves when everything noted so far is written. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #sawEntity(serverId: number, maxEntitySize: number): void {
    if (this.#entities.get(serverId) === maxEntitySize) return;
    this.#entities.set(serverId, maxEntitySize);
    this.#write(serverId, this.#store.saw(serverId, { maxEntitySize }));
  }

  #note(
    serverId: number,
    status: ContactStatus,
    reason: string | null,
    negotiated?: Negotiated,
    seen?: ServerSeen,
  ): void {
    const last = this.#last.get(serverId);
    const said = JSON.stringify([status, reason, negotiated, seen]);
    const at = performance.now();
    if (last?.said === said && at - last.at < REPEAT_MS) return;
    this.#last.set(serverId, { said, at });
    this.#write(serverId, this.#store.contacted(serverId, status, reason, negotiated, seen));
  }

  #write(serverId: number, statement: Promise<void>): void {
    const writing = statement
      .catch((error: unknown) => {
        this.#last.delete(serverId);
        if (!isDatabaseUnavailable(error))
          this.#logger.error(
            { err: error, serverRow: serverId },
            'could not store the status of the remote server: trying again at the next contact',
          );
      })
      .finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }
}
