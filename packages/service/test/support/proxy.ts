import { EventEmitter, on, once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** A TCP proxy that can be up, down (connections refused, running ones cut) or silent (nothing passes, nothing is cut). */
export class Proxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  readonly #passed = new EventEmitter();
  #silent = false;
  port = 0;

  constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
  }

  async up(): Promise<void> {
    this.#silent = false;
    for (const socket of this.#sockets) socket.resume();
    if (this.#server !== undefined) return;
    const server = createServer((near) => {
      const far = connect(this.#target);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one);
        one.on('data', (bytes: Buffer) => {
          other.write(bytes);
          if (one === near) this.#passed.emit('data', bytes);
        });
        one.on('error', () => undefined);
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        if (this.#silent) one.pause();
      }
    });
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async down(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (server === undefined) return;
    server.close();
    await once(server, 'close');
  }

  /** Resolves when bytes with this text have gone from a client to the server. */
  async passedTowardsServer(text: string): Promise<void> {
    for await (const [bytes] of on(this.#passed, 'data') as AsyncIterable<[Buffer]>) {
      if (bytes.includes(text)) return;
    }
  }

  silent(): void {
    this.#silent = true;
    for (const socket of this.#sockets) socket.pause();
  }
}
