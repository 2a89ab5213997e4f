/**
 * Connections in memory, for tests of sessions without sockets: a second implementation of the port, with the bounds and the
 * manners of TCP. Written bytes wait in a system of 64 KB until the other end reads; nothing is told in the turn that
 * caused it.
 */
import { ReceiveBuffers } from '../receive-buffers.js';
import { TransportError } from '../transport.js';
import type { Arrivals, Connect, ReadBuffers, Serve, Transport, TransportReader } from '../transport.js';

const SYSTEM_SIZE = 64 * 1024;
const READ_SIZE = 16 * 1024;

const nobody: TransportReader = { received: () => undefined, ended: () => undefined, closed: () => undefined };

const failure = (code: string): NodeJS.ErrnoException => Object.assign(new Error(`memory ${code}`), { code });

/** One way of a connection. */
class Way {
  /** The writer has closed its half: nothing comes behind what is here. */
  finished = false;
  #waiting: { bytes: Buffer; readonly taken: (() => void) | undefined }[] = [];
  #held = Buffer.alloc(0);

  /** Bytes that the system has not taken. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  write(parts: readonly Buffer[], taken: () => void): void {
    const last = parts.length - 1;
    for (const [index, bytes] of parts.entries()) {
      this.#waiting.push({ bytes, taken: index === last ? taken : undefined });
    }
    this.#take();
  }

  /** @returns the next bytes, `most` at most, copied; none: there is nothing */
  read(most: number): Buffer {
    const bytes = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(bytes.length);
    this.#take();
    return bytes;
  }

  /** Bytes that the system has not taken never leave. */
  drop(): void {
    for (const { taken } of this.#waiting.splice(0)) if (taken !== undefined) setImmediate(taken);
  }

  #take(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const room = first.bytes.subarray(0, SYSTEM_SIZE - this.#held.length);
      this.#held = Buffer.concat([this.#held, room]);
      first.bytes = first.bytes.subarray(room.length);
      if (first.bytes.length > 0) return;
      this.#waiting.shift();
      if (first.taken !== undefined) setImmediate(first.taken);
    }
  }
}

/** One end of a connection in memory. */
export class MemoryTransport implements Transport {
  readonly remoteAddress: string;
  readonly security = undefined;
  readonly closed: Promise<void>;
  destroyed = false;
  /** Its half stays open when the other end closes: not what a transport does, but what a peer of a test may need. */
  allowHalfOpen = false;
  readonly #in: Way;
  readonly #out: Way;
  /** undefined: hands over buffers of its own, as TLS does */
  readonly #buffers: ReceiveBuffers | undefined;
  #other: MemoryTransport = this;
  #reader = nobody;
  #paused = true;
  #turning = false;
  #back: Buffer[] = [];
  #end: { readonly cause: Error | undefined } | undefined;
  #gone = false;
  #over: () => void = () => undefined;

