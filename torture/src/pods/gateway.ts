/** TCP in front of one or more addresses: each connection goes to the next one that takes it. It can be cut. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export interface Address {
  readonly host: string;
  readonly port: number;
}

const dial = (address: Address): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(address);
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });

export class Gateway {
  #targets: readonly Address[];
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #turn = 0;
  port = 0;

  /** Not there before `open`. */
  constructor(targets: readonly Address[]) {
    this.#targets = targets;
  }

  async open(): Promise<void> {
    if (this.#server !== undefined) return;
    const server = createServer({ pauseOnConnect: true }, (near) => void this.#pass(near));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Breaks all connections, and takes none until `open`. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(server, 'close');
  }

  /** From the next connection on. */
  leadTo(targets: readonly Address[]): void {
    this.#targets = targets;
  }

  async #pass(near: Socket): Promise<void> {
    near.on('error', () => undefined);
    this.#keep(near);
    const far = await this.#upstream();
    if (far === undefined || near.destroyed) {
      far?.destroy();
      near.destroy();
      return;
    }
    far.on('error', () => undefined);
    this.#keep(far);
    far.once('close', () => near.destroy());
    near.once('close', () => far.destroy());
    near.pipe(far);
    far.pipe(near);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Whether one of the addresses takes a connection now. */
  async leadsSomewhere(): Promise<boolean> {
    const socket = await this.#upstream();
    socket?.destroy();
    return socket !== undefined;
  }

  async #upstream(): Promise<Socket | undefined> {
    const from = this.#turn++ % this.#targets.length;
    for (const target of [...this.#targets.slice(from), ...this.#targets.slice(0, from)]) {
      const socket = await dial(target).catch(() => undefined);
      if (socket !== undefined) return socket;
    }
    return undefined;
  }
}
