import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { codeOf } from '../thrown.js';

export interface ListenOptions {
  readonly host: string;
  /** 0 = the system chooses. */
  readonly port: number;
}

export interface HttpServer {
  readonly server: Server;
  /** The port in use, also when 0 was asked for. */
  readonly port: number;
  /** Takes no new requests, lets running ones end for `limitMs` (default 5000), then cuts them. Idempotent. */
  close(limitMs?: number): Promise<void>;
}

/** The service cannot listen; the message names the flag to change. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
}

const explain = (error: Error, { host, port }: ListenOptions): ListenError => {
  const at = `${host}:${port}`;
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new ListenError(
        `Port ${at} is in use by another process: stop it, or choose another port with --server.port`,
        {
          cause: error,
        },
      );
    case 'EACCES':
      return new ListenError(`Port ${at} needs more rights: choose a port above 1023 with --server.port`, {
        cause: error,
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ListenError(`${host} is no address of this machine: choose another with --server.host`, {
        cause: error,
      });
    default:
      return new ListenError(`Cannot listen on ${at}: ${error.message}`, { cause: error });
  }
};

const closer = (server: Server): HttpServer['close'] => {
  let closing: Promise<void> | undefined;
  // Node closes connections that are idle when `close` is called; those in a request would stay open after it.
  server.on('request', (_req, res) => {
    res.on('close', () => {
      if (closing !== undefined) server.closeIdleConnections();
    });
  });
  return (limitMs = 5000) =>
    (closing ??= new Promise((resolve) => {
      const timer = setTimeout(() => server.closeAllConnections(), limitMs);
      server.close(() => {
        clearTimeout(timer);
        resolve();
      });
      server.closeIdleConnections();
    }));
};

/** Listens. @throws {ListenError} when the port cannot be had. */
export const listen = (app: RequestListener, options: ListenOptions): Promise<HttpServer> =>
  new Promise((resolve, reject) => {
    const server = createServer(app);
    const close = closer(server);
    server.once('error', (error) => reject(explain(error, options)));
    server.listen(options.port, options.host, () => {
      resolve({ server, port: (server.address() as AddressInfo).port, close });
    });
  });
