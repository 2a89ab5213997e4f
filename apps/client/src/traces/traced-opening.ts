import { PesitRequester } from '@pesit-node/net';
import type { RequesterOptions } from '@pesit-node/net';
import { inOneLine, SessionTrace } from '@pesit-node/protocol';
import { SessionTracer } from '@pesit-node/service';
import type { SessionRecording, Traces } from '@pesit-node/service';
import { toPesitError } from '@pesit-node/transfers';

import type { SessionTarget } from '../sessions/session-target.js';

export interface TracedSession {
  readonly session: PesitRequester;
  /** Undefined: the server is not traced. */
  readonly tracer: SessionTracer | undefined;
}

/** An error as a trace says it. */
export const faultText = (what: string, thrown: unknown): string => `${what}: ${inOneLine(toPesitError(thrown))}`;

/** Opens a session, recorded from the attempt on when the server is traced. @throws PesitError as `PesitRequester.open` */
export const openTraced = async (
  traces: Traces,
  { serverId, traceUntil, options: optionsOf }: SessionTarget,
  id: string,
  more: Partial<RequesterOptions> = {},
): Promise<TracedSession> => {
  const options = { ...optionsOf(), ...more };
  const { host, port, dialect, connect } = options;
  const about = { address: `${host}:${port}`, requester: connect.requester, dialect };
  const recording = traces.begin({ id, owner: serverId, until: traceUntil, about });
  if (recording === undefined) return { session: await PesitRequester.open(options), tracer: undefined };
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
    return { session, tracer };
  } catch (error) {
    tracer.end(faultText('no session', error));
    throw error;
  }
};

const begin = (recording: SessionRecording, { host, port, preconnection }: RequesterOptions): void => {
  recording.note(`connecting to ${host}:${port}`);
  if (preconnection === undefined) return;
  const { identifier } = preconnection;
  recording.add(Date.now(), '-->', `pre-connection PESIT: identifier "${identifier}", password ********`);
};
