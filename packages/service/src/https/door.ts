import { TLSSocket } from 'node:tls';
import type { SecureContext } from 'node:tls';
import type { Socket } from 'node:net';

import { reasonOf } from '@pesit-node/ground';

import { LogBudget } from '../log-budget.js';
import type { Logger } from '../logging.js';
import { httpsRequired } from './wrong-door.js';

export interface HttpsDoorOptions {
  /** For the next handshake. */
  readonly context: () => Promise<SecureContext>;
  readonly logger?: Logger | undefined;
  /** Milliseconds from the connection to the end of the handshake. Default 10,000. */
  readonly handshakeTimeout?: number;
}

/** Type of a record of TLS that carries a handshake (RFC 8446 §5.1): the first byte of a ClientHello. */
const HANDSHAKE = 0x16;

/** Leads connections through their handshake; plain HTTP is told where to go. Nobody is waited for longer than the timeout. */
export class HttpsDoor {
  readonly #options: HttpsDoorOptions;
  readonly #budget = new LogBudget({ perKey: 3 });
  /** Connections whose handshake is not over. */
  readonly #halfOpen = new Set<Socket>();

  constructor(options: HttpsDoorOptions) {
    this.#options = options;
  }

  /** @param serve takes the connection when it is secured */
  take(socket: Socket, serve: (secured: TLSSocket) => void): void {
    const { handshakeTimeout = 10_000 } = this.#options;
    const timer = setTimeout(() => socket.destroy(), handshakeTimeout);
    const over = (): void => {
      clearTimeout(timer);
      this.#halfOpen.delete(socket);
    };
    this.#halfOpen.add(socket);
    socket.once('close', over);
    // Health checks of balancers leave without a word, or by a reset.
    socket.on('error', () => socket.destroy());
    socket.once('readable', () => {
      const bytes = socket.read() as Buffer | null;
      if (bytes === null) {
        socket.destroy();
      } else if (bytes[0] === HANDSHAKE) {
        socket.unshift(bytes);
        this.#secure(socket, (secured) => {
          over();
          serve(secured);
        }).catch((error: unknown) => this.#failed(socket, reasonOf(error)));
      } else {
        this.#say(socket, 'plain HTTP, or something else, on the port for HTTPS');
        socket.end(httpsRequired(bytes, socket), () => socket.destroy());
      }
    });
  }

  /** Nobody who has not come in by now does. */
  close(): void {
    for (const socket of this.#halfOpen) socket.destroy();
  }

  async #secure(socket: Socket, serve: (secured: TLSSocket) => void): Promise<void> {
    const secureContext = await this.#options.context();
    if (socket.destroyed) return;
    const secured = new TLSSocket(socket, { isServer: true, secureContext });
    const failed = (error: Error): void => this.#failed(socket, reasonOf(error));
    secured.on('error', failed);
    secured.once('secure', () => {
      // Errors are told to the connection from here on: what `https.Server` does for its own.
      (secured as unknown as { _releaseControl(): boolean })._releaseControl();
      serve(secured);
      secured.off('error', failed);
    });
  }

  #failed(socket: Socket, reason: string): void {
    this.#say(socket, reason);
    socket.destroy();
  }

  #say({ remoteAddress = '' }: Socket, reason: string): void {
    const notLogged = this.#budget.take(remoteAddress);
    if (notLogged === undefined) return;
    const facts = { remoteAddress, reason, ...(notLogged > 0 ? { notLogged } : {}) };
    this.#options.logger?.warn(facts, 'REST connection refused: no TLS handshake');
  }
}
