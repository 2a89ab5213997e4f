/** A network that fails on purpose: each connection may be cut after so many bytes. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface Cut {
  /** Whose bytes are counted. */
  readonly from: 'client' | 'server';
  readonly afterBytes: number;
}

/** @param cuts one a connection, in their order; undefined, or none left: the connection is not cut */
export const startProxy = async (port: number, cuts: readonly (Cut | undefined)[]) => {
  const left = [...cuts];
  const sockets = new Set<Socket>();
  const bytes: { fromClient: number; fromServer: number }[] = [];
  const proxy = createServer((client) => {
    const cut = left.shift();
    const server = connect(port, '127.0.0.1');
    const count = { fromClient: 0, fromServer: 0 };
    bytes.push(count);
    const end = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const [from, to, name, key] of [
      [client, server, 'client', 'fromClient'],
      [server, client, 'server', 'fromServer'],
    ] as const) {
      sockets.add(from);
      from.on('error', end);
      from.on('close', () => {
        sockets.delete(from);
        end();
      });
      from.on('data', (data) => {
        const room = cut?.from === name ? cut.afterBytes - count[key] : Infinity;
        count[key] += data.length;
        to.write(data.subarray(0, room));
        if (data.length < room) return;
        // What was let through still arrives.
        to.end();
        from.destroy();
      });
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    port: (proxy.address() as AddressInfo).port,
    /** Of each connection, in order. */
    bytes,
    /** Cuts every connection. */
    drop: (): void => {
      for (const socket of sockets) socket.destroy();
    },
    close: async (): Promise<void> => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, 'close');
    },
  };
};
