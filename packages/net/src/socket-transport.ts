/**
 * A socket of Node behind the port `Transport`, whatever secures it.
 *
 * Node gives every read of a socket a new buffer of 64 KB, which costs large files dearly (`receive-buffers.ts`). `onread`
 * lets the kernel fill our buffers instead. It is an option of sockets that connect, and those that a server accepts have
 * none: theirs hand their connection over to a socket that has it. For TLS see `tls-reads.ts`.
 */
import { Socket } from 'node:net';
import type { OnReadOpts } from 'node:net';
import { TLSSocket } from 'node:tls';
import { ReceiveBuffers } from './receive-buffers.js';
import { readTlsInto } from './tls-reads.js';
import type { ReadBuffers, Transport, TransportReader, TransportSecurity } from './transport.js';

/** Small FPDUs leave at once, and a peer that died without a word is looked for after a minute of silence. */
export const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };

const nobody: TransportReader = {
  received: () => undefined,
  ended: () => undefined,
  closed: () => undefined,
};

/** Where a socket reads to, which has to be said before there is one. */
export class SocketReads {
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

export interface SocketTransportOptions {
  /** Given for a socket that has `onread`. */
  readonly reads?: SocketReads | undefined;
  /** Default: as the socket says. */
  readonly remoteAddress?: string | undefined;
  readonly security?: TransportSecurity | undefined;
  /** Puts an error of the socket into words. */
  readonly explain?: (error: Error) => Error;
}

export class SocketTransport implements Transport {
  readonly remoteAddress: string;
  readonly security: TransportSecurity | undefined;
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #buffers: ReceiveBuffers | undefined;
  #reader = nobody;
  #end: { readonly cause: Error | undefined } | undefined;
  #gone = false;

  /** @param socket connected and paused */
  constructor(socket: Socket, options: SocketTransportOptions = {}) {
    const { reads, remoteAddress = socket.remoteAddress ?? 'unknown', explain = (error: Error) => error } = options;
    this.#socket = socket;
    this.remoteAddress = remoteAddress;
    this.security = options.security;
    const received = (bytes: Buffer): void => {
      this.#reader.received(bytes);
    };
    if (reads !== undefined) reads.deliver = received;
    this.#buffers = reads?.buffers ?? ownBuffersOf(socket, received);
    // Bytes that were put back come here, and everything of a socket without `onread`.
    socket.on('data', received);
    socket.on('error', (error) => {
      this.#ended(explain(error));
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
    if (this.#buffers !== undefined) this.#buffers.given = buffers;
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

/** Where TLS reads to from now on; undefined: it hands over its own buffers. */
const ownBuffersOf = (socket: Socket, received: (bytes: Buffer) => void): ReceiveBuffers | undefined => {
  const buffers = new ReceiveBuffers();
  return socket instanceof TLSSocket && readTlsInto(socket, buffers, received) ? buffers : undefined;
};

/**
 * A socket that a server has accepted, as a transport; without a handle to pass on the socket stays, and only speed is lost.
 * @param socket paused
 */
export const acceptedTransport = (socket: Socket, remoteAddress?: string): Transport => {
  const carrier = socket as unknown as { _handle: object | null | undefined };
  const handle = carrier._handle;
  // Where bytes were read already, those that follow them may wait in the socket, and its end too.
  if (handle === null || handle === undefined || socket.bytesRead > 0) {
    return new SocketTransport(socket, { remoteAddress });
  }
  const reads = new SocketReads();
  carrier._handle = null;
  const own = new Socket({ handle, onread: reads.onread } as ConstructorParameters<typeof Socket>[0]);
  own.pause();
  // The server counts the socket that it made.
  own.once('close', () => socket.destroy());
  return new SocketTransport(own, { reads, remoteAddress });
};
