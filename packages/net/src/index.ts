/**
 * PeSIT sessions on connections.
 *
 * Theory of operation. `transport.ts` is the port to connections, `tcp-transport.ts` plain TCP behind it and the only file that
 * knows sockets. `connection.ts` ties one transport to one sans-I/O session of `protocol`: bytes in, bytes out, one timer.
 * `listener.ts` accepts partners, finds out what they speak (`identification.ts` with the pure `detection.ts`) and hands every
 * request to a `ServerHandler` (`server-connection.ts`, request by request in `partner-requests.ts`); `requester.ts` opens
 * sessions (`opening.ts`) and drives files and messages through them, answer by answer (`conversation.ts`). Both leave the
 * data of a file to `file-data.ts`, which follows a RESYN too, and that to `article-intake.ts` and `article-outflow.ts`:
 * articles to and from `storage`, through the interfaces of `protocol`, with back-pressure from disk to peer and from peer
 * to disk, into and out of buffers that are used again (`receive-buffers.ts`). An error that an application throws ends a request,
 * a transfer or a session, never the process.
 */
export type { WireObserver } from './connection.js';
export { dataLimits } from './data-limits.js';
export type { DataLimits } from './data-limits.js';
export { decodePreconnectionAnswer, detect, encodePreconnection } from './detection.js';
export type { Detection } from './detection.js';
export type { ConnectIndication, Preconnection, ServerConnection, ServerHandler } from './handler.js';
export { PesitListener } from './listener.js';
export type { ListenerOptions } from './listener.js';
export { networkOf } from './network.js';
export { PesitRequester } from './requester.js';
export type {
  MessageReply,
  PartnerTexts,
  ReceiveFile,
  RequesterOptions,
  SendFile,
  SendMessage,
  TransferTotals,
} from './requester-types.js';
