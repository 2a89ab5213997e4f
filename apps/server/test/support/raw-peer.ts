import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

import { entity } from '@pesit-node/protocol/testing';

import type { Step } from './steps.js';

/** A partner that speaks by hand. */
export class RawPeer {
  readonly socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #y = 0;
  #over = false;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (bytes: Buffer) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#wake?.();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#over = true;
      this.#wake?.();
    });
  }

  /** A partner that has said `steps`. */
  static async open(port: number, ...steps: readonly Step[]): Promise<RawPeer> {
    const peer = await RawPeer.from('127.0.0.1', port);
    await peer.sendAll(...steps);
    return peer;
  }

  /** A partner on a TLS port, with a certificate of its own, that has said `steps`; whom it meets is not its test. */
  static async openTls(port: number, cert: string, key: string, ...steps: readonly Step[]): Promise<RawPeer> {
    const socket = connectTls({ port, host: '127.0.0.1', cert, key, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const peer = RawPeer.on(socket);
    await peer.sendAll(...steps);
    return peer;
  }

  /** On a connection that is open, however it was opened. */
  static on(socket: Socket): RawPeer {
    return new RawPeer(socket);
  }

  /** A connection from another address of this machine. */
  static async from(localAddress: string, port: number, host = '127.0.0.1'): Promise<RawPeer> {
    const socket = connect({ port, host, localAddress });
    await once(socket, 'connect');
    return new RawPeer(socket);
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Sends a step in an entity of its own; with its answer, when there is one. */
  async send({ bytes, answered, name }: Step): Promise<Buffer | undefined> {
    this.write(entity(bytes(this.#y)));
    if (!answered) return undefined;
    const answer = await this.next();
    if (name === 'CONNECT') this.#y = answer?.[5] ?? 0;
    return answer;
  }

  /** One step after the other, with their answers. @returns that of the last */
  async sendAll(...steps: readonly Step[]): Promise<Buffer | undefined> {
    let answer: Buffer | undefined;
    for (const one of steps) answer = await this.send(one);
    return answer;
  }

  bytesOf({ bytes }: Step): Buffer {
    return entity(bytes(this.#y));
  }

  /** The next FPDU of the server; undefined when the connection is over. */
  async next(): Promise<Buffer | undefined> {
    for (;;) {
      if (this.#received.length >= 2) {
        const length = this.#received.readUInt16BE(0);
        if (this.#received.length >= 2 + length) {
          const answer = this.#received.subarray(2, 2 + length);
          this.#received = this.#received.subarray(2 + length);
          return answer;
        }
      }
      if (this.#over) return undefined;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Resolves when the server has closed. */
  async closed(): Promise<void> {
    while (!this.#over) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
