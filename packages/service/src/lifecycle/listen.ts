import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { SecureContext } from 'node:tls';

import type { Logger } from '../logging.js';
import { codeOf } from '@pesit-node/ground';
import { HttpsDoor } from '../https/door.js';
import { ConnectionBound } from './connection-bound.js';

export interface ListenOptions {
  readonly host: string;
  /** 0 = the system chooses. */
  readonly port: number;
  /** At a time. Default: as many as come. */
  readonly maxConnections?: () => number;
  readonly logger?: Logger;
  /** HTTPS, with what this answers for the next handshake. Default: plain HTTP. */
  readonly secure?: () => Promise<SecureContext>;
  /** Key of the port, for the words of an error. Default `server.port`. */
  readonly portKey?: string;
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

const explain = (error: Error, { host, port, portKey = 'server.port' }: ListenOptions): ListenError => {
  const at = `${host}:${port}`;
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return new ListenError(
        `Port ${at} is in use by another process: stop it, or choose another port with --${portKey}`,
        {
          cause: error,
        },
      );
    case 'EACCES':
      return new ListenError(`Port ${at} needs more rights: choose a port above 1023 with --${portKey}`, {
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

const closer = (server: Server, door: HttpsDoor | undefined): HttpServer['close'] => {
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
      door?.close();
    }));
};

/** Leads connections to the HTTP of `server`, which does that by itself otherwise: within the bound, and through TLS where it is spoken. */
const leadIn = (server: Server, options: ListenOptions): HttpsDoor | undefined => {
  const { maxConnections = () => Infinity, logger, secure } = options;
  const bound = new ConnectionBound(maxConnections, logger);
  const [speakHttp] = server.listeners('connection') as [(socket: Socket) => void];
  server.removeListener('connection', speakHttp);
  const door = secure && new HttpsDoor({ context: secure, logger });
  server.on('connection', (socket) => {
    if (!bound.take(socket, door === undefined)) return;
    if (door === undefined) speakHttp.call(server, socket);
    else
      door.take(socket, (secured) => {
        bound.secured(socket, secured);
        speakHttp.call(server, secured);
      });
  });
  server.on('request', ({ socket }, res) => bound.asked(socket, res));
  return door;
};

/** Listens. @throws {ListenError} when the port cannot be taken. */
export const listen = (app: RequestListener, options: ListenOptions): Promise<HttpServer> =>
  new Promise((resolve, reject) => {
    let current = app;
    const server = createServer((req, res) => current(req, res));
    const close = closer(server, leadIn(server, options));
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
