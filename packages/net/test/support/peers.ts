/** The other end of a transport under test as a bare socket. */
import type { Socket } from 'node:net';
import type { TransportPeer } from '../../src/testing/index.js';
import { gate } from './harness.js';

/** What was received, and who waits for it. */
export class Received {
  readonly #chunks: Buffer[] = [];
  #length = 0;
  #waiting: { readonly length: number; readonly resolve: () => void }[] = [];

  add(bytes: Buffer): void {
    this.#chunks.push(Buffer.from(bytes));
    this.#length += bytes.length;
    for (const { resolve } of this.#waiting.filter(({ length }) => length <= this.#length)) resolve();
    this.#waiting = this.#waiting.filter(({ length }) => length > this.#length);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  async until(length: number): Promise<void> {
    if (this.#length < length) await new Promise<void>((resolve) => this.#waiting.push({ length, resolve }));
  }
}

/** @param reset ends the connection with an error at the other end; default: as a socket of TCP does */
export const socketPeer = (socket: Socket, reset: () => void = () => void socket.resetAndDestroy()): TransportPeer => {
  const received = new Received();
  const over = gate();
  socket.on('data', (bytes: Buffer) => {
    received.add(bytes);
  });
  socket.on('error', () => undefined);
  for (const event of ['end', 'close']) socket.on(event, over.open);
  return {
    write: (bytes) => void socket.write(bytes),
    get unsent() {
      return socket.writableLength;
    },
    get received() {
      return received.bytes;
    },
    until: (length) => received.until(length),
    over: over.passed,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    end: () => void socket.end(),
    reset,
  };
};
