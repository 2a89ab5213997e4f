/** Plain TCP behind the port `Transport`. */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { ProxyDoor } from './proxy-accepting.js';
import type { ProxyServing } from './proxy-accepting.js';
import { SOCKET_OPTIONS, SocketReads, SocketTransport, acceptedTransport } from './socket-transport.js';
import { TransportError } from './transport.js';
import type { Arrivals, Connect, Serve, TransportServer } from './transport.js';

const BACKLOG = 511;

const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there: check host, port and that the partner is started',
  ENOTFOUND: 'the host name is unknown: check it and the DNS',
  EAI_AGAIN: 'the DNS does not answer',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  ECONNRESET: 'the partner closed at once: its TLS or framing may differ',
};

/** Why a TCP connection could not be opened. */
export const notConnected = (error: NodeJS.ErrnoException): TransportError =>
  new TransportError(HINTS[error.code ?? ''] ?? error.message, 'connection', error);

export const connectTcp: Connect = ({ host, port, signal }) =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const reads = new SocketReads();
    const socket = connect({ host, port, ...SOCKET_OPTIONS, onread: reads.onread });
    // Nobody could take what came with the connection.
    socket.pause();
    let began = performance.now();
    socket.once('connectionAttempt', () => (began = performance.now()));
    const failed = (error: NodeJS.ErrnoException): void => {
      signal.removeEventListener('abort', cancel);
      reject(notConnected(error));
    };
    const cancel = (): void => {
      socket.destroy();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', cancel, { once: true });
    socket.once('error', failed);
    socket.once('connect', () => {
      const roundTripMs = performance.now() - began;
      signal.removeEventListener('abort', cancel);
      const transport = new SocketTransport(socket, { reads });
      socket.off('error', failed);
      resolve({ transport, roundTripMs });
    });
  });

/** A port of TCP: `accepted` gets each socket, paused, before a byte of it was read. */
export class SocketServer implements TransportServer {
  readonly #server: Server;
  readonly #failed: Arrivals['failed'];
  readonly #closing: () => void;
  #port = 0;

  /** @param closing called when the port is given up */
  constructor(accepted: (socket: Socket) => void, failed: Arrivals['failed'], closing: () => void) {
    this.#failed = failed;
    this.#closing = closing;
    this.#server = createServer({ ...SOCKET_OPTIONS, pauseOnConnect: true }, accepted);
  }

  get port(): number {
    return this.#port;
  }

  listen({ host, port }: { readonly host: string; readonly port: number }): Promise<void> {
    const server = this.#server;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, backlog: BACKLOG }, () => {
        this.#port = (server.address() as AddressInfo).port;
        server.off('error', reject);
        // Errors of accept (too many open files …) pass; the server stays.
        server.on('error', (error) => {
          this.#failed('unknown', `a connection could not be accepted: ${error.message}`);
        });
        resolve();
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve();
      });
      this.#closing();
    });
  }
}

/** A port that balancers may reach. @param proxy default: no connection has a header of the PROXY protocol */
export const serveTcpBehind =
  (proxy: ProxyServing | undefined): Serve =>
  ({ arrived, failed }) => {
    const door = new ProxyDoor(proxy, failed, (socket, address) => {
      arrived(acceptedTransport(socket, address));
    });
    return new SocketServer(
      (socket) => {
        door.take(socket);
      },
      failed,
      () => {
        door.close();
      },
    );
  };

export const serveTcp: Serve = serveTcpBehind(undefined);
