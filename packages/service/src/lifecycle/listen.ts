import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Logger } from '../logging.js';
import { codeOf } from '@pesit-node/ground';
import { boundConnections } from './connection-bound.js';

export interface ListenOptions {
  readonly host: string;
  /** 0 = the system chooses. */
  readonly port: number;
  /** At a time. Default: as many as come. */
  readonly maxConnections?: () => number;
  readonly logger?: Logger;
}

export interface HttpServer {
  readonly server: Server;
  /** The port in use, also when 0 was asked for. */
  readonly port: number;
  /** From now on requests are answered by this app. */
  serve(app: RequestListener): void;
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

/** Listens. @throws {ListenError} when the port cannot be taken. */
export const listen = (app: RequestListener, options: ListenOptions): Promise<HttpServer> =>
  new Promise((resolve, reject) => {
    let current = app;
    const server = createServer((req, res) => current(req, res));
    boundConnections(server, options.maxConnections ?? (() => Infinity), options.logger);
    const close = closer(server);
    const failed = (error: Error): void => reject(explain(error, options));
    server.once('error', failed);
    server.listen(options.port, options.host, () => {
      server.off('error', failed);
      // One connection that cannot be taken must not end the process.
      server.on('error', (error) => options.logger?.error({ err: error }, 'could not take a REST connection'));
      const serve = (next: RequestListener): void => {
        current = next;
      };
      resolve({ server, port: (server.address() as AddressInfo).port, serve, close });
    });
  });
