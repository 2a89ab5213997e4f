/** Results of a handshake, and words for the end of a connection that it secures. */
import { X509Certificate } from 'node:crypto';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { peerCertificateOf } from './peer-certificate.js';
import { TlsError, failureOfError } from './tls-failures.js';
import type { TlsFailure, TlsRole } from './tls-failures.js';
import type { PeerChain, RevocationCheck } from './tls-terms.js';
import type { PeerCertificate, TransportSecurity } from './transport.js';

/** Terms of a handshake that is over. @param chain of the peer, itself first; empty: it showed none */
export const securityOf = (socket: TLSSocket, [certificate]: PeerChain): TransportSecurity => ({
  protocol: socket.getProtocol() ?? 'unknown',
  cipher: socket.getCipher().standardName,
  resumed: socket.isSessionReused(),
  peerCertificate: certificate === undefined ? undefined : peerCertificateOf(certificate),
});

export const isOver = ({ notAfter }: PeerCertificate): boolean => notAfter.getTime() <= Date.now();

/** Terms of a handshake as fields of a log line; none where nothing secures the connection. */
export const securityFacts = (security: TransportSecurity | undefined): Readonly<Record<string, string>> => {
  if (security === undefined) return {};
  const { protocol: tls, cipher, peerCertificate } = security;
  return { tls, cipher, ...(peerCertificate && { certificateFingerprint: peerCertificate.fingerprint }) };
};

/**
 * The fault that OpenSSL found in the chain of the peer, by Node's name for it, else in OpenSSL's own words; undefined: it is good. Node keeps
 * it to itself where nobody goes through `tls.Server`, and names few faults.
 */
export const verdictOf = (socket: TLSSocket): string | undefined => {
  const { _handle: handle } = socket as unknown as {
    readonly _handle: { verifyError(): (Error & { readonly code: string }) | null | undefined } | null;
  };
  if (handle === null) return 'the connection is gone';
  const fault = handle.verifyError() ?? undefined;
  return fault?.code === 'UNSPECIFIED' ? fault.message : fault?.code;
};

/** Chains are short; one that names itself as its issuer ends. */
const MAX_CHAIN = 10;

/**
 * The certificate of the peer, and those above it as far as they are known. Not by `getPeerX509Certificate`, which takes the
 * certificate out of the session of a client: the next call shows its issuer.
 */
export const chainOf = (socket: TLSSocket): PeerChain => {
  const chain: X509Certificate[] = [];
  let next = socket.getPeerCertificate(true) as DetailedPeerCertificate | undefined;
  // An empty object where there is no certificate.
  while (next?.raw !== undefined && chain.length < MAX_CHAIN) {
    chain.push(new X509Certificate(next.raw));
    const { issuerCertificate }: { readonly issuerCertificate: DetailedPeerCertificate | undefined } = next;
    next = issuerCertificate === next ? undefined : issuerCertificate;
  }
  return chain;
};

/**
 * The same at a server, where a session that is resumed has the certificate of the peer alone. TLS has read it already: to have it
 * written out and read again cost a seventh of the processor time of such a session, from its connection to RELCONF.
 */
export const chainOfClient = (socket: TLSSocket): PeerChain => {
  if (!socket.isSessionReused()) return chainOf(socket);
  const certificate = socket.getPeerX509Certificate();
  return certificate === undefined ? [] : [certificate];
};

/** Why the certificate of the peer is not accepted, though its chain is good; a question that fails refuses it too. */
export const isRevoked = async (
  chain: PeerChain,
  check: RevocationCheck | undefined,
): Promise<TlsFailure | undefined> => {
  if (check === undefined || chain.length === 0) return undefined;
  try {
    return await check(chain);
  } catch (error) {
    return {
      code: 'TLS_REVOCATION_UNKNOWN',
      text: `whether the certificate of the partner was revoked could not be found out (${(error as Error).message})`,
    };
  }
};

/** Puts what ends a secured connection into words: with TLS 1.3 a partner may refuse our certificate after the handshake. */
export const explainer =
  (role: TlsRole) =>
  (error: NodeJS.ErrnoException): Error => {
    if (error.code?.startsWith('ERR_SSL_') !== true) return error;
    const failure = failureOfError(error, role);
    return failure === undefined ? error : new TlsError(failure, error);
  };

/**
 * The last flight of a handshake, with the session tickets of TLS 1.3, leaves in the turn in which it is over, and a write of TLS itself
 * takes the news of a reset along without a word: the peer then seems to have ended in peace. From the next turn on a reset is seen.
 */
export const lastFlight = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
