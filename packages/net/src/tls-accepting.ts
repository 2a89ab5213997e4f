/**
 * TLS that partners open. A connection is half open until its handshake is over: those are bounded in number and time, and
 * none of them holds up another. A connection whose first byte shows no TLS is named and closed at once.
 */
import { TLSSocket } from 'node:tls';
import type { SecureContext } from 'node:tls';
import type { Socket } from 'node:net';
import { Crowd } from './crowd.js';
import { nameOf } from './first-bytes.js';
import { ProxyDoor } from './proxy-accepting.js';
import type { ProxyServing } from './proxy-accepting.js';
import { SocketTransport } from './socket-transport.js';
import { SocketServer } from './tcp-transport.js';
import { certificateMissing, failureOfChain, failureOfError } from './tls-failures.js';
import type { TlsFailure } from './tls-failures.js';
import { chainOfClient, explainer, isOver, isRevoked, lastFlight, securityOf, verdictOf } from './tls-security.js';
import type { ClientAuth, TlsServerTerms } from './tls-terms.js';
import type { Arrivals, Serve, TransportSecurity } from './transport.js';

export interface TlsServing {
  /** Looked up for each handshake; sessions that are open keep theirs. Rejection: it fails, with the words of the error. */
  readonly terms: () => TlsServerTerms | Promise<TlsServerTerms>;
  /** Milliseconds from the connection to the end of the handshake. Default 10,000. */
  readonly handshakeTimeout?: number;
  /** Handshakes at a time; beyond it the oldest of the address that has most gives way. Default 512. */
  readonly maxHandshakes?: number;
  /** Default: no connection has a header of the PROXY protocol before its handshake. */
  readonly proxy?: ProxyServing;
}

const ROLE = 'server';
/** Type of a record of TLS that carries a handshake (RFC 8446 §5.1): the first byte of a ClientHello. */
const HANDSHAKE = 0x16;
/** Type, version and length of a record. */
const RECORD_HEADER_BYTES = 5;
/** The longest record that is not encrypted (RFC 8446 §5.1). */
const MAX_RECORD_BYTES = RECORD_HEADER_BYTES + 16_384;

export const serveTls =
  (serving: TlsServing): Serve =>
  (arrivals) => {
    const halfOpen = new HalfOpen(serving, arrivals);
    const door = new ProxyDoor(serving.proxy, arrivals.failed, (socket, address) => {
      halfOpen.take(socket, address);
    });
    return new SocketServer(
      (socket) => {
        door.take(socket);
      },
      arrivals.failed,
      () => {
        door.close();
      },
    );
  };

/** Connections whose handshake is not over. */
class HalfOpen {
  readonly #serving: TlsServing;
  readonly #arrivals: Arrivals;
  readonly #crowd = new Crowd<Handshake>();

  constructor(serving: TlsServing, arrivals: Arrivals) {
    this.#serving = serving;
    this.#arrivals = arrivals;
  }

  take(socket: Socket, address: string): void {
    const { terms, handshakeTimeout = 10_000, maxHandshakes = 512 } = this.#serving;
    if (this.#crowd.size >= maxHandshakes) {
      const text = `${maxHandshakes} TLS handshakes wait for their partners: the oldest of the address that has most gives way`;
      this.#crowd.oldest()?.fail({ code: 'TLS_HANDSHAKE_TIMEOUT', text });
    }
    const handshake: Handshake = new Handshake(socket, terms, handshakeTimeout, {
      secured: (secured, security) => {
        this.#crowd.delete(handshake);
        const options = { remoteAddress: address, security, explain: explainer(ROLE) };
        this.#arrivals.arrived(new SocketTransport(secured, options));
      },
      failed: (failure) => {
        this.#crowd.delete(handshake);
        if (failure !== undefined) this.#arrivals.failed(address, failure.text, failure.code);
      },
    });
    this.#crowd.add(handshake, address);
    handshake.start();
  }
}

interface HandshakeEnd {
  readonly secured: (socket: TLSSocket, security: TransportSecurity) => void;
  /** undefined: the partner left without a byte, as health checks do. */
  readonly failed: (failure: TlsFailure | undefined) => void;
}

class Handshake {
  readonly #socket: Socket;
  readonly #lookUp: TlsServing['terms'];
  readonly #end: HandshakeEnd;
  readonly #timer: NodeJS.Timeout;
  #secured: TLSSocket | undefined;
  readonly #hello: Buffer[] = [];
  #helloBytes = 0;
  #over = false;

