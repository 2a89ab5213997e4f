/** What a listener of PostgreSQL sees of a pooler in transaction mode: every answer comes, and no notification does. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** NotificationResponse. */
const NOTIFICATION = 'A'.charCodeAt(0);

export interface Pooler {
  /** Leads to the database through it. */
  readonly url: string;
  readonly lose: (isLosing: boolean) => void;
  readonly close: () => Promise<void>;
}

export const startPooler = async (databaseUrl: string): Promise<Pooler> => {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  let isLosing = false;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    let rest = Buffer.alloc(0);
    upstream.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      // A type, and a length that counts itself.
      while (rest.length >= 5 && rest.length > rest.readUInt32BE(1)) {
        const message = rest.subarray(0, 1 + rest.readUInt32BE(1));
        rest = rest.subarray(message.length);
        if (!isLosing || message[0] !== NOTIFICATION) client.write(message);
      }
    });
    client.pipe(upstream);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    lose: (is) => {
      isLosing = is;
    },
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
};
