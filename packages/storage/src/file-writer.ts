import { writeFully } from './files.js';
import type { OpenFile } from './files.js';
import { OutputQueue } from './output-queue.js';
import type { RunningHash } from './running-hash.js';

/**
 * Most bytes of one write. Half as many start one, or fewer when somebody waits for them: few large writes instead of many small
 * ones. Twice as many may wait, in flight included, before the peer must pause.
 */
const WRITE_SIZE = 512 * 1024;
/** IOV_MAX of Linux and macOS. */
const MAX_BUFFERS = 1024;

interface Waiter {
  readonly offset: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Appends a queue to a file: one `writev` at a time, of many buffers, and hashes what is in flight meanwhile.
 * Offsets are file bytes since the start.
 */
export class FileWriter {
  readonly queue = new OutputQueue();
  readonly #file: OpenFile;
  readonly #hash: RunningHash | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #writeSize: number;
  #written: number;
  #inFlight = 0;
  /** Somebody waits for everything up to here. */
  #wanted = 0;
  #loop: Promise<void> | undefined;
  #stopped: Error | undefined;
  #forWritten: Waiter[] = [];
  #forRoom: Waiter[] = [];
  /** Buffers whose bytes are queued, oldest first. */
  #releases: { readonly offset: number; readonly release: () => void }[] = [];

  /**
   * @param start bytes that the file holds already
   * @param writeSize most bytes of one write
   */
  constructor(
    file: OpenFile,
    start: number,
    hash: RunningHash | undefined,
    onError: (error: unknown) => void,
    writeSize = WRITE_SIZE,
  ) {
    this.#writeSize = writeSize;
    this.#file = file;
    this.#written = start;
    this.#hash = hash;
    this.#onError = onError;
  }

  /** Bytes the operating system has taken. */
  get written(): number {
    return this.#written;
  }

  /** Bytes queued so far: the offset of the next one. */
  get accepted(): number {
    return this.#written + this.#inFlight + this.queue.bytes;
  }

  get hasRoom(): boolean {
    return this.#inFlight + this.queue.bytes < 2 * this.#writeSize;
  }

  /** To be called after something was queued. */
  pump(): void {
    if (this.#loop === undefined && this.#isDue()) this.#loop = this.#run();
  }

  writtenUpTo(offset: number): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    if (this.#written >= offset) return Promise.resolve();
    this.#wanted = Math.max(this.#wanted, offset);
    return new Promise((resolve, reject) => {
      this.#forWritten.push({ offset, resolve, reject });
      this.pump();
    });
  }

  /** Calls `release` when all that is queued by now was handed to the operating system; never after a failure. */
  whenWritten(release: () => void): void {
    this.#releases.push({ offset: this.accepted, release });
  }

  drained(): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    if (this.hasRoom) return Promise.resolve();
    return new Promise((resolve, reject) => this.#forRoom.push({ offset: 0, resolve, reject }));
  }

  /** Writes nothing more, rejects all who wait, and lets go of the queue. */
  stop(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = error;
    this.queue.clear();
    this.#releases = [];
    for (const waiter of [...this.#forWritten, ...this.#forRoom]) waiter.reject(error);
    this.#forWritten = [];
    this.#forRoom = [];
  }

  /** Resolves when no write is in flight. */
  async idle(): Promise<void> {
    await this.#loop;
  }

  #isDue(): boolean {
    if (this.#stopped || this.queue.bytes === 0) return false;
    return this.queue.bytes >= this.#writeSize / 2 || this.#wanted > this.#written;
  }

  async #run(): Promise<void> {
    try {
      while (this.#isDue()) {
        const { buffers, bytes } = this.queue.take(MAX_BUFFERS, this.#writeSize);
        this.#inFlight = bytes;
        const writing = writeFully(this.#file, buffers, this.#written, bytes);
        if (this.#hash) for (const buffer of buffers) this.#hash.update(buffer);
        await writing;
        this.#written += bytes;
        this.#inFlight = 0;
        this.#wake();
      }
    } catch (error) {
      this.#inFlight = 0;
      this.#onError(error);
    } finally {
      this.#loop = undefined;
    }
  }

  #wake(): void {
    let released = 0;
    for (const { offset, release } of this.#releases) {
      if (offset > this.#written) break;
      release();
      released += 1;
    }
    if (released > 0) this.#releases.splice(0, released);
    const ready = this.#forWritten.filter(({ offset }) => offset <= this.#written);
    if (ready.length > 0) this.#forWritten = this.#forWritten.filter(({ offset }) => offset > this.#written);
    for (const { resolve } of ready) resolve();
    if (this.#forRoom.length > 0 && this.hasRoom) {
      for (const { resolve } of this.#forRoom.splice(0)) resolve();
    }
  }
}
