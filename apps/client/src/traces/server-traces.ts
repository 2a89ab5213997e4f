import { PesitRequester } from '@pesit-node/net';
import type { RequesterOptions } from '@pesit-node/net';
import { inOneLine, SessionTrace } from '@pesit-node/protocol';
import { SessionTracer } from '@pesit-node/service';
import type { EventStream, SessionRecording, Traces } from '@pesit-node/service';
import { SESSION_ENDED, toPesitError } from '@pesit-node/transfers';
import type { ObservedSession } from '@pesit-node/transfers';

import { CONNECTION_TESTED, SESSION_GIVEN_BACK, SESSION_TAKEN } from '../exchange/events.js';
import type { SessionTarget } from '../sessions/session-target.js';

const faultText = (what: string, thrown: unknown): string => `${what}: ${inOneLine(toPesitError(thrown))}`;

/** The traces of sessions with remote servers: bytes and deviations from the connection, the rest from the events. */
export class ServerTraces {
  readonly #traces: Traces;
  readonly #tracers = new WeakMap<ObservedSession, SessionTracer>();

  constructor(traces: Traces, events: EventStream) {
    this.#traces = traces;
    events.subscribe(SESSION_TAKEN, ({ session, transfer }) => {
      this.#tracers.get(session)?.transfer(transfer);
    });
    events.subscribe(SESSION_GIVEN_BACK, ({ session, error }) => {
      const tracer = this.#tracers.get(session);
      if (error !== undefined) tracer?.note(faultText('transfer failed', error));
      tracer?.transfer(undefined);
    });
    events.subscribe(SESSION_ENDED, ({ session, error }) => {
      this.#tracers.get(session)?.end(error === undefined ? 'released' : 'the session was over');
    });
    events.subscribe(CONNECTION_TESTED, ({ session, error }) => {
      if (error === undefined) this.#tracers.get(session)?.end('released');
    });
  }

  /** Opens a session, recorded from the attempt on when the server is traced. @throws PesitError as `PesitRequester.open` */
  async open(
    observed: ObservedSession,
    { serverId, traceUntil, options: optionsOf }: SessionTarget,
    more: Partial<RequesterOptions> = {},
  ): Promise<PesitRequester> {
    const options = { ...optionsOf(), ...more };
    const { host, port, dialect, connect } = options;
    const about = { address: `${host}:${port}`, requester: connect.requester, dialect };
    const recording = this.#traces.begin({ id: observed.id, owner: serverId, until: traceUntil, about });
    if (recording === undefined) return PesitRequester.open(options);
    const tracer = new SessionTracer({ recording, decoder: new SessionTrace(dialect) });
    try {
      begin(recording, options);
      const session = await PesitRequester.open({
        ...options,
        observer: (direction, bytes) => {
          tracer.take(direction, bytes);
        },
        notice: (text) => {
          tracer.note(`tolerated: ${text}`);
          options.notice?.(text);
        },
      });
      recording.onStopped(() => {
        session.observe(undefined);
      });
      this.#tracers.set(observed, tracer);
      return session;
    } catch (error) {
      tracer.end(faultText('no session', error));
      throw error;
    }
  }

  /** Whether the recording of the session has ended before the session: its trace was switched off. */
  isCutOff(session: ObservedSession): boolean {
    return this.#tracers.get(session)?.isOver === true;
  }
}

const begin = (recording: SessionRecording, { host, port, preconnection }: RequesterOptions): void => {
  recording.note(`connecting to ${host}:${port}`);
  if (preconnection === undefined) return;
  const { identifier } = preconnection;
  recording.add(Date.now(), '-->', `pre-connection PESIT: identifier "${identifier}", password ********`);
};
