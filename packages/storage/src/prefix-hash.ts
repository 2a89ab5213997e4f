import { readFully } from './files.js';
import type { OpenFile } from './files.js';
import { RunningHash } from './running-hash.js';

type ReadAt = Pick<OpenFile, 'readv'>;

/** Two blocks of this size, or smaller ones: one is read while the other is hashed. */
const BLOCK = 512 * 1024;

/** Hashes a file from its start, place by place, without holding more than two blocks of it or the event loop. */
export class PrefixHash {
  readonly #file: ReadAt;
  readonly #end: number;
  readonly #signal: AbortSignal | undefined;
  readonly #blocks: [Buffer, Buffer];
  readonly #hash = new RunningHash();
  /** Bytes read and not hashed yet. */
  #data: Buffer = Buffer.alloc(0);
  #readUpTo = 0;
  #reading: Promise<number> | undefined;

  /**
   * @param end bytes that will be hashed at most
   * @param signal looked at before each block: the hash ends with its reason
   * @param block bytes of one read
   */
  constructor(file: ReadAt, end: number, signal?: AbortSignal, block = BLOCK) {
    this.#signal = signal;
    this.#file = file;
    this.#end = end;
    const size = Math.min(block, end);
    this.#blocks = [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)];
  }

  /** @returns the hash of the first `offset` bytes, to continue from; undefined when the file ends before */
  async upTo(offset: number): Promise<RunningHash | undefined> {
    while (this.#hash.position < offset) {
      this.#signal?.throwIfAborted();
      if (this.#data.length === 0 && !(await this.#next())) return undefined;
      const piece = this.#data.subarray(0, offset - this.#hash.position);
      this.#hash.update(piece);
      this.#data = this.#data.subarray(piece.length);
    }
    return this.#hash.copy();
  }

  /** To be called before the file is closed or changed: waits for the block that is being read ahead. */
  async stop(): Promise<void> {
    await this.#reading?.catch(() => undefined);
    this.#reading = undefined;
  }

  async #next(): Promise<boolean> {
    const read = await (this.#reading ?? this.#read());
    this.#data = this.#blocks[0].subarray(0, read);
    this.#blocks.reverse();
    this.#readUpTo += read;
    this.#reading = undefined;
    if (read > 0 && this.#readUpTo < this.#end) {
      this.#reading = this.#read();
      // An error is told to whoever asks for these bytes, if anybody does.
      this.#reading.catch(() => undefined);
    }
    return read > 0;
  }

  #read(): Promise<number> {
    const block = this.#blocks[0].subarray(0, this.#end - this.#readUpTo);
    return readFully(this.#file, [block], this.#readUpTo, block.length);
  }
}

/** Bytes after which a hash beside other work looks whether it is still wanted. */
const STEP = 8 * 1024 * 1024;

/** The hash of a whole file, computed beside other work on it. */
export class HashBeside {
  /** `sha256:` and 64 hex digits; undefined when it was stopped, the file ends before `size`, or cannot be read. */
  readonly checksum: Promise<string | undefined>;
  #stopped = false;

  constructor(file: ReadAt, size: number, block?: number) {
    this.checksum = this.#run(new PrefixHash(file, size, undefined, block), size).catch(() => undefined);
  }

  /** To be called before the file is closed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.checksum;
  }

  async #run(prefix: PrefixHash, size: number): Promise<string | undefined> {
    try {
      for (let end = STEP; !this.#stopped; end += STEP) {
        const hash = await prefix.upTo(Math.min(end, size));
        if (hash === undefined || end >= size) return hash?.checksum();
      }
      return undefined;
    } finally {
      await prefix.stop();
    }
  }
}

/** The hash of the first `offset` bytes; undefined when the file ends before. @param signal see `PrefixHash` */
export const hashUpTo = async (
  file: ReadAt,
  offset: number,
  signal?: AbortSignal,
  block?: number,
): Promise<RunningHash | undefined> => {
  const prefix = new PrefixHash(file, offset, signal, block);
  return prefix.upTo(offset).finally(() => prefix.stop());
};
