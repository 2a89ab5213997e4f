/** Certificates as Node shows them, in the forms of the port (`PeerCertificate`). */
import type { X509Certificate } from 'node:crypto';
import type { PeerCertificate } from './transport.js';

/**
 * Node writes one relative name a line, the outermost first, escaped as RFC 4514 asks; that begins with the innermost. An empty name
 * (RFC 5280 §4.1.2.6) is undefined at Node, whatever its types say.
 */
const distinguishedName = (lines: string | undefined): string => lines?.split('\n').reverse().join(',') ?? '';

/** `DNS:a, IP Address:192.0.2.1, URI:"quoted, \u0022"`: quoted where a value could be read as two. */
const alternativeNames = (text: string | undefined): readonly string[] => {
  const entries = text?.match(/[^:,"]+:(?:"(?:[^"\\]|\\.)*"|[^,]*)/g) ?? [];
  return entries.map((entry) => {
    const at = entry.indexOf(':');
    const [kind, value] = [entry.slice(0, at).trim(), entry.slice(at + 1)];
    return `${kind === 'IP Address' ? 'IP' : kind}:${value.startsWith('"') ? unquoted(value) : value}`;
  });
};

const unquoted = (value: string): string => {
  try {
    return JSON.parse(value) as string;
  } catch {
    return value;
  }
};

export const peerCertificateOf = (certificate: X509Certificate): PeerCertificate => ({
  subject: distinguishedName(certificate.subject),
  issuer: distinguishedName(certificate.issuer),
  subjectAltNames: alternativeNames(certificate.subjectAltName),
  serial: certificate.serialNumber.toUpperCase(),
  fingerprint: certificate.fingerprint256.toUpperCase(),
  notBefore: new Date(certificate.validFrom),
  notAfter: new Date(certificate.validTo),
  raw: certificate.raw,
});
