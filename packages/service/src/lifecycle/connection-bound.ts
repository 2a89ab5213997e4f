import type { Server } from 'node:http';
import type { Socket } from 'node:net';

import { LogBudget } from '../log-budget.js';
import type { Logger } from '../logging.js';

interface Entry {
  readonly address: string;
  /** Requests that are not answered yet. */
  requests: number;
}

/** Without Express: the connection is closed before anything of a request is read. */
const FULL_BODY = JSON.stringify({
  error: 'SERVICE_UNAVAILABLE',
  message: 'Too many requests run at a time (http.max-connections): try again',
});
const FULL =
  'HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nCache-Control: no-store\r\n' +
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(FULL_BODY)}\r\n\r\n${FULL_BODY}`;

/**
 * Keeps the connections of an HTTP server within a bound, so that they cannot take the descriptors that the rest of the process
 * lives on. A newcomer beyond it takes the place of the oldest connection without a request, of the address that holds most of
 * them: who opens many loses his own. When all have a request the newcomer is answered 503.
 */
export const boundConnections = (server: Server, max: () => number, logger: Logger | undefined): void => {
  const open = new Map<Socket, Entry>();
  const budget = new LogBudget({ perKey: 1 });

  const say = (what: string): void => {
    const notLogged = budget.take(what);
    if (notLogged === undefined) return;
    logger?.warn({ connections: open.size, max: max(), ...(notLogged > 0 ? { notLogged } : {}) }, what);
  };

  server.on('connection', (socket) => {
    if (open.size >= max()) {
      const victim = idleOfBusiest(open);
      if (victim === undefined) {
        say('REST connection refused: all have requests that run (http.max-connections)');
        socket.on('error', () => undefined);
        socket.end(FULL, () => socket.destroy());
        return;
      }
      say('REST connections without a request closed to make room (http.max-connections)');
      open.delete(victim);
      victim.destroy();
    }
    open.set(socket, { address: socket.remoteAddress ?? '', requests: 0 });
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', ({ socket }, res) => {
    const entry = open.get(socket);
    if (entry === undefined) return;
    entry.requests++;
    res.once('close', () => entry.requests--);
  });
};

const idleOfBusiest = (open: ReadonlyMap<Socket, Entry>): Socket | undefined => {
  const idle = new Map<string, { readonly oldest: Socket; count: number }>();
  for (const [socket, { address, requests }] of open) {
    if (requests > 0) continue;
    const held = idle.get(address);
    if (held === undefined) idle.set(address, { oldest: socket, count: 1 });
    else held.count++;
  }
  let most: { readonly oldest: Socket; readonly count: number } | undefined;
  for (const held of idle.values()) if (most === undefined || held.count > most.count) most = held;
  return most?.oldest;
};
