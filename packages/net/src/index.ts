/**
 * PeSIT sessions on connections.
 *
 * Theory of operation. `transport.ts` is the port to connections. Behind it are plain TCP (`tcp-transport.ts`) and TLS
 * (`tls-accepting.ts`, `tls-connecting.ts`), the only files that know sockets, with what balancers say before either
 * (`proxy-accepting.ts`); what TLS needs of an application, certificates and
 * rules, it gets as `tls-terms.ts` makes it ready, and why it fails is said by `tls-failures.ts`. `connection.ts` ties one transport to one sans-I/O session of `protocol`: bytes in, bytes out, one timer.
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
export { LEAST_RATE, pacedSyncPoints, Rates } from './pace.js';
export type { NamedRate, Pace } from './pace.js';
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
export type { ProxyProtocol, ProxyServing } from './proxy-accepting.js';
export { serveTcp, serveTcpBehind } from './tcp-transport.js';
export { serveTls } from './tls-accepting.js';
export type { TlsServing } from './tls-accepting.js';
export { connectTls } from './tls-connecting.js';
export { TLS_FAILURES, TlsError } from './tls-failures.js';
export type { TlsFailureCode } from './tls-failures.js';
export { securityFacts } from './tls-security.js';
export { TlsClientTerms, TlsMaterialError, TlsServerTerms, suitesOf } from './tls-terms.js';
export type {
  ClientAuth,
  Revocation,
  RevocationCheck,
  TicketKeys,
  TlsClientMaterial,
  TlsIdentity,
  TlsProtocolOptions,
  TlsServerMaterial,
  TlsTrust,
  TlsVersion,
} from './tls-terms.js';
export { TransportError } from './transport.js';
export type { Connect, PeerCertificate, Serve, Transport, TransportSecurity } from './transport.js';
