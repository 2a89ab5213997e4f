/** Steps before CONNECT on a requester's side: the connection and, where asked for, the pre-connection. */
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import { decodePreconnectionAnswer, encodePreconnection } from './detection.js';
import { asPesitError, cancellation, tlsFailure } from './errors.js';
import { TlsError } from './tls-failures.js';
import { TransportError } from './transport.js';
import type { Connect, Connected, Transport } from './transport.js';

interface Opening {
  readonly host: string;
  readonly port: number;
  readonly dialect: Dialect;
  readonly connectTimeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * @throws PesitError fault `transport`, `timeout` after `connectTimeout`, or `local` where host or port cannot be
 */
export const openTransport = (connect: Connect, opening: Opening): Promise<Connected> => {
  const { host, port } = opening;
  const where = `${host}:${port}`;
  return within(opening, `no connection to ${where}`, 'check host, port and firewalls', (resolve, reject) => {
    const unwanted = new AbortController();
    connect({ host, port, signal: unwanted.signal }).then(resolve, (error: unknown) => {
      if (!(error instanceof TransportError)) {
        reject(asPesitError(error, '3-310'));
        return;
      }
      if (error instanceof TlsError) {
        reject(tlsFailure(`no TLS connection to ${where}`, error));
        return;
      }
      const text = `no connection to ${where}: ${error.message}`;
      reject(new PesitError(text, { fault: 'transport', diagnostic: '3-310', cause: error.cause }));
    });
    return (failed) => {
      if (failed) unwanted.abort();
    };
  });
};

/** Sends the 24 bytes and waits for ACK0 (§3.8.2). @throws PesitError 3-304 on NAK0, 3-317 on silence, 3-311 on anything else */
export const preconnect = (
  transport: Transport,
  who: { identifier: string; password: string },
  opening: Opening,
): Promise<void> => {
  const text = encodePreconnection(who.identifier, who.password);
  const prefixed = opening.dialect === 'length-prefixed';
  const entity = prefixed ? Buffer.concat([Buffer.from([0, text.length]), text]) : text;
  const prefix = prefixed ? 2 : 0;
  const expected = prefix + 4;
  const hint = 'check that the partner expects one, and its dialect';
  return within(opening, 'no answer to the pre-connection', hint, (resolve, reject) => {
    let answer: Buffer = Buffer.alloc(0);
    const received = (bytes: Buffer): void => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length < expected) return;
      const outcome = decodePreconnectionAnswer(answer.subarray(prefix));
      if (outcome === false) reject(refused());
      else if (outcome !== true || (prefixed && answer.readUInt16BE(0) !== 4)) reject(notAnAnswer(answer));
      else resolve();
    };
    const ended = (cause?: unknown): void => {
      const closed = 'the partner closed the connection after the pre-connection';
      reject(new PesitError(closed, { fault: 'transport', diagnostic: '3-310', cause }));
    };
    transport.attach({ received, ended, closed: ended });
    transport.resume();
    transport.write([entity]);
    return (failed) => {
      if (failed) transport.destroy();
      else {
        // Bytes behind the answer belong to the session, which reads in a moment.
        transport.pause();
        if (answer.length > expected) transport.unread(answer.subarray(expected));
      }
    };
  });
};

/** Runs `start` until it settles, the signal is aborted or the time is over; what `start` returned then cleans up. */
const within = <T>(
  opening: Opening,
  failure: string,
  hint: string,
  start: (resolve: (value: T) => void, reject: (error: PesitError) => void) => (failed: boolean) => void,
): Promise<T> => {
  const { signal, connectTimeout } = opening;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(cancellation(signal));
      return;
    }
    let settled = false;
    const settle = (failed: boolean, deliver: () => void): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      signal?.removeEventListener('abort', cancel);
      cleanUp(failed);
      deliver();
    };
    const fail = (error: PesitError): void => {
      settle(true, () => {
        reject(error);
      });
    };
    const cancel = (): void => {
      if (signal !== undefined) fail(cancellation(signal));
    };
    const cleanUp = start((value) => {
      settle(false, () => {
        resolve(value);
      });
    }, fail);
    const timer = setTimeout(() => {
      const text = `${failure} within ${connectTimeout} ms: ${hint}`;
      fail(new PesitError(text, { fault: 'timeout', diagnostic: '3-317' }));
    }, connectTimeout);
    signal?.addEventListener('abort', cancel, { once: true });
  });
};

const refused = (): PesitError =>
  new PesitError('the partner refused the pre-connection (NAK0): check preconnectId and preconnectPassword', {
    fault: 'refused',
    diagnostic: '3-304',
  });

const notAnAnswer = (received: Buffer): PesitError =>
  new PesitError('the answer to the pre-connection is neither ACK0 nor NAK0: check the dialect of the remote server', {
    fault: 'remote',
    diagnostic: '3-311',
    expected: 'ACK0 or NAK0 in EBCDIC',
    got: received.toString('hex'),
  });
