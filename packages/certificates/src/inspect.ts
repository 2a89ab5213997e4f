import type { KeyObject, X509Certificate } from 'node:crypto';
import { isIPv6 } from 'node:net';

import { writePem } from './read/pem.js';

/** All that is told of a certificate. */
export interface CertificateView {
  /** RFC 4514, the most specific name first: `CN=bank.example,O=Bank,C=FR`. */
  readonly subject: string;
  readonly issuer: string;
  /** Hex, upper case, no separators. */
  readonly serial: string;
  /** `DNS:bank.example`, `IP:192.0.2.7`, `URI:urn:x`, `email:a@b.c`. */
  readonly san: string[];
  /** ISO 8601 UTC. */
  readonly notBefore: string;
  readonly notAfter: string;
  /** SHA-256 of the certificate, upper-case hex with colons. */
  readonly fingerprint: string;
  /** RSA, EC, Ed25519 … */
  readonly keyType: string;
  /** Bits. */
  readonly keySize: number;
  readonly pem: string;
}

/** Bits of the curves that TLS knows, by their names in OpenSSL; all others are refused. */
const CURVES: Readonly<Record<string, number>> = {
  prime256v1: 256,
  secp384r1: 384,
  secp521r1: 521,
  brainpoolP256r1: 256,
  brainpoolP384r1: 384,
  brainpoolP512r1: 512,
};

const KEY_TYPES: Readonly<Record<string, { readonly type: string; readonly size?: number }>> = {
  rsa: { type: 'RSA' },
  'rsa-pss': { type: 'RSA-PSS' },
  ec: { type: 'EC' },
  ed25519: { type: 'Ed25519', size: 256 },
  ed448: { type: 'Ed448', size: 456 },
};

const MIN_RSA_BITS = 2048;

const sizeOf = ({ asymmetricKeyType, asymmetricKeyDetails: details }: KeyObject): number =>
  KEY_TYPES[asymmetricKeyType ?? '']?.size ?? details?.modulusLength ?? CURVES[details?.namedCurve ?? ''] ?? 0;

/** Why a key may not be used, behind the name of the certificate; undefined: it may. */
export const strengthFault = (key: KeyObject): string | undefined => {
  const { asymmetricKeyType = '', asymmetricKeyDetails: details } = key;
  if (KEY_TYPES[asymmetricKeyType] === undefined) return `has a key of type ${asymmetricKeyType}: expected RSA or EC`;
  const bits = sizeOf(key);
  if (details?.modulusLength !== undefined && bits < MIN_RSA_BITS) {
    return `has an RSA key of ${bits} bits: expected ${MIN_RSA_BITS} or more`;
  }
  if (asymmetricKeyType === 'ec' && bits === 0) {
    return `has a key on the curve ${details?.namedCurve ?? 'of its own'}: expected P-256, P-384, P-521 or a Brainpool curve of 256 bits or more`;
  }
  return undefined;
};

/** A name of OpenSSL, one part a line, as RFC 4514 writes it; without any part it is no text at all (RFC 5280 §4.1.2.6). */
const distinguishedName = (lines: string): string => (lines || '').split('\n').reverse().join(',');

/** As Node writes it; a value with commas or quotes in it is a JSON text. */
const SAN_PART = /([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/g;
const SAN_KINDS: Readonly<Record<string, string>> = { 'IP Address': 'IP', DirName: 'dirName', othername: 'otherName' };

/** RFC 5952. */
const shortIPv6 = (address: string): string => new URL(`http://[${address}]`).hostname.slice(1, -1);

const sansOf = (text: string | undefined): string[] =>
  [...(text ?? '').matchAll(SAN_PART)].map(([, kind = '', value = '']) => {
    const plain = value.startsWith('"') ? (JSON.parse(value) as string) : value;
    return `${SAN_KINDS[kind] ?? kind}:${isIPv6(plain) ? shortIPv6(plain) : plain}`;
  });

/** The time of a certificate, as Node writes it: `Nov 22 16:11:16 2026 GMT`. Milliseconds since 1970. */
export const startOf = ({ validFrom }: X509Certificate): number => Date.parse(validFrom);
export const endOf = ({ validTo }: X509Certificate): number => Date.parse(validTo);

/** The name that people know it by: the common name, or the whole subject. */
export const nameOf = ({ subject, fingerprint256 }: X509Certificate): string => {
  return (/^CN=(.*)$/m.exec(subject || '')?.[1] ?? distinguishedName(subject)) || fingerprint256;
};

/** Who has signed it, for people. */
export const issuerName = ({ issuer }: X509Certificate): string => distinguishedName(issuer) || 'nobody';

export const inspect = (certificate: X509Certificate): CertificateView => ({
  subject: distinguishedName(certificate.subject),
  issuer: distinguishedName(certificate.issuer),
  serial: certificate.serialNumber,
  san: sansOf(certificate.subjectAltName),
  notBefore: new Date(startOf(certificate)).toISOString(),
  notAfter: new Date(endOf(certificate)).toISOString(),
  fingerprint: certificate.fingerprint256,
  keyType: KEY_TYPES[certificate.publicKey.asymmetricKeyType ?? '']?.type ?? 'unknown',
  keySize: sizeOf(certificate.publicKey),
  pem: writePem('CERTIFICATE', certificate.raw),
});

const day = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** Sentences on what is wrong with a certificate at this time; none is a reason to refuse it. */
export const timeWarnings = (certificate: X509Certificate, now: number): readonly string[] => {
  const [from, to] = [startOf(certificate), endOf(certificate)];
  const name = nameOf(certificate);
  if (to <= now) return [`${name} expired on ${day(to)}: peers will refuse it`];
  if (from > now)
    return [`${name} is not valid before ${new Date(from).toISOString()}: peers will refuse it until then`];
  return [];
};
