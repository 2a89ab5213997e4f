/**
 * PeSIT sessions on sockets.
 *
 * Theory of operation. `connection.ts` ties one socket to one sans-I/O session of `protocol`: bytes in, bytes out, one
 * timer. `listener.ts` accepts partners, recognises what they speak (`detection.ts`) and hands every request to a
 * `ServerHandler`; `requester.ts` opens sessions and drives files through them. Both share `data-pump.ts`: articles to and from
 * `storage`, through the interfaces of `protocol`, with back-pressure from disk to socket and from socket to disk.
 */
export { decodePreconnectionAnswer, detect, encodePreconnection } from './detection.js';
export type { Detection } from './detection.js';
export type { ConnectIndication, Preconnection, ServerConnection, ServerHandler } from './handler.js';
export { PesitListener } from './listener.js';
export type { ListenerOptions } from './listener.js';
export { PesitRequester } from './requester.js';
export type { ReceiveFile, RequesterOptions, SendFile, TransferTotals } from './requester.js';
