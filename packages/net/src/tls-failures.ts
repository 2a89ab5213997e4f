/**
 * Why a TLS connection was not made, for an operator: one code a reason, words that say whose certificate or setting it is and
 * what to change, and whether another attempt makes sense. OpenSSL knows two tellers: its own checks, and the alerts of the peer
 * (RFC 8446 §6); what the peer says of a certificate is about ours.
 */
import { TransportError } from './transport.js';
import type { PeerCertificate } from './transport.js';

/** Each code with what it is about: the one who waits and tries again mends only what is `passing`. */
export const TLS_FAILURES = {
  TLS_UNKNOWN_CA: 'certificate',
  TLS_CERTIFICATE_EXPIRED: 'certificate',
  TLS_CERTIFICATE_NOT_YET_VALID: 'certificate',
  TLS_CERTIFICATE_REVOKED: 'certificate',
  TLS_CERTIFICATE_INVALID: 'certificate',
  TLS_CERTIFICATE_REQUIRED: 'certificate',
  TLS_NAME_MISMATCH: 'certificate',
  TLS_PIN_MISMATCH: 'certificate',
  TLS_REVOCATION_UNKNOWN: 'passing',
  TLS_NO_COMMON_PROTOCOL: 'terms',
  TLS_NO_COMMON_CIPHER: 'terms',
  TLS_NOT_SPOKEN: 'terms',
  TLS_HANDSHAKE_REFUSED: 'terms',
  TLS_HANDSHAKE_TIMEOUT: 'passing',
  TLS_CLOSED: 'passing',
  TLS_FAILED: 'passing',
} as const satisfies Record<string, 'certificate' | 'terms' | 'passing'>;

export type TlsFailureCode = keyof typeof TLS_FAILURES;

/** Which side of the handshake this one is. */
export type TlsRole = 'client' | 'server';

export interface TlsFailure {
  readonly code: TlsFailureCode;
  /** A sentence without its end. */
  readonly text: string;
}

/** A connection that TLS did not let through. */
export class TlsError extends TransportError {
  readonly code: TlsFailureCode;

  constructor({ code, text }: TlsFailure, cause: unknown) {
    super(text, 'handshake', cause);
    this.name = 'TlsError';
    this.code = code;
  }

  get kind(): 'certificate' | 'terms' | 'passing' {
    return TLS_FAILURES[this.code];
  }
}

const OURS = { client: 'the remote server', server: 'the listener' } as const;

