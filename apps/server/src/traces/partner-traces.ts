import { randomUUID } from 'node:crypto';

import type { ConnectIndication, Preconnection, ServerConnection } from '@pesit-node/net';
import { inOneLine, PesitError } from '@pesit-node/protocol';
import type { EventStream, Traces } from '@pesit-node/service';
import {
  SESSION_ENDED,
  SESSION_FAILED,
  SESSION_REFUSED,
  SESSION_REVOKED,
  SESSION_TOLERATED,
  TRANSFER_BEGAN,
  TRANSFER_ENDED,
  TRANSFER_REFUSED,
} from '@pesit-node/transfers';
import type { ObservedSession } from '@pesit-node/transfers';

import { revocationText } from '../admission/revocation.js';
import type { PartnerRow } from '../partners/fields.js';
import { addPreconnection, PartnerTracer } from './partner-tracer.js';

type Where = Readonly<Record<'listener' | 'remoteAddress', string>>;

/** The traces of the sessions of partners: the bytes from the connection, what happened beside them from the events. */
export class PartnerTraces {
  readonly #traces: Traces;
  readonly #tracers = new WeakMap<object, PartnerTracer>();

  constructor(traces: Traces, events: EventStream) {
    this.#traces = traces;
    const note = (session: object | undefined, text: string): void => {
      if (session !== undefined) this.#tracers.get(session)?.note(text);
    };
    events.subscribe(SESSION_TOLERATED, ({ session, text }) => {
      note(session, `tolerated: ${text}`);
    });
    events.subscribe(SESSION_FAILED, ({ session }) => {
      note(session, 'session failed because of an error in this node: the log has the reason');
    });
    events.subscribe(SESSION_REFUSED, ({ session, error }) => {
      if (error instanceof PesitError) note(session, `connection refused: ${inOneLine(error)}`);
    });
    events.subscribe(SESSION_REVOKED, ({ session, transfer, error }) => {
      note(session, `${revocationText(transfer)}: ${inOneLine(error)}`);
    });
    events.subscribe(SESSION_ENDED, ({ session, error }) => {
      this.#tracers.get(session)?.end(error === undefined ? 'released' : `connection ended: ${inOneLine(error)}`);
    });
    events.subscribe(TRANSFER_BEGAN, ({ session, transfer: { id } }) => {
      if (session !== undefined && typeof id === 'number') this.#tracers.get(session)?.transfer(id);
    });
    events.subscribe(TRANSFER_ENDED, ({ session, status, error }) => {
      if (error === undefined) return;
      note(session, `transfer ${status === 'CANCELLED' ? 'cancelled' : 'failed'}: ${inOneLine(error)}`);
    });
    events.subscribe(TRANSFER_REFUSED, ({ session, type, error }) => {
      if (!(error instanceof PesitError)) return;
      note(session, `${type === 'MESSAGE' ? 'message' : 'transfer'} refused: ${inOneLine(error)}`);
    });
  }

  /** A connection is there: its first bytes are kept until its partner is known. */
  begin(session: ObservedSession, connection: Pick<ServerConnection, 'id' | 'observe'>): void {
    this.#tracers.set(session, new PartnerTracer(this.#traces, connection));
  }

  /** The CONNECT names this partner, whether it is accepted or not. */
  named(session: ObservedSession, partner: PartnerRow, indication: ConnectIndication, where: Where): void {
    this.#tracers.get(session)?.named(partner, indication, where);
  }

  /** A pre-connection with the identifier of this partner had a wrong password: it came to no session. */
  preconnectionRefused(
    { partner_id: owner, trace_until: until }: PartnerRow,
    preconnection: Preconnection,
    where: Where,
  ): void {
    const recording = this.#traces.begin({ id: randomUUID(), owner, until, about: where });
    if (recording === undefined) return;
    addPreconnection(recording, preconnection, 'NAK0');
    recording.end('pre-connection refused: the password is wrong');
  }
}
