import type { ServerResponse } from 'node:http';
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
  'X-Content-Type-Options: nosniff\r\n' +
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(FULL_BODY)}\r\n\r\n${FULL_BODY}`;

/**
 * Keeps the connections of an HTTP server within a bound, so that they cannot take the descriptors that the rest of the process
 * lives on. A newcomer beyond it takes the place of the oldest connection without a request, of the address that holds most of
 * them: who opens many loses his own. When all have a request the newcomer is answered 503. A connection whose TLS handshake is not
 * over has no request.
 */
export class ConnectionBound {
  readonly #max: () => number;
  readonly #logger: Logger | undefined;
  readonly #open = new Map<Socket, Entry>();
  /** Connections of those that TLS secures. */
  readonly #below = new WeakMap<Socket, Socket>();
  readonly #budget = new LogBudget({ perKey: 1 });

  constructor(max: () => number, logger: Logger | undefined) {
    this.#max = max;
    this.#logger = logger;
  }

  /** @returns whether it is taken; otherwise it is closed, with an answer where `isPlain` */
  take(socket: Socket, isPlain: boolean): boolean {
    if (this.#open.size >= this.#max()) {
      const victim = idleOfBusiest(this.#open);
      if (victim === undefined) {
        this.#say('REST connection refused: all have requests that run (http.max-connections)');
        socket.on('error', () => undefined);
        if (isPlain) socket.end(FULL, () => socket.destroy());
        else socket.destroy();
        return false;
      }
      this.#say('REST connections without a request closed to make room (http.max-connections)');
      this.#open.delete(victim);
      victim.destroy();
    }
    this.#open.set(socket, { address: socket.remoteAddress ?? '', requests: 0 });
    socket.once('close', () => this.#open.delete(socket));
    return true;
  }

  /** Requests come on `secured` from now on. */
  secured(socket: Socket, secured: Socket): void {
    this.#below.set(secured, socket);
  }

  /** A request has come on this connection, plain or secured. */
  asked(socket: Socket, res: ServerResponse): void {
    const entry = this.#open.get(this.#below.get(socket) ?? socket);
    if (entry === undefined) return;
    entry.requests++;
    res.once('close', () => entry.requests--);
  }

  #say(what: string): void {
    const notLogged = this.#budget.take(what);
    if (notLogged === undefined) return;
    const facts = { connections: this.#open.size, max: this.#max(), ...(notLogged > 0 ? { notLogged } : {}) };
    this.#logger?.warn(facts, what);
  }
}

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
