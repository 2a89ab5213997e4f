import { isIPv6 } from 'node:net';

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
  const { certificate_fingerprint: fingerprints, certificate_subject: subjects, certificate_san: sans } = partner;
  const { fingerprint, subject, subjectAltNames } = certificate;
  const names = [
    fingerprints === null || has(fingerprints, fingerprint) ? undefined : 'certificateFingerprint',
    subjects === null || has(subjects, subject, normalSubject) ? undefined : 'certificateSubject',
    sans === null || hasName(sans, subjectAltNames) ? undefined : 'certificateSan',
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

/** Pieces of a name between separators; one behind a backslash is none (RFC 4514 §2.4). */
const PIECES = { ',': /(?:\\.|[^,\\])+/gs, '+': /(?:\\.|[^+\\])+/gs } as const;
const ESCAPED = /((?:\\[0-9a-f]{2})+)|\\(.)/gi;
const unescaped = (text: string): string =>
  text.replace(ESCAPED, (_, hex: string | undefined, plain: string | undefined) =>
    hex === undefined ? (plain ?? '') : Buffer.from(hex.replaceAll('\\', ''), 'hex').toString('utf8'),
  );

/** `CN=acme`: blanks around it, the case of the type, and what is escaped how say nothing (RFC 4514 §3). */
const normalPart = (text: string): string => {
  const trimmed = text.trim();
  // A blank at the end that was escaped is a part of it.
  const part = unescaped(trimmed.endsWith('\\') ? `${trimmed} ` : trimmed);
  return part.replace(/^([a-z0-9.]+)\s*=\s*/i, (_, type: string) => `${type.toUpperCase()}=`);
};

/** The same text for the same subject, at whichever end a tool begins to write it. */
const normalSubject = (text: string): string => {
  const names = (text.match(PIECES[',']) ?? []).map((name) => (name.match(PIECES['+']) ?? []).map(normalPart).sort());
  const [one, other] = [names, names.toReversed()].map((each) => JSON.stringify(each)) as [string, string];
  return one < other ? one : other;
};

/** Names of a kind that is said; all others are meant without their kind. */
const KIND = /^(?:DNS|IP|URI|email):/i;
const withoutKind = (name: string): string => name.slice(name.indexOf(':') + 1);

/** Lower case, an address of IPv6 in its short form (RFC 5952). */
const normalName = (name: string): string => {
  const [kind, value] = KIND.test(name) ? [name.slice(0, name.indexOf(':') + 1), withoutKind(name)] : ['', name];
  const isAddress = isIPv6(value) && !value.includes('%');
  return `${kind}${isAddress ? new URL(`http://[${value}]`).hostname.slice(1, -1) : value}`.toLowerCase();
};

/** Whether one of the names that are wanted is one of the certificate: `DNS:a.example`, or the name alone. */
const hasName = (wanted: readonly string[], names: readonly string[]): boolean =>
  wanted.some((text) =>
    names.some((name) => normalName(KIND.test(text) ? name : withoutKind(name)) === normalName(text)),
  );

const has = (wanted: readonly string[], value: string, normal: (text: string) => string = (text) => text): boolean =>
  wanted.some((text) => normal(text) === normal(value));
