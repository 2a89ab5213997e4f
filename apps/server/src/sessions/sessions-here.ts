import type { ServerConnection } from '@pesit-node/net';
import type { PesitError } from '@pesit-node/protocol';
import type { EventStream } from '@pesit-node/service';
import { SESSION_ENDED, SESSION_OPENED, TRANSFER_BEGAN, TRANSFER_ENDED } from '@pesit-node/transfers';
import type { ObservedSession, ObservedTransfer } from '@pesit-node/transfers';

import type { SessionView } from './schema.js';

interface Here {
  readonly listener: string;
  readonly connection: ServerConnection;
  readonly observed: ObservedSession;
  readonly since: Date;
  /** As the session was opened with it; undefined: its partner is not known yet. */
  dialect: string | undefined;
  isOpened: boolean;
  transfer: ObservedTransfer | undefined;
}

/** The connections of partners to this process, and what runs in them. */
export class SessionsHere {
  readonly #sessions = new Map<ObservedSession, Here>();
  readonly #pod: string;

  /** @param pod name of this one */
  constructor(events: EventStream, pod: string) {
    this.#pod = pod;
    events.subscribe(SESSION_OPENED, ({ session, facts }) => {
      const here = this.#sessions.get(session);
      if (here === undefined) return;
      here.isOpened = true;
      here.dialect = typeof facts['dialect'] === 'string' ? facts['dialect'] : undefined;
    });
    events.subscribe(TRANSFER_BEGAN, ({ session, transfer }) => {
      const here = session && this.#sessions.get(session);
      if (here !== undefined && transfer.type === 'FILE') here.transfer = transfer;
    });
    events.subscribe(TRANSFER_ENDED, ({ session, transfer }) => {
      const here = session && this.#sessions.get(session);
      if (here?.transfer === transfer) here.transfer = undefined;
    });
    events.subscribe(SESSION_ENDED, ({ session }) => {
      this.#sessions.delete(session);
    });
  }

  /** A connection begins; it is forgotten when it ends. */
  begin(observed: ObservedSession, connection: ServerConnection, listener: string): void {
    const unknown = { dialect: undefined, isOpened: false, transfer: undefined };
    this.#sessions.set(observed, { listener, connection, observed, since: new Date(), ...unknown });
  }

  /** Those of a listener, oldest first. */
  list(listener: string): readonly SessionView[] {
    return [...this.#sessions.values()].filter((here) => here.listener === listener).map((here) => this.#view(here));
  }

  /** Ends a session of the listener, whatever runs in it (ABORT). @returns whether it is here */
  end(listener: string, id: string, reason: PesitError): boolean {
    const found = [...this.#sessions.values()].find((here) => here.listener === listener && here.observed.id === id);
    found?.connection.abort(reason);
    return found !== undefined;
  }

  /** Ends all sessions of a listener. @returns how many there were */
  endAll(listener: string, reason: PesitError): number {
    const found = [...this.#sessions.values()].filter((here) => here.listener === listener);
    for (const { connection } of found) connection.abort(reason);
    return found.length;
  }

  #view({ connection, observed, since, dialect, isOpened, transfer }: Here): SessionView {
    const { security, remoteAddress } = connection;
    const partner = observed.facts['partner'];
    const figures = transfer?.progress();
    return {
      id: observed.id,
      partnerId: typeof partner === 'string' ? partner : null,
      remoteAddress,
      dialect: dialect ?? null,
      tls:
        security === undefined
          ? null
          : {
              protocol: security.protocol,
              cipher: security.cipher,
              subject: security.peerCertificate?.subject ?? null,
            },
      state: transfer !== undefined ? 'TRANSFERRING' : isOpened ? 'IDLE' : 'CONNECTING',
      transfer:
        transfer === undefined
          ? null
          : {
              id: Number(transfer.id),
              direction: transfer.direction,
              filename: transfer.name ?? null,
              bytesTransferred: figures?.dataBytes ?? 0,
              syncPoint: figures?.syncPoint ?? 0,
            },
      since: since.toISOString(),
      pod: this.#pod,
    };
  }
}
