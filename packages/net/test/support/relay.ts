/** Stands between a requester and a server, and changes what one of them sends. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

export type Direction = 'to server' | 'to requester';
/** @param offset of `bytes` in all that this direction has carried */
export type Change = (bytes: Buffer, offset: number, direction: Direction) => Buffer;

export class Relay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Bytes carried so far. */
  readonly carried: Record<Direction, number> = { 'to server': 0, 'to requester': 0 };

  private constructor(target: number, change: Change) {
    this.#server = createServer((near) => {
      const far = connect({ port: target, host: '127.0.0.1', noDelay: true });
      this.#join(near, far, 'to server', change);
      this.#join(far, near, 'to requester', change);
    });
  }

  static async start(target: number, change: Change): Promise<Relay> {
    const relay = new Relay(target, change);
    relay.#server.listen(0, '127.0.0.1');
    await once(relay.#server, 'listening');
    return relay;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(from: Socket, to: Socket, direction: Direction, change: Change): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (bytes: Buffer) => {
      const offset = this.carried[direction];
      this.carried[direction] += bytes.length;
      if (!to.write(change(Buffer.from(bytes), offset, direction))) {
        from.pause();
        to.once('drain', () => from.resume());
      }
    });
    from.on('end', () => to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
