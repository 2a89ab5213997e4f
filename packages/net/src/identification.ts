/** From a new connection to a known dialect: reads the first bytes, answers pre-connections, and says why when it is nothing. */
import type { Dialect } from '@pesit-node/protocol';
import { PesitError, inOneLine } from '@pesit-node/protocol';
import { detect } from './detection.js';
import { asPesitError } from './errors.js';
import { nameOf } from './first-bytes.js';
import type { Preconnection } from './handler.js';
import type { Transport } from './transport.js';

export interface IdentificationOptions {
  readonly tcpipHeader: 'auto' | Dialect;
  /** Tc: milliseconds for everything up to the first bytes of CONNECT. */
  readonly timeout: number;
  /** Resolves: ACK0. Rejects with a `PesitError`: NAK0; with anything else: the connection is closed without a word. */
  readonly preconnect: (preconnection: Preconnection) => Promise<void>;
}

export interface Identified {
  readonly dialect: Dialect;
  readonly preconnection: Preconnection | undefined;
  /** Bytes already read of the session. */
  readonly received: Buffer;
}

export interface IdentificationResult {
  /** Called at once with the dialect: from its return on nobody but the callee reads the transport. */
  readonly identified: (identified: Identified) => void;
  /** Not a partner; `last` are bytes to send before the connection is closed, `error` why its pre-connection was refused. */
  readonly rejected: (reason: string, last?: Buffer, error?: PesitError) => void;
}

/** Calls one of `result` once, or none when the partner closed without having sent anything. */
export const identify = (transport: Transport, options: IdentificationOptions, result: IdentificationResult): void => {
  let received: Buffer = Buffer.alloc(0);
  let preconnection: Preconnection | undefined;
  let asking = false;
  let over = false;

  const finish = (deliver: () => void): void => {
    if (over) return;
    over = true;
    clearTimeout(timer);
    deliver();
  };
  const reject = (reason: string, last?: Buffer, error?: PesitError): void => {
    finish(() => {
      result.rejected(reason, last, error);
    });
  };

  const advance = (): void => {
    while (!over && !asking) {
      const detection = detect(received);
      switch (detection.kind) {
        case 'more':
          return;
        case 'connect': {
          const { dialect } = detection;
          if (options.tcpipHeader === 'auto' || options.tcpipHeader === dialect) {
            finish(() => {
              result.identified({ dialect, preconnection, received });
            });
          } else {
            const asked = `tcpipHeader asks for ${options.tcpipHeader}`;
            reject(`the partner speaks ${dialect}, ${asked}; first bytes ${firstBytes(received)}`);
          }
          return;
        }
        case 'preconnection':
          if (preconnection !== undefined) {
            reject('a second pre-connection came where CONNECT was expected');
            return;
          }
          preconnection = detection.preconnection;
          received = received.subarray(detection.length);
          void ask(preconnection, detection.ack, detection.nak);
          return;
        case 'tls':
          reject(
            'the partner speaks TLS, this port does not: use the TLS port, or switch TLS off on the other side; ' +
              `first bytes ${firstBytes(received)}`,
          );
          return;
        case 'unknown':
          reject(`${nameOf(received)}; first bytes ${firstBytes(received)}`);
          return;
      }
    }
  };

  const ask = async (who: Preconnection, ack: Buffer, nak: Buffer): Promise<void> => {
    asking = true;
    // Bytes that the partner sends meanwhile stay with the system, which bounds them.
    transport.pause();
    try {
      await options.preconnect(who);
    } catch (error) {
      const failure = asPesitError(error, '3-399');
      const refused = `pre-connection of ${JSON.stringify(who.identifier)} refused (NAK0)`;
      if (error instanceof PesitError) reject(`${refused}, ${inOneLine(failure)}`, nak, error);
      else reject(failure.message);
      return;
    }
    if (over || transport.destroyed) return;
    asking = false;
    transport.write([ack]);
    transport.resume();
    advance();
  };

  const take = (bytes: Buffer): void => {
    if (over) return;
    received = received.length === 0 ? bytes : Buffer.concat([received, bytes]);
    advance();
  };
  const lost = (): void => {
    finish(() => {
      if (received.length > 0) result.rejected(`closed before CONNECT; received ${firstBytes(received)}`);
      else if (preconnection !== undefined) result.rejected('closed between pre-connection and CONNECT');
    });
  };
  const timer = setTimeout(() => {
    const got = received.length === 0 ? 'nothing' : firstBytes(received);
    reject(`no CONNECT within ${options.timeout} ms; received ${got}`);
  }, options.timeout);

  transport.attach({ received: take, ended: lost, closed: lost });
  transport.resume();
};

const firstBytes = (bytes: Buffer): string => bytes.subarray(0, 16).toString('hex');
