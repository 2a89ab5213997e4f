import type { PeerCertificate, TransportSecurity } from '@pesit-node/net';

import type { PartnerRow } from '../partners/fields.js';

type Binding = Pick<
  PartnerRow,
  'partner_id' | 'tls_required' | 'certificate_fingerprint' | 'certificate_subject' | 'certificate_san'
>;

/** Whether the partner has to present a certificate of its own. */
export const isBound = (partner: Binding): boolean =>
  [partner.certificate_fingerprint, partner.certificate_subject, partner.certificate_san].some((list) => list !== null);

/**
 * Why a connection is not that of its partner as far as TLS can tell; undefined: nothing speaks against it. The
 * certificate, where there is one, was verified against the truststore of the listener.
 */
export const tlsProblem = (partner: Binding, security: TransportSecurity | undefined): string | undefined => {
  const { partner_id: id } = partner;
  if (security === undefined && partner.tls_required) {
    return `${id} came without TLS, and its tlsRequired is true: it has to use the TLS port`;
  }
  if (!isBound(partner)) return undefined;
  const certificate = security?.peerCertificate;
  if (certificate === undefined) {
    return security === undefined
      ? `${id} came without TLS, and is bound to a certificate: it has to use the TLS port`
      : `${id} presented no certificate, and is bound to one: it has to present it, and sslClientAuth of the listener has to be WANT or NEED`;
  }
  const names = [
    fails(partner.certificate_fingerprint, [certificate.fingerprint]) ? 'certificateFingerprint' : undefined,
    fails(partner.certificate_subject, [certificate.subject], normalSubject) ? 'certificateSubject' : undefined,
    fails(partner.certificate_san, spellings(certificate), lower) ? 'certificateSan' : undefined,
  ].filter((name) => name !== undefined);
  return names.length === 0
    ? undefined
    : `the certificate that ${id} presented is another one than its ${names.join(' and ')} says: ${presented(certificate)}; correct the partner if this one is right`;
};

/** The certificate as it was presented, for who compares it; none of it is secret. */
const presented = ({ subject, fingerprint, subjectAltNames }: PeerCertificate): string =>
  [
    `subject ${subject || 'none'}`,
    `names ${subjectAltNames.slice(0, 20).join(' ') || 'none'}`,
    `fingerprint ${fingerprint}`,
  ].join(', ');

const lower = (text: string): string => text.toLowerCase();

/**
 * Blanks behind separators and the case of attribute names say nothing (RFC 4514 §3), nor does the end at which a tool begins
 * to write a name.
 */
const normalSubject = (text: string): string => {
  const names = (text.match(/(?:\\.|[^,\\])+/g) ?? []).map((name) =>
    name.trim().replace(/^([A-Za-z0-9.]+)\s*=\s*/, (_, type: string) => `${type.toUpperCase()}=`),
  );
  const [one, other] = [names.join(','), names.toReversed().join(',')];
  return one < other ? one : other;
};

const fails = (
  wanted: readonly string[] | null,
  has: readonly string[],
  normal: (text: string) => string = (text) => text,
): boolean => {
  if (wanted === null) return false;
  const known = new Set(has.map(normal));
  return !wanted.some((text) => known.has(normal(text)));
};

/** `DNS:a.example`, and the name alone. */
const spellings = ({ subjectAltNames }: PeerCertificate): readonly string[] =>
  subjectAltNames.flatMap((name) => [name, name.slice(name.indexOf(':') + 1)]);
