import { Duplex } from 'node:stream';

/** One running PGlite, wherever it runs. A rejected call means that the instance is gone for good. */
export interface PgliteHandle {
  exec(message: Uint8Array): Promise<Uint8Array>;
}

const AUTHENTICATION_OK = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const READY_IDLE = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
const TERMINATE = 0x58;

/** Simple query: 'Q', length, text, NUL (PostgreSQL documentation, "Message Formats"). */
const simpleQuery = (sql: string): Buffer => {
  const message = Buffer.alloc(6 + Buffer.byteLength(sql));
  message.write('Q', 0);
  message.writeUInt32BE(message.length - 1, 1);
  message.write(sql, 5);
  return message;
};

/**
 * What the `pg` driver takes for a socket: each write is one or more whole protocol messages, answered by PGlite.
 *
 * PGlite is one session for ever. So that a new "connection" does not continue the transaction or the settings of a lost
 * one, every start-up message is answered by ROLLBACK and DISCARD ALL first.
 */
export class PgliteStream extends Duplex {
  readonly #acquire: () => Promise<PgliteHandle>;
  #handle: PgliteHandle | undefined;

  /** @param acquire the running instance; one connection stays with the instance that it began on. */
  constructor(acquire: () => Promise<PgliteHandle>) {
    super();
    this.#acquire = acquire;
  }

  connect(): this {
    process.nextTick(() => this.emit('connect'));
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  override _read(): void {
    // Answers are pushed as they come; there is nothing to start.
  }

  override _write(chunk: Buffer, _encoding: string, callback: (error?: Error | null) => void): void {
    this.#answer(chunk).then(() => callback(), callback);
  }

  override _writev(chunks: { chunk: Buffer }[], callback: (error?: Error | null) => void): void {
    this.#answer(Buffer.concat(chunks.map(({ chunk }) => chunk))).then(() => callback(), callback);
  }

  async #answer(message: Buffer): Promise<void> {
    if (this.#handle === undefined) {
      const handle = await this.#acquire();
      for (const sql of ['ROLLBACK', 'DISCARD ALL']) await handle.exec(simpleQuery(sql));
      this.#handle = handle;
      this.push(Buffer.concat([AUTHENTICATION_OK, READY_IDLE]));
      return;
    }
    if (message[0] === TERMINATE) {
      this.push(null);
      return;
    }
    const answer = await this.#handle.exec(message);
    if (answer.length > 0) this.push(Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength));
  }
}
