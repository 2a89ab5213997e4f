/**
 * Plain TCP behind the port `Transport`: the one file that knows sockets, and what is inside of them.
 *
 * Node gives every read of a socket a new buffer of 64 KB, which costs large files dearly (`receive-buffers.ts`). `onread`
 * lets the kernel fill our buffers instead. It is an option of sockets that connect, and those that a server accepts have
 * none: theirs hand their connection over to a socket that has it.
 */
import { Socket, connect, createServer } from 'node:net';
import type { AddressInfo, OnReadOpts, Server } from 'node:net';
import { ReceiveBuffers } from './receive-buffers.js';
import { TransportError } from './transport.js';
import type {
  Arrivals,
  Connect,
  ReadBuffers,
  Serve,
  Transport,
  TransportReader,
  TransportServer,
} from './transport.js';

/** Small FPDUs leave at once, and a peer that died without a word is looked for after a minute of silence. */
const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };
const BACKLOG = 511;

const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there: check host, port and that the partner is started',
  ENOTFOUND: 'the host name is unknown: check it and the DNS',
  EAI_AGAIN: 'the DNS does not answer',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'there is no route to the network',
  ECONNRESET: 'the partner closed at once: its TLS or framing may differ',
};

const nobody: TransportReader = {
  received: () => undefined,
  ended: () => undefined,
  closed: () => undefined,
};

/** Where a socket reads to, which has to be said before there is one. */
class SocketReads {
  readonly buffers = new ReceiveBuffers();
  deliver: (bytes: Buffer) => void = () => undefined;
  readonly onread: OnReadOpts = {
    buffer: () => this.buffers.next(),
    callback: (length) => {
      this.deliver(this.buffers.take(length));
      // A reader that wanted no more has paused the socket itself.
      return true;
    },
  };
}

class TcpTransport implements Transport {
  readonly remoteAddress: string;
  readonly security = undefined;
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #buffers: ReceiveBuffers;
  #reader = nobody;
  #end: { readonly cause: Error | undefined } | undefined;
  #gone = false;

  /** @param socket connected and paused */
  constructor(socket: Socket, reads: SocketReads) {
    this.#socket = socket;
    this.#buffers = reads.buffers;
    this.remoteAddress = socket.remoteAddress ?? 'unknown';
    const received = (bytes: Buffer): void => {
      this.#reader.received(bytes);
    };
    reads.deliver = received;
    // Bytes that were put back come here, and everything of a socket without `onread`.
    socket.on('data', received);
    socket.on('error', (error) => {
      this.#ended(error);
    });
    socket.on('end', () => {
      this.#ended(undefined);
    });
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#gone = true;
        this.#reader.closed();
        resolve();
      });
    });
  }

  get destroyed(): boolean {
    return this.#socket.destroyed;
  }

  /** The field that Node's own idle timer looks at, and no public property tells. */
  get queuedBytes(): number {
    const { _handle: handle } = this.#socket as unknown as { readonly _handle?: { readonly writeQueueSize?: number } };
    return handle?.writeQueueSize ?? 0;
  }

  attach(reader: TransportReader): void {
    this.#reader = reader;
    const [end, gone] = [this.#end, this.#gone];
    if (end === undefined && !gone) return;
    process.nextTick(() => {
      if (this.#reader !== reader) return;
      if (end !== undefined) reader.ended(end.cause);
      if (gone) reader.closed();
    });
  }

  readInto(buffers: ReadBuffers | undefined): void {
    this.#buffers.given = buffers;
  }

  unread(bytes: Buffer): void {
    this.#socket.unshift(bytes);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  write(parts: readonly Buffer[], taken: () => void = () => undefined): void {
    const socket = this.#socket;
    if (!socket.writable) {
      process.nextTick(taken);
      return;
    }
    const last = parts.length - 1;
    if (last > 0) socket.cork();
    for (const [index, part] of parts.entries()) {
      if (index < last) socket.write(part);
      else {
        socket.write(part, () => {
          taken();
        });
      }
    }
    if (last > 0) socket.uncork();
  }

  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #ended(cause: Error | undefined): void {
    if (this.#end !== undefined) return;
    this.#end = { cause };
    this.#reader.ended(cause);
  }
}

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
      reject(new TransportError(HINTS[error.code ?? ''] ?? error.message, 'connection', error));
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
      const transport = new TcpTransport(socket, reads);
      socket.off('error', failed);
      resolve({ transport, roundTripMs });
    });
  });

/** A socket that has read nothing yet (`pauseOnConnect`); without a handle to pass on it stays, and only speed is lost. */
const accepted = (socket: Socket): Transport => {
  const reads = new SocketReads();
  const carrier = socket as unknown as { _handle: object | null | undefined };
  const handle = carrier._handle;
  if (handle === null || handle === undefined) return new TcpTransport(socket, reads);
  carrier._handle = null;
  const own = new Socket({ handle, onread: reads.onread } as ConstructorParameters<typeof Socket>[0]);
  own.pause();
  // The server counts the socket that it made.
  own.once('close', () => socket.destroy());
  return new TcpTransport(own, reads);
};

class TcpServer implements TransportServer {
  readonly #server: Server;
  readonly #arrivals: Arrivals;
  #port = 0;

  constructor(arrivals: Arrivals) {
    this.#arrivals = arrivals;
    this.#server = createServer({ ...SOCKET_OPTIONS, pauseOnConnect: true }, (socket) => {
      arrivals.arrived(accepted(socket));
    });
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
          this.#arrivals.failed('unknown', `a connection could not be accepted: ${error.message}`);
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
    });
  }
}

export const serveTcp: Serve = (arrivals) => new TcpServer(arrivals);
