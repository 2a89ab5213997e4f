/** What comes before CONNECT on a requester's side: the TCP connection and, where asked for, the pre-connection. */
import type { Socket } from 'node:net';
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import { decodePreconnectionAnswer, encodePreconnection } from './detection.js';
import { asPesitError, cancellation } from './errors.js';

interface Opening {
  readonly host: string;
  readonly port: number;
  readonly dialect: Dialect;
  readonly connectTimeout: number;
  readonly signal?: AbortSignal | undefined;
}

const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there: check host, port and that the partner is started',
  ENOTFOUND: 'the host name is unknown: check it and the DNS',
  EAI_AGAIN: 'the DNS does not answer',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  ECONNRESET: 'the partner closed at once: its TLS or framing may differ',
};

/** @throws PesitError fault `transport`, or `timeout` after `connectTimeout` */
export function openSocket(start: () => Socket, opening: Opening): Promise<Socket> {
  const where = `${opening.host}:${opening.port}`;
  return within(opening, `no connection to ${where}`, 'check host, port and firewalls', (resolve, reject) => {
    const socket = start();
    const connected = (): void => {
      resolve(socket);
    };
    // Stays for the life of the socket: an error at any time must not end the process.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const hint = HINTS[error.code ?? ''] ?? error.message;
      const text = `no connection to ${where}: ${hint}`;
      reject(new PesitError(text, { fault: 'transport', diagnostic: '3-310', cause: error }));
    });
    socket.once('connect', connected);
    return (failed) => {
      socket.off('connect', connected);
      if (failed) socket.destroy();
    };
  });
}

/** Sends the 24 bytes and waits for ACK0 (§3.8.2). @throws PesitError 3-304 on NAK0, 3-317 on silence, 3-311 on anything else */
export function preconnect(
  socket: Socket,
  who: { identifier: string; password: string },
  opening: Opening,
): Promise<void> {
  const text = encodePreconnection(who.identifier, who.password);
  const prefixed = opening.dialect === 'length-prefixed';
  const entity = prefixed ? Buffer.concat([Buffer.from([0, text.length]), text]) : text;
  const prefix = prefixed ? 2 : 0;
  const expected = prefix + 4;
  const hint = 'check that the partner expects one, and its dialect';
  return within(opening, 'no answer to the pre-connection', hint, (resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    const take = (bytes: Buffer): void => {
      received = Buffer.concat([received, bytes]);
      if (received.length < expected) return;
      const answer = decodePreconnectionAnswer(received.subarray(prefix));
      if (answer === false) reject(refused());
      else if (answer !== true || (prefixed && received.readUInt16BE(0) !== 4)) reject(notAnAnswer(received));
      else resolve();
    };
    const lost = (cause?: unknown): void => {
      const closed = 'the partner closed the connection after the pre-connection';
      reject(new PesitError(closed, { fault: 'transport', diagnostic: '3-310', cause }));
    };
    socket.on('data', take);
    socket.on('error', lost);
    socket.on('end', lost);
    socket.write(entity);
    return (failed) => {
      socket.off('data', take);
      socket.off('error', lost);
      socket.off('end', lost);
      if (failed) socket.destroy();
      else {
        // What follows the answer belongs to the session, which listens in a moment.
        socket.pause();
        if (received.length > expected) socket.unshift(received.subarray(expected));
      }
    };
  });
}

/** Runs `start` until it settles, the signal is aborted or the time is over; what `start` returned then cleans up. */
function within<T>(
  opening: Opening,
  failure: string,
  hint: string,
  start: (resolve: (value: T) => void, reject: (error: PesitError) => void) => (failed: boolean) => void,
): Promise<T> {
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
    let cleanUp: (failed: boolean) => void;
    try {
      cleanUp = start((value) => {
        settle(false, () => {
          resolve(value);
        });
      }, fail);
    } catch (error) {
      // A port or host that cannot be: nothing was started.
      reject(asPesitError(error, '3-310'));
      return;
    }
    const timer = setTimeout(() => {
      const text = `${failure} within ${connectTimeout} ms: ${hint}`;
      fail(new PesitError(text, { fault: 'timeout', diagnostic: '3-317' }));
    }, connectTimeout);
    signal?.addEventListener('abort', cancel, { once: true });
  });
}

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