  /** @param socket paused */
  constructor(socket: Socket, lookUp: TlsServing['terms'], timeout: number, end: HandshakeEnd) {
    this.#socket = socket;
    this.#lookUp = lookUp;
    this.#end = end;
    this.#timer = setTimeout(() => {
      const got = this.#isHeard ? 'the handshake was not over' : 'nothing was received';
      this.fail({ code: 'TLS_HANDSHAKE_TIMEOUT', text: `no TLS handshake within ${timeout} ms: ${got}` });
    }, timeout);
  }

  start(): void {
    this.#socket.on('error', this.#broken);
    this.#socket.on('close', this.#closed);
    this.#socket.on('readable', this.#look);
  }

  fail(failure: TlsFailure | undefined): void {
    const isFirst = this.#settle();
    this.#secured?.destroy();
    this.#socket.destroy();
    if (isFirst) this.#end.failed(failure);
  }

  #settle(): boolean {
    if (this.#over) return false;
    this.#over = true;
    clearTimeout(this.#timer);
    return true;
  }

  get #isHeard(): boolean {
    return this.#helloBytes > 0;
  }

  readonly #look = (): void => {
    const bytes = this.#socket.read() as Buffer | null;
    if (bytes === null) return;
    this.#hello.push(bytes);
    this.#helloBytes += bytes.length;
    const [first = bytes] = this.#hello;
    if (first[0] !== HANDSHAKE) {
      this.#socket.off('readable', this.#look);
      const text = `${nameOf(bytes)}, and this port is for TLS: switch TLS on there, or use the plain port`;
      this.fail({ code: 'TLS_NOT_SPOKEN', text: `${text}; first bytes ${bytes.subarray(0, 16).toString('hex')}` });
      return;
    }
    // The ticket of a session, which decides on the context, may come in a packet of its own.
    if (!isWholeRecord(this.#hello, this.#helloBytes)) return;
    this.#socket.off('readable', this.#look);
    const hello = Buffer.concat(this.#hello);
    this.#socket.unshift(hello);
    void this.#begin(hello);
  };

  async #begin(hello: Buffer): Promise<void> {
    let terms: TlsServerTerms;
    let context: SecureContext;
    try {
      terms = await this.#lookUp();
      context = terms.contextFor(hello);
    } catch (error) {
      this.fail({ code: 'TLS_FAILED', text: (error as Error).message });
      return;
    }
    if (!this.#over) this.#secure(terms, context);
  }

  #secure(terms: TlsServerTerms, context: SecureContext): void {
    const { clientAuth } = terms;
    const secured = new TLSSocket(this.#socket, {
      isServer: true,
      secureContext: context,
      requestCert: clientAuth !== 'NONE',
      // Tells a partner without certificate by an alert that it needs one; what it presents is judged below.
      rejectUnauthorized: clientAuth === 'NEED',
    });
    this.#secured = secured;
    secured.on('error', this.#broken);
    secured.on('close', this.#closed);
    secured.once('secure', () => {
      // Nobody could take what comes now, and errors are told from here on: what `tls.Server` does for its sockets.
      secured.pause();
      (secured as unknown as { _releaseControl(): boolean })._releaseControl();
      this.#judge(secured, terms).catch((error: unknown) => {
        this.fail({ code: 'TLS_FAILED', text: `the handshake could not be judged: ${(error as Error).message}` });
      });
    });
  }

  readonly #broken = (error: Error): void => {
    // Health checks of balancers may end with a reset.
    if (!this.#isHeard) this.fail(undefined);
    else this.fail(failureOfError(error, ROLE) ?? { code: 'TLS_FAILED', text: `TLS failed: ${error.message}` });
  };

  readonly #closed = (): void => {
    const text = 'the partner closed the connection during the TLS handshake: its log should say why';
    this.fail(this.#isHeard ? { code: 'TLS_CLOSED', text } : undefined);
  };

  async #judge(secured: TLSSocket, { clientAuth, revocation }: TlsServerTerms): Promise<void> {
    const chain = chainOfClient(secured);
    const security = securityOf(secured, chain);
    const refused = refusalOf(secured, security, clientAuth);
    await lastFlight();
    const failure = refused ?? (await isRevoked(chain, revocation));
    if (failure !== undefined) this.fail(failure);
    // The partner may be gone since.
    if (!this.#settle()) return;
    this.#end.secured(secured, security);
    secured.off('error', this.#broken);
    secured.off('close', this.#closed);
    this.#socket.off('close', this.#closed);
  }
}

const refusalOf = (
  secured: TLSSocket,
  { peerCertificate, resumed }: TransportSecurity,
  clientAuth: ClientAuth,
): TlsFailure | undefined => {
  if (clientAuth === 'NONE') return undefined;
  if (peerCertificate === undefined) return clientAuth === 'NEED' ? certificateMissing(ROLE) : undefined;
  if (resumed && isOver(peerCertificate)) return failureOfChain('CERT_HAS_EXPIRED', peerCertificate, ROLE);
  const verdict = verdictOf(secured);
  return verdict === undefined ? undefined : failureOfChain(verdict, peerCertificate, ROLE);
};

/** Whether all of the first record is there; one that is longer than any may be is left to TLS, which refuses it. */
const isWholeRecord = (parts: readonly Buffer[], bytes: number): boolean => {
  if (bytes < RECORD_HEADER_BYTES) return false;
  const header = Buffer.concat(parts.slice(0, RECORD_HEADER_BYTES)).subarray(0, RECORD_HEADER_BYTES);
  const wanted = RECORD_HEADER_BYTES + header.readUInt16BE(3);
  return bytes >= wanted || wanted > MAX_RECORD_BYTES;
};
