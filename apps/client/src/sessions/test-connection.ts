import { randomUUID } from 'node:crypto';

import { explain } from '@pesit-node/protocol';
import type { EventStream, SecretBox } from '@pesit-node/service';
import { errorCodeOf, negotiatedOf, tenths, testedTls, toPesitError } from '@pesit-node/transfers';
import type { TestFailed, TestSucceeded } from '@pesit-node/transfers';

import type { RemoteTls } from '../certificates/remote-tls.js';
import type { RemoteServerRow } from '../remote-servers/fields.js';
import { CONNECTION_TESTED, SERVER_NOT_REACHED, SERVER_REACHED } from '../exchange/events.js';
import { seenIn } from '../remote-servers/seen.js';
import type { ServerTraces } from '../traces/server-traces.js';
import type { Contacts } from './contacts.js';
import type { SessionPool } from './session-pool.js';
import { sessionTarget } from './session-target.js';
import type { ExchangeSettings } from '../exchange/settings.js';

export type TestResult = TestSucceeded | TestFailed;

export interface TestConnectionDeps {
  readonly settings: ExchangeSettings;
  readonly secrets: SecretBox;
  readonly tls: Pick<RemoteTls, 'connecting' | 'isRevoked'>;
  readonly pool: Pick<SessionPool, 'reserve' | 'giveBack'>;
  readonly contacts: Pick<Contacts, 'settled'>;
  readonly traces: Pick<ServerTraces, 'open'>;
  readonly events: EventStream;
}

/** Who asks waits so long for a session of another pod to end, milliseconds. */
const PLACE_MS = 5000;

/** Opens a session of its own with a remote server, whether it is enabled or not, and releases it. */
export const testConnection =
  ({ settings, secrets, tls, pool, contacts, traces, events }: TestConnectionDeps) =>
  async (server: RemoteServerRow): Promise<TestResult> => {
    const { id: serverId } = server;
    const sessionId = randomUUID();
    const observed = { id: sessionId, facts: { sessionId, server: server.name } };
    let began = performance.now();
    const latency = (): number => tenths(performance.now() - began);
    try {
      const target = sessionTarget(server, server.client_id, {}, { settings, secrets, tls });
      await pool.reserve(target, sessionId, PLACE_MS);
      began = performance.now();
      const session = await traces.open(observed, target);
      const answered = latency();
      const { terms, roundTripMs, advice = null } = session;
      const negotiated = negotiatedOf(terms);
      await session.release();
      events.publish(SERVER_REACHED, { serverId, negotiated, seen: seenIn(session.answer) });
      events.publish(CONNECTION_TESTED, { session: observed, latency: answered, error: undefined });
      await contacts.settled();
      return {
        success: true,
        latency: answered,
        serverVersion: terms.version,
        message: `${server.name} accepted a session of ${server.client_id} with ${server.server_id}`,
        negotiated,
        roundTrip: tenths(roundTripMs),
        advice,
        tls: testedTls(session.security),
      };
    } catch (thrown) {
      const error = toPesitError(thrown);
      // The server was not asked when there was no place for a session.
      if (error.condition !== 'no place') events.publish(SERVER_NOT_REACHED, { serverId, error });
      events.publish(CONNECTION_TESTED, { session: observed, latency: latency(), error });
      await contacts.settled();
      const { diagnostic } = error;
      const errorCode = errorCodeOf(error, 'connecting');
      return { success: false, latency: latency(), errorCode, diagnostic, message: explain(error) };
    } finally {
      await pool.giveBack(sessionId);
    }
  };