/** Names are the peer's: as long as it likes. */
const MAX_NAME = 200;
const short = (name: string): string => (name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME)}…`);

const shown = (certificate: PeerCertificate | undefined): string =>
  certificate === undefined
    ? 'the certificate of the partner'
    : `the certificate of the partner (${short(certificate.subject) || 'no subject'}, issued by ${short(certificate.issuer) || 'nobody'})`;

const day = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, 'Z');

/** A verdict of OpenSSL, or of Node, on the chain that the peer has presented; `UNABLE_TO_…` as Node spells it. */
export const failureOfChain = (
  verdict: string,
  certificate: PeerCertificate | undefined,
  role: TlsRole,
  now = new Date(),
): TlsFailure => {
  const whose = shown(certificate);
  const truststore = `the truststore of ${OURS[role]} (truststoreName)`;
  switch (verdict) {
    case 'CERT_HAS_EXPIRED':
      return certificate !== undefined && certificate.notAfter <= now
        ? {
            code: 'TLS_CERTIFICATE_EXPIRED',
            text: `${whose} has expired on ${day(certificate.notAfter)}: the partner has to present a new one`,
          }
        : {
            code: 'TLS_CERTIFICATE_EXPIRED',
            text: `a CA above ${whose} has expired: the partner has to present a new chain, or ${truststore} needs the new CA; check the clock of this machine`,
          };
    case 'CERT_NOT_YET_VALID':
      return certificate !== undefined && certificate.notBefore > now
        ? {
            code: 'TLS_CERTIFICATE_NOT_YET_VALID',
            text: `${whose} is valid only from ${day(certificate.notBefore)} on: the partner has to present the earlier one; check the clock of this machine`,
          }
        : {
            code: 'TLS_CERTIFICATE_NOT_YET_VALID',
            text: `a CA above ${whose} is not yet valid: check the clock of this machine`,
          };
    case 'CERT_REVOKED':
      return { code: 'TLS_CERTIFICATE_REVOKED', text: `${whose} was revoked by its CA: the partner needs a new one` };
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      return {
        code: 'TLS_UNKNOWN_CA',
        text: `${whose} is self-signed and not in ${truststore}: put it there, or let the partner use one of a CA that is`,
      };
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'CERT_UNTRUSTED':
      return {
        code: 'TLS_UNKNOWN_CA',
        text: `no CA of ${truststore} stands behind ${whose}: put the CA there, or let the partner send the certificates between`,
      };
    case 'INVALID_PURPOSE': {
      const use = role === 'server' ? 'clientAuth' : 'serverAuth';
      return {
        code: 'TLS_CERTIFICATE_INVALID',
        text: `${whose} is not meant for this (extended key usage without ${use}): the partner needs another one`,
      };
    }
    case 'permitted subtree violation':
    case 'excluded subtree violation':
      return {
        code: 'TLS_CERTIFICATE_INVALID',
        text: `${whose} has a name for which a CA above it may not issue (name constraints): the partner needs another one`,
      };
    default:
      return { code: 'TLS_CERTIFICATE_INVALID', text: `${whose} cannot be accepted (${verdict})` };
  }
};

export const nameMismatch = (certificate: PeerCertificate | undefined, name: string): TlsFailure => {
  const names = certificate?.subjectAltNames ?? [];
  const has = names.length === 0 ? 'has no names (SAN)' : `is for ${names.slice(0, 10).map(short).join(', ')}`;
  return {
    code: 'TLS_NAME_MISMATCH',
    text: `${shown(certificate)} ${has}, and ${name} was called: correct host, set tlsServerName to a name of the certificate, or pin it (certificateFingerprint)`,
  };
};

export const pinMismatch = (certificate: PeerCertificate | undefined, pins: readonly string[]): TlsFailure => ({
  code: 'TLS_PIN_MISMATCH',
  text: `${shown(certificate)} has the fingerprint ${certificate?.fingerprint ?? 'unknown'}, and certificateFingerprint asks for ${pins.join(' or ')}: if the partner has changed its certificate and you have this from a trusted source, set it`,
});

export const certificateMissing = (role: TlsRole): TlsFailure =>
  role === 'server'
    ? {
        code: 'TLS_CERTIFICATE_REQUIRED',
        text: 'the partner presented no certificate, and sslClientAuth is NEED: it has to present one, or set sslClientAuth to WANT',
      }
    : { code: 'TLS_CERTIFICATE_REQUIRED', text: 'the partner presented no certificate' };

/** Names of OpenSSL for the alerts of the peer, and for its own reasons, without their prefix. */
const REASONS: Readonly<Record<string, (role: TlsRole) => TlsFailure>> = {
  UNSUPPORTED_PROTOCOL: (role) => ({
    code: 'TLS_NO_COMMON_PROTOCOL',
    text: `the partner offers no version of TLS that ssl.protocol allows here: ${role === 'server' ? 'it' : 'the other side'} has to speak TLS 1.2 or 1.3`,
  }),
  PROTOCOL_VERSION: () => ({
    code: 'TLS_NO_COMMON_PROTOCOL',
    text: 'the partner refuses the versions of TLS that ssl.protocol allows here: both sides need TLS 1.2 or 1.3',
  }),
  NO_SHARED_CIPHER: () => ({
    code: 'TLS_NO_COMMON_CIPHER',
    text: 'both sides have no cipher suite in common that fits the certificate: compare ssl.cipher-suites with the other side, and the key type of the certificate (RSA or EC)',
  }),
  HANDSHAKE_FAILURE: () => ({
    code: 'TLS_NO_COMMON_CIPHER',
    text: 'the partner broke the handshake off (handshake_failure): it shares no cipher suite with ssl.cipher-suites, or it wants a certificate of ours (keystoreName)',
  }),
  INSUFFICIENT_SECURITY: () => ({
    code: 'TLS_NO_COMMON_CIPHER',
    text: 'the partner wants stronger cipher suites than ours: extend ssl.cipher-suites',
  }),
  CERTIFICATE_REQUIRED: () => ({
    code: 'TLS_CERTIFICATE_REQUIRED',
    text: 'the partner wants a certificate of ours and got none: set keystoreName',
  }),
  PEER_DID_NOT_RETURN_A_CERTIFICATE: certificateMissing,
  UNKNOWN_CA: () => ({
    code: 'TLS_UNKNOWN_CA',
    text: 'the partner does not know the CA of our certificate: it has to trust that CA, and the keystore has to hold the certificates between',
  }),
  CERTIFICATE_EXPIRED: () => ({
    code: 'TLS_CERTIFICATE_EXPIRED',
    text: 'the partner says that our certificate has expired: renew the keystore; check both clocks',
  }),
  CERTIFICATE_REVOKED: () => ({
    code: 'TLS_CERTIFICATE_REVOKED',
    text: 'the partner says that our certificate was revoked: the keystore needs a new one',
  }),
  BAD_CERTIFICATE: () => refusedOurs('bad_certificate'),
  CERTIFICATE_UNKNOWN: () => refusedOurs('certificate_unknown'),
  UNSUPPORTED_CERTIFICATE: () => refusedOurs('unsupported_certificate'),
  ACCESS_DENIED: () => refusedOurs('access_denied'),
  UNRECOGNIZED_NAME: () => ({
    code: 'TLS_HANDSHAKE_REFUSED',
    text: 'the partner does not know the name that was called: correct tlsServerName',
  }),
  WRONG_VERSION_NUMBER: () => notSpoken(),
  HTTP_REQUEST: () => notSpoken(),
  PACKET_LENGTH_TOO_LONG: () => notSpoken(),
  RECORD_TOO_SMALL: () => notSpoken(),
  RECORD_OVERFLOW: () => notSpoken(),
};

const refusedOurs = (alert: string): TlsFailure => ({
  code: 'TLS_CERTIFICATE_INVALID',
  text: `the partner refused our certificate (${alert}): check with it what it expects of the keystore`,
});

const notSpoken = (): TlsFailure => ({
  code: 'TLS_NOT_SPOKEN',
  text: 'the partner does not speak TLS there: use its TLS port, or switch TLS off on this side',
});

/** `ERR_SSL_TLSV1_ALERT_UNKNOWN_CA`, since OpenSSL 3.2 also `ERR_SSL_SSL/TLS_ALERT_…`. */
const PREFIX = /^ERR_SSL_(?:(?:SSLV3|TLSV1|TLSV1_3|TLSV13|SSL\/TLS|TLS)_(?:ALERT_)?)?/;

/** Reads an error of OpenSSL, of a handshake or of a connection behind it. */
export const failureOfError = (error: NodeJS.ErrnoException, role: TlsRole): TlsFailure | undefined => {
  const { code = '' } = error;
  if (code === 'ECONNRESET' || code === 'EPIPE') {
    return {
      code: 'TLS_CLOSED',
      text: 'the partner closed the connection during the TLS handshake: its log should say why',
    };
  }
  if (!code.startsWith('ERR_SSL_')) return undefined;
  const reason = code.replace(PREFIX, '');
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason] : undefined;
  return known?.(role) ?? { code: 'TLS_FAILED', text: `TLS failed: ${reason.toLowerCase().replaceAll('_', ' ')}` };
};
