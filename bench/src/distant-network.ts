/** A network with a distance: a TCP proxy that passes on every byte `oneWayMs` later, each way, as fast as it came. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Bytes on their way, each way; then the sender has to wait, as on any network. */
const CAPACITY = 64 << 20;

/** One direction of one connection. */
class Pipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #delay: number;
  #underWay: { readonly due: number; readonly bytes: Buffer | undefined }[] = [];
  #bytes = 0;
  #waiting = false;

  constructor(from: Socket, to: Socket, delay: number) {
    this.#from = from;
    this.#to = to;
    this.#delay = delay;
    from.on('data', (bytes: Buffer) => this.#enter(bytes));
    from.on('end', () => this.#enter(undefined));
    from.on('error', () => to.destroy());
  }

  #enter(bytes: Buffer | undefined): void {
    this.#underWay.push({ due: performance.now() + this.#delay, bytes });
    this.#bytes += bytes?.length ?? 0;
    if (this.#bytes > CAPACITY) this.#from.pause();
    if (!this.#waiting) this.#leaveIn(this.#delay);
  }

  #leave(): void {
    this.#waiting = false;
    const now = performance.now();
    for (let [first] = this.#underWay; first !== undefined && first.due <= now; [first] = this.#underWay) {
      this.#underWay.shift();
      if (first.bytes === undefined) this.#to.end();
      else if (!this.#to.destroyed) this.#to.write(first.bytes);
      this.#bytes -= first.bytes?.length ?? 0;
    }
    if (this.#bytes <= CAPACITY && this.#from.isPaused()) this.#from.resume();
    const [next] = this.#underWay;
    if (next !== undefined) this.#leaveIn(Math.max(1, next.due - now));
  }

  #leaveIn(milliseconds: number): void {
    this.#waiting = true;
    setTimeout(() => this.#leave(), milliseconds);
  }
}

export class DistantNetwork {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /** A port of the loopback address that leads to `port`, `roundTripMs` away. */
  static async open(port: number, roundTripMs: number): Promise<DistantNetwork> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    const network = new DistantNetwork(server);
    server.on('connection', (near) => {
      const far = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        network.#sockets.add(from);
        from.once('close', () => network.#sockets.delete(from));
        new Pipe(from, to, roundTripMs / 2);
      }
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return network;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
