import type { PesitRequester } from '@pesit-node/net';
import { explain } from '@pesit-node/protocol';
import type { ConnectionTerms, PesitError, SingleArticleStyle } from '@pesit-node/protocol';
import { isDatabaseUnavailable } from '@pesit-node/service';
import type { Logger } from '@pesit-node/service';

import { seenIn } from '../remote-servers/seen.js';
import type { ServerSeen } from '../remote-servers/seen.js';
import type { ContactStatus, Negotiated } from '../remote-servers/fields.js';
import type { RemoteServerStore } from '../remote-servers/store.js';

/** A status that did not change is written again after this long, for `lastContact`. */
const REPEAT_MS = 10_000;

/** Terms as the interface shows them. */
export const negotiatedOf = (terms: ConnectionTerms): Negotiated => {
  const { dialect, version, syncInterval, syncWindow, accessType, crc, resynchronisation: resync } = terms;
  return { dialect, version, syncInterval: syncInterval / 1024, syncWindow, accessType, crc, resync };
};

/** Keeps the `status` of remote servers after each contact, without a statement for each. */
export class Contacts {
  readonly #store: Pick<RemoteServerStore, 'contacted' | 'learned' | 'saw'>;
  readonly #logger: Logger;
  readonly #last = new Map<number, { readonly said: string; readonly at: number }>();
  readonly #entities = new Map<number, number>();
  readonly #writing = new Set<Promise<void>>();

  constructor(store: Pick<RemoteServerStore, 'contacted' | 'learned' | 'saw'>, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  /** The server accepted a session. */
  reached(serverId: number, { terms, answer }: Pick<PesitRequester, 'terms' | 'answer'>): void {
    this.#note(serverId, 'CONNECTED', null, negotiatedOf(terms), seenIn(answer));
  }

  /** PI 25 as the server answered to a file. */
  entity(serverId: number, maxEntitySize: number): void {
    if (this.#entities.get(serverId) === maxEntitySize) return;
    this.#entities.set(serverId, maxEntitySize);
    this.#write(serverId, this.#store.saw(serverId, { maxEntitySize }));
  }

  /** How the server writes single articles. */
  learned(serverId: number, style: SingleArticleStyle): void {
    if (style !== 'unknown') this.#write(serverId, this.#store.learned(serverId, style));
  }

  /** The server refused a session, or could not be reached. */
  failed(serverId: number, error: PesitError): void {
    this.#note(serverId, error.fault === 'refused' ? 'REFUSED' : 'UNREACHABLE', explain(error));
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
