/** What comes before CONNECT on a requester's side: the TCP connection and, where asked for, the pre-connection. */
import type { Socket } from 'node:net';
import { PesitError } from '@pesit-node/protocol';
import type { Dialect } from '@pesit-node/protocol';
import { decodePreconnectionAnswer, encodePreconnection } from './detection.js';
import { asPesitError } from './errors.js';

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
  return new Promise((resolve, reject) => {
    if (opening.signal?.aborted === true) {
      reject(asPesitError(opening.signal.reason, '2-216'));
      return;
    }
    const socket = start();
    const settle = (error: PesitError | undefined): void => {
      clearTimeout(timer);
      opening.signal?.removeEventListener('abort', cancel);
      socket.removeAllListeners('connect');
      if (error === undefined) {
        socket.off('error', failed);
        resolve(socket);
      } else {
        socket.destroy();
        reject(error);
      }
    };
    const failed = (error: NodeJS.ErrnoException): void => {
      const hint = HINTS[error.code ?? ''] ?? error.message;
      settle(
        new PesitError(`no connection to ${where}: ${hint}`, { fault: 'transport', diagnostic: '3-310', cause: error }),
      );
    };
    const cancel = (): void => {
      settle(asPesitError(opening.signal?.reason, '2-216'));
    };
    const timer = setTimeout(() => {
      const text = `no connection to ${where} within ${opening.connectTimeout} ms: check host, port and firewalls`;
      settle(new PesitError(text, { fault: 'timeout', diagnostic: '3-317' }));
    }, opening.connectTimeout);
    socket.on('error', failed);
    socket.once('connect', () => {
      settle(undefined);
    });
    opening.signal?.addEventListener('abort', cancel, { once: true });
  });
}

/** Sends the 24 bytes and waits for ACK0 (§3.8.2). @throws PesitError 3-304 on NAK0, 3-317 on silence, 3-311 on anything else */
export function preconnect(
  socket: Socket,
  who: { identifier: string; password: string },
  opening: Opening,
): Promise<void> {
  const entity = encodePreconnection(who.identifier, who.password);
  const prefixed = opening.dialect === 'length-prefixed';
  const prefix = prefixed ? Buffer.from([entity.length >>> 8, entity.length & 0xff]) : Buffer.alloc(0);
  const expected = prefix.length + 4;
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0);
    const settle = (error: PesitError | undefined): void => {
      clearTimeout(timer);
      socket.off('readable', read);
      socket.off('error', lost);
      socket.off('end', lost);
      if (error === undefined) {
        resolve();
      } else {
        socket.on('error', () => undefined);
        socket.destroy();
        reject(error);
      }
    };
    const read = (): void => {
      // Never beyond the answer: what follows belongs to the session.
      const bytes = socket.read(Math.min(expected - received.length, socket.readableLength || 1)) as Buffer | null;
      if (bytes === null) return;
      received = Buffer.concat([received, bytes]);
      if (received.length < expected) {
        read();
        return;
      }
      const answer = decodePreconnectionAnswer(received.subarray(prefix.length));
      if (answer === true) settle(undefined);
      else if (answer === false) settle(refused());
      else settle(notAnAnswer(received));
    };
    const lost = (cause?: unknown): void => {
      settle(
        new PesitError('the partner closed the connection after the pre-connection', {
          fault: 'transport',
          diagnostic: '3-310',
          cause,
        }),
      );
    };
    const timer = setTimeout(() => {
      settle(
        new PesitError(`no answer to the pre-connection within ${opening.connectTimeout} ms`, {
          fault: 'timeout',
          diagnostic: '3-317',
        }),
      );
    }, opening.connectTimeout);
    socket.on('readable', read);
    socket.on('error', lost);
    socket.on('end', lost);
    socket.write(Buffer.concat([prefix, entity]));
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
