import type { ConnectIndication, Preconnection, ServerConnection } from '@pesit-node/net';
import { SessionTrace } from '@pesit-node/protocol';
import type { WireDirection } from '@pesit-node/protocol';
import { SessionTracer } from '@pesit-node/service';
import type { SessionRecording, Traces } from '@pesit-node/service';

import type { PartnerRow } from '../partners/fields.js';

/** Bytes before the partner is known: those of a CONNECT. */
const MAX_EARLY = 8192;
/** FPDUs that begin a transfer; it lasts until the next of these, or the end. */
const REQUESTS = ['CREATE ', 'SELECT ', 'MSG ', 'MSGDM '];
const ENDS = ['RELEASE ', 'ABORT '];

interface Early {
  readonly direction: WireDirection;
  readonly bytes: Buffer;
  readonly time: number;
}

type Where = Readonly<Record<'listener' | 'remoteAddress', string>>;

/**
 * The trace of one session. Whether there is one is known when the partner is, from its CONNECT: until then what passes is
 * kept; from then on a session without trace is no longer looked at.
 */
export class PartnerTracer {
  readonly #traces: Traces;
  readonly #connection: Pick<ServerConnection, 'id' | 'observe'>;
  #early: Early[] = [];
  #earlyBytes = 0;
  #tracer: SessionTracer | undefined;

  constructor(traces: Traces, connection: Pick<ServerConnection, 'id' | 'observe'>) {
    this.#traces = traces;
    this.#connection = connection;
    connection.observe((direction, bytes) => {
      this.#keep(direction, bytes);
    });
  }

  /** The CONNECT names this partner, whether it is accepted or not. */
  named({ partner_id: owner, trace_until: until }: PartnerRow, indication: ConnectIndication, where: Where): void {
    const { id } = this.#connection;
    const { dialect, preconnection } = indication;
    const early = this.#early;
    const recording =
      early.length === 0 ? undefined : this.#traces.begin({ id, owner, until, about: { ...where, dialect } });
    if (recording === undefined) {
      this.#leave();
      return;
    }
    if (preconnection !== undefined) addPreconnection(recording, preconnection, 'ACK0', early[0]?.time);
    const tracer = new SessionTracer({
      ...{ recording, requests: REQUESTS, ends: ENDS },
      decoder: new SessionTrace(dialect),
    });
    for (const { direction, bytes, time } of early) tracer.take(direction, bytes, time);
    this.#early = [];
    this.#tracer = tracer;
    this.#connection.observe((direction, bytes) => {
      tracer.take(direction, bytes);
    });
    recording.onStopped(() => {
      this.#leave();
    });
  }

  /** Records an event of this side, beside the FPDUs that pass. */
  note(text: string): void {
    this.#tracer?.note(text);
  }

  /** The request that came last has this record. */
  transfer(id: number): void {
    this.#tracer?.transfer(`${id}`);
  }

  end(outcome: string): void {
    this.#tracer?.end(outcome);
    this.#leave();
  }

  /** Nobody wants to know what passes. */
  #leave(): void {
    this.#early = [];
    this.#tracer = undefined;
    this.#connection.observe(undefined);
  }

  #keep(direction: WireDirection, bytes: Buffer): void {
    this.#earlyBytes += bytes.length;
    if (this.#earlyBytes > MAX_EARLY) this.#leave();
    else this.#early.push({ direction, bytes: Buffer.from(bytes), time: Date.now() });
  }
}

/** A pre-connection that was answered: the password is not in it. */
export const addPreconnection = (
  recording: SessionRecording,
  { marker, identifier }: Preconnection,
  answer: 'ACK0' | 'NAK0',
  time = Date.now(),
): void => {
  recording.add(time, '<--', `pre-connection ${marker}: identifier "${identifier}", password ********`);
  recording.add(time, '-->', answer);
};
