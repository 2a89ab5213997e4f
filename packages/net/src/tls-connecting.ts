/** TLS that this side opens. */
import { connect } from 'node:tls';
import type { TLSSocket } from 'node:tls';
import { isIP } from 'node:net';
import { SOCKET_OPTIONS, SocketTransport } from './socket-transport.js';
import { notConnected } from './tcp-transport.js';
import { TlsError, failureOfChain, failureOfError, nameMismatch, pinMismatch } from './tls-failures.js';
import type { TlsFailure } from './tls-failures.js';
import { chainOf, explainer, isOver, isRevoked, lastFlight, securityOf, verdictOf } from './tls-security.js';
import type { PeerChain, TlsClientTerms, TlsSession } from './tls-terms.js';
import type { Connect, Target, TransportSecurity } from './transport.js';

const ROLE = 'client';

/** @param terms looked up for each connection; what it rejects with is what `connect` rejects with */
export const connectTls =
  (terms: () => TlsClientTerms | Promise<TlsClientTerms>): Connect =>
  async (target) => {
    target.signal.throwIfAborted();
    const known = await terms();
    target.signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      new Handshake(known, target, resolve, reject);
    });
  };

class Handshake {
  readonly #terms: TlsClientTerms;
  readonly #target: Target;
  readonly #resolve: (value: Awaited<ReturnType<Connect>>) => void;
  readonly #reject: (error: Error) => void;
  readonly #socket: TLSSocket;
  /** Name that the certificate must have. */
  readonly #name: string;
  readonly #server: string;
  #began = performance.now();
  #roundTripMs: number | undefined;
  readonly #resumes: TlsSession | undefined;
  #chain: PeerChain = [];
  #ticket: Buffer | undefined;
  #isAccepted = false;
  #over = false;

  constructor(
    terms: TlsClientTerms,
    target: Target,
    resolve: (value: Awaited<ReturnType<Connect>>) => void,
    reject: (error: Error) => void,
  ) {
    const { host, port, signal } = target;
    this.#terms = terms;
    this.#target = target;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#name = terms.serverName ?? host;
    this.#server = `${this.#name} ${host}:${port}`;
    this.#resumes = terms.session(this.#server);
    this.#socket = connect({
      host,
      port,
      secureContext: terms.context,
      // An address is no server name (RFC 6066 §3).
      ...(isIP(this.#name) === 0 ? { servername: this.#name } : { servername: '' }),
      ...(this.#resumes === undefined ? {} : { session: this.#resumes.ticket }),
      // Checked below, where it can be put into words, before anything is sent.
      rejectUnauthorized: false,
    });
    // `connect` of node:tls passes neither option on: without the first, CONNECT waits for the ACK that the kernel of the
    // partner delays (40 ms).
    this.#socket.setNoDelay(SOCKET_OPTIONS.noDelay);
    this.#socket.setKeepAlive(SOCKET_OPTIONS.keepAlive, SOCKET_OPTIONS.keepAliveInitialDelay);
    // Nobody could take what comes with the handshake.
    this.#socket.pause();
    this.#socket.once('connectionAttempt', () => (this.#began = performance.now()));
    this.#socket.once('connect', () => (this.#roundTripMs = performance.now() - this.#began));
    this.#socket.once('error', this.#broken);
    this.#socket.once('close', this.#closed);
    // With TLS 1.2 it comes with the handshake, with 1.3 behind it: it is kept once the certificate is accepted.
    this.#socket.on('session', (ticket: Buffer) => {
      if (this.#isAccepted) terms.remember(this.#server, { ticket, chain: this.#chain });
      else this.#ticket = ticket;
    });
    this.#socket.once('secureConnect', () => {
      this.#secured().catch((error: unknown) => {
        this.#fail(
          { code: 'TLS_FAILED', text: `the handshake could not be judged: ${(error as Error).message}` },
          error,
        );
      });
    });
    signal.addEventListener('abort', this.#cancelled, { once: true });
  }

  /** @returns whether it was the first end */
  #settle(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#target.signal.removeEventListener('abort', this.#cancelled);
    return true;
  }

  #fail(failure: TlsFailure, cause?: unknown): void {
    this.#terms.forget(this.#server);
    if (this.#settle()) this.#reject(new TlsError(failure, cause));
    this.#socket.destroy();
  }

  readonly #cancelled = (): void => {
    if (this.#settle()) this.#reject(this.#target.signal.reason as Error);
    this.#socket.destroy();
  };

  readonly #broken = (error: NodeJS.ErrnoException): void => {
    const failure = this.#roundTripMs === undefined ? undefined : failureOfError(error, ROLE);
    if (failure !== undefined) this.#fail(failure, error);
    else if (this.#settle()) this.#reject(notConnected(error));
  };

  readonly #closed = (): void => {
    this.#fail({
      code: 'TLS_CLOSED',
      text: 'the partner closed the connection during the TLS handshake: its log should say why',
    });
  };

  async #secured(): Promise<void> {
    const isResumed = this.#socket.isSessionReused();
    this.#chain = isResumed && this.#resumes !== undefined ? this.#resumes.chain : chainOf(this.#socket);
    const security = securityOf(this.#socket, this.#chain);
    const refused = this.#refusal(security);
    await lastFlight();
    const failure = refused ?? (await isRevoked(this.#chain, this.#terms.revocation));
    if (failure !== undefined) this.#fail(failure);
    // The signal may have been aborted, or the partner gone, while revocation was looked up.
    if (!this.#settle()) return;
    const socket = this.#socket;
    socket.off('close', this.#closed);
    this.#isAccepted = true;
    if (this.#ticket !== undefined) {
      this.#terms.remember(this.#server, { ticket: this.#ticket, chain: this.#chain });
    }
    const transport = new SocketTransport(socket, { security, explain: explainer(ROLE) });
    socket.off('error', this.#broken);
    this.#resolve({ transport, roundTripMs: this.#roundTripMs ?? 0 });
  }

  #refusal({ peerCertificate, resumed }: TransportSecurity): TlsFailure | undefined {
    if (peerCertificate === undefined) {
      return { code: 'TLS_CERTIFICATE_REQUIRED', text: 'the partner presented no certificate' };
    }
    const { fingerprints } = this.#terms;
    if (fingerprints !== undefined) {
      return this.#terms.pins(peerCertificate) ? undefined : pinMismatch(peerCertificate, fingerprints);
    }
    // Only a session whose certificate was accepted is resumed; since then it may have run out.
    if (resumed && isOver(peerCertificate)) return failureOfChain('CERT_HAS_EXPIRED', peerCertificate, ROLE);
    if (this.#socket.authorized) return undefined;
    const verdict = codeOf(this.#socket.authorizationError);
    return verdict === 'ERR_TLS_CERT_ALTNAME_INVALID'
      ? nameMismatch(peerCertificate, this.#name)
      : failureOfChain(verdictOf(this.#socket) ?? verdict, peerCertificate, ROLE);
  }
}

/** The code is there as text, or in the error. */
const codeOf = (error: Error | string): string =>
  typeof error === 'string' ? error : ((error as NodeJS.ErrnoException).code ?? error.message);
