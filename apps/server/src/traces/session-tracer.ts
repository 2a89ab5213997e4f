import type { ConnectIndication, Preconnection, ServerConnection } from '@pesit-node/net';
import { SessionTrace } from '@pesit-node/protocol';
import type { TraceLine, WireDirection } from '@pesit-node/protocol';
import type { SessionRecording, TraceMark, Traces } from '@pesit-node/service';

import type { PartnerRow } from '../partners/store.js';

/** Bytes before the partner is known: those of a CONNECT. */
const MAX_EARLY = 8192;
const MARKS: Readonly<Record<WireDirection, TraceMark>> = { received: '<--', sent: '-->' };
/** What a transfer begins with; it lasts until the next of these, or the end. */
const REQUESTS = ['CREATE ', 'SELECT ', 'MSG ', 'MSGDM '];
const ENDS = [...REQUESTS, 'RELEASE ', 'ABORT '];

interface Early {
  readonly direction: WireDirection;
  readonly bytes: Buffer;
  readonly time: number;
}

type Where = Readonly<Record<'listener' | 'remoteAddress', string>>;

/**
 * The trace of one session. Whether there is one is known when the partner is, from its CONNECT: until then what passes is
 * kept; from then on a session without trace is not looked at any more.
 */
export class SessionTracer {
  readonly #traces: Traces;
  readonly #connection: Pick<ServerConnection, 'id' | 'observe'>;
  #early: Early[] = [];
  #earlyBytes = 0;
  #session: SessionTrace | undefined;
  #recording: SessionRecording | undefined;

  constructor(traces: Traces, connection: Pick<ServerConnection, 'id' | 'observe'>) {
    this.#traces = traces;
    this.#connection = connection;
    connection.observe((direction, bytes) => {
      this.#take(direction, bytes, Date.now());
    });
  }

  /** The CONNECT names this partner, whether it is accepted or not. */
  named({ partner_id: owner, trace_until: until }: PartnerRow, indication: ConnectIndication, where: Where): void {
    const { id } = this.#connection;
    const { dialect, preconnection } = indication;
    const early = this.#early;
    if (early.length > 0) this.#recording = this.#traces.begin({ id, owner, until, about: { ...where, dialect } });
    if (this.#recording === undefined) {
      this.leave();
      return;
    }
    this.#early = [];
    this.#recording.onStopped(() => {
      this.leave();
    });
    if (preconnection !== undefined) addPreconnection(this.#recording, preconnection, 'ACK0', early[0]?.time);
    this.#session = new SessionTrace(dialect);
    for (const { direction, bytes, time } of early) this.#take(direction, bytes, time);
  }

  /** Nobody wants to know what passes. */
  leave(): void {
    this.#early = [];
    this.#session = undefined;
    this.#connection.observe(undefined);
  }

  /** What happened here, beside what passes. */
  note(text: string): void {
    this.#recording?.note(text);
  }

  /** The request that came last has this record. */
  transfer(id: number): void {
    this.#recording?.transfer(`${id}`, REQUESTS);
  }

  end(outcome: string): void {
    const recording = this.#recording;
    for (const line of this.#session?.end() ?? []) this.#add(line);
    recording?.end(outcome);
    this.leave();
  }

  #take(direction: WireDirection, bytes: Buffer, time: number): void {
    if (this.#session !== undefined) {
      for (const line of this.#session.take(direction, bytes, time)) this.#add(line);
      return;
    }
    this.#earlyBytes += bytes.length;
    if (this.#earlyBytes > MAX_EARLY) this.leave();
    else this.#early.push({ direction, bytes: Buffer.from(bytes), time });
  }

  #add({ time, direction, text }: TraceLine): void {
    if (ENDS.some((name) => text.startsWith(name))) this.#recording?.transfer(undefined);
    this.#recording?.add(time, MARKS[direction], text);
  }
}

/** A pre-connection that was answered: the password is not in it. */
export const addPreconnection = (
  recording: SessionRecording,
  { marker, identifier }: Preconnection,
  answer: 'ACK0' | 'NAK0',
  time = Date.now(),
): void => {
  recording.add(time, MARKS.received, `pre-connection ${marker}: identifier "${identifier}", password ********`);
  recording.add(time, MARKS.sent, answer);
};
