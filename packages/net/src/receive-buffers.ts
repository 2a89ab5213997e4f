/**
 * Buffers of our own, for transports that can read into them.
 *
 * Node gives every read of a socket a new buffer of 64 KB. For large files that costs a quarter of the receiver's time, and
 * half of its throughput (measured: 714 MB/s against 1,100): allocation, page faults, small reads. Our buffers are used
 * again when the file has taken their bytes. Between files all connections read into one buffer, and what came is copied out of
 * it, so that thousands of idle partners cost nothing. A transport that hands over its own buffers leaves these alone.
 */
import type { ReadBuffers } from './transport.js';

/**
 * Where connections read control FPDUs, one at a time: Node calls back at once when the system has filled it, before it reads for
 * another connection.
 */
const SHARED = Buffer.allocUnsafeSlow(4096);
const BULK_SIZE = 256 * 1024;
const BULK_ROOM = 64 * 1024;
/** Bulk buffers kept for later transfers. */
const MAX_SPARE = 32;
/** Full buffers of a transfer that are waited for; a file that keeps more does not give them back at all. */
const MAX_RETIRED = 16;

const spare: Buffer[] = [];

interface Retired {
  readonly buffer: Buffer;
  /** Total received when it was full: its bytes have left the session when the session has seen as many. */
  readonly until: number;
  /** Batches handed out by then: it is free when they are released. */
  batches?: number;
}

/** The buffers of one large transfer. Batches are released in the order in which they were given. */
export class BulkBuffers implements ReadBuffers {
  #current: Buffer | undefined;
  #filled = 0;
  #received = 0;
  #given = 0;
  #released = 0;
  #retired: Retired[] = [];
  readonly #readSize: number;

  /** @param readSize most of one read, bytes */
  constructor(readSize = BULK_SIZE) {
    this.#readSize = readSize;
  }

  next(): Buffer {
    if (this.#current === undefined || this.#current.length - this.#filled < BULK_ROOM) {
      if (this.#current !== undefined) this.#retired.push({ buffer: this.#current, until: this.#received });
      if (this.#retired.length > MAX_RETIRED) this.#retired.shift();
      this.#current = spare.pop() ?? Buffer.allocUnsafeSlow(BULK_SIZE);
      this.#filled = 0;
    }
    return this.#current.subarray(this.#filled, this.#filled + this.#readSize);
  }

  take(length: number): Buffer {
    const start = this.#filled;
    this.#filled += length;
    this.#received += length;
    return (this.#current as Buffer).subarray(start, this.#filled);
  }

  /** A batch with views of these buffers goes to a file; to be called when the file has taken it. */
  give(): () => void {
    this.#given += 1;
    return () => {
      this.#released += 1;
      this.#reclaim();
    };
  }

  /** The session has turned all but `pending` bytes into batches. */
  seen(pending: number): void {
    for (const retired of this.#retired) {
      if (retired.batches === undefined && this.#received - pending >= retired.until) retired.batches = this.#given;
    }
    this.#reclaim();
  }

  #reclaim(): void {
    for (let first = this.#retired[0]; first?.batches !== undefined; first = this.#retired[0]) {
      if (first.batches > this.#released) return;
      this.#retired.shift();
      if (spare.length < MAX_SPARE) spare.push(first.buffer);
    }
  }
}

/** Where one connection reads to: what it was given, else the buffer of all. */
export class ReceiveBuffers implements ReadBuffers {
  given: ReadBuffers | undefined;
  /** Who gave the buffer of the read that is under way; undefined: it is the one of all. */
  #reading: ReadBuffers | undefined;

  next(): Buffer {
    this.#reading = this.given;
    return this.#reading?.next() ?? SHARED;
  }

  take(length: number): Buffer {
    return this.#reading?.take(length) ?? Buffer.from(SHARED.subarray(0, length));
  }
}