  private constructor(remoteAddress: string, into: Way, out: Way, readsInto: boolean) {
    this.remoteAddress = remoteAddress;
    this.#in = into;
    this.#out = out;
    this.#buffers = readsInto ? new ReceiveBuffers() : undefined;
    this.closed = new Promise((resolve) => (this.#over = resolve));
  }

  /**
   * Both ends of a connection: the one that connected (192.0.2.1), and the one that was accepted (192.0.2.2).
   * @param readsInto whether they read into given buffers, or hand over their own
   */
  static pair(readsInto = true): { readonly connected: MemoryTransport; readonly accepted: MemoryTransport } {
    const [up, down] = [new Way(), new Way()];
    const connected = new MemoryTransport('192.0.2.2', down, up, readsInto);
    const accepted = new MemoryTransport('192.0.2.1', up, down, readsInto);
    connected.#other = accepted;
    accepted.#other = connected;
    return { connected, accepted };
  }

  get queuedBytes(): number {
    return this.#out.waiting;
  }

  attach(reader: TransportReader): void {
    this.#reader = reader;
    const [end, gone] = [this.#end, this.#gone];
    if (end === undefined && !gone) return;
    setImmediate(() => {
      if (this.#reader !== reader) return;
      if (end !== undefined) reader.ended(end.cause);
      if (gone) reader.closed();
    });
  }

  readInto(buffers: ReadBuffers | undefined): void {
    if (this.#buffers !== undefined) this.#buffers.given = buffers;
  }

  unread(bytes: Buffer): void {
    this.#back.unshift(bytes);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#soon();
  }

  write(parts: readonly Buffer[], taken: () => void = () => undefined): void {
    if (this.destroyed || this.#out.finished) {
      setImmediate(taken);
      return;
    }
    this.#out.write(parts, taken);
    if (this.#other.destroyed) this.#fail(failure('ECONNRESET'));
    else this.#other.#soon();
  }

  end(): void {
    this.#out.finished = true;
    this.#other.#soon();
    this.#closeWhenDone();
  }

  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.#out.drop();
    this.#out.finished = true;
    // Who writes to an end that is gone is told by a reset.
    if (this.#in.waiting > 0) this.#other.#fail(failure('ECONNRESET'));
    else this.#other.#soon();
    setImmediate(() => {
      this.#gone = true;
      this.#reader.closed();
      this.#over();
    });
  }

  /** Closes at once; the other end sees a reset. */
  reset(): void {
    this.#other.#fail(failure('ECONNRESET'));
    this.destroy();
  }

  #fail(cause: Error): void {
    if (this.destroyed) return;
    setImmediate(() => {
      this.#ended(cause);
    });
    this.destroy();
  }

  #ended(cause: Error | undefined): void {
    if (this.#end !== undefined) return;
    this.#end = { cause };
    this.#reader.ended(cause);
  }

  /** Both halves are closed, and everything has left. */
  #closeWhenDone(): void {
    if (this.#end !== undefined && this.#out.finished && this.#out.waiting === 0) this.destroy();
  }

  #soon(): void {
    if (this.#turning || this.#paused || this.destroyed) return;
    this.#turning = true;
    setImmediate(() => {
      this.#turning = false;
      if (!this.#paused && !this.destroyed) this.#turn();
    });
  }

  #turn(): void {
    const bytes = this.#back.shift() ?? this.#read();
    this.#other.#closeWhenDone();
    if (bytes.length > 0) {
      this.#reader.received(bytes);
      this.#soon();
    } else if (this.#in.finished && this.#in.waiting === 0) {
      this.#ended(undefined);
      if (this.allowHalfOpen) this.#closeWhenDone();
      else this.end();
    }
  }

  #read(): Buffer {
    if (this.#buffers === undefined) return this.#in.read(READ_SIZE);
    const room = this.#buffers.next();
    const bytes = this.#in.read(room.length);
    bytes.copy(room);
    return bytes.length === 0 ? bytes : this.#buffers.take(bytes.length);
  }
}

/** Ports in memory: `connect` and `serve` for requesters and listeners of one test. */
export class MemoryNetwork {
  readonly #ports = new Map<number, Arrivals>();

  readonly serve: Serve = (arrivals) => {
    const open = new Set<Transport>();
    let opened = 0;
    const taking: Arrivals = {
      ...arrivals,
      arrived: (transport) => {
        open.add(transport);
        void transport.closed.then(() => open.delete(transport));
        arrivals.arrived(transport);
      },
    };
    return {
      get port() {
        return opened;
      },
      listen: ({ port }) => {
        if (this.#ports.has(port)) return Promise.reject(failure('EADDRINUSE'));
        opened = port === 0 ? 1 + Math.max(0, ...this.#ports.keys()) : port;
        this.#ports.set(opened, taking);
        return Promise.resolve();
      },
      close: async () => {
        this.#ports.delete(opened);
        await Promise.all([...open].map(({ closed }) => closed));
      },
    };
  };

  readonly connect: Connect = ({ port, signal }) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      setImmediate(() => {
        const server = this.#ports.get(port);
        if (signal.aborted) reject(signal.reason as Error);
        else if (server === undefined) {
          reject(new TransportError('nobody listens there', 'connection', failure('ECONNREFUSED')));
        } else {
          const { connected, accepted } = MemoryTransport.pair();
          server.arrived(accepted);
          resolve({ transport: connected, roundTripMs: 0 });
        }
      });
    });
}
