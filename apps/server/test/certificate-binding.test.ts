/** Certificates that a partner is bound to: which one is its own, and when its password may be empty (pesit-e.md §10). */
import { X509Certificate } from 'node:crypto';

import { expect, test } from '@jest/globals';
import type { TransportSecurity } from '@pesit-node/net';

import { OpenSsl, P256 } from '../../../packages/certificates/test/support/openssl.js';
import { peerCertificateOf } from '../../../packages/net/src/peer-certificate.js';
import { isBound, tlsProblem } from '../src/admission/certificate.js';

const openssl = new OpenSsl();
const NAMES = 'DNS:acme.example,IP:2001:db8::1,IP:192.0.2.7,URI:DNS:other.example,URI:urn:x:y,email:Pay@Acme.example';
const SUBJECT = '/C=FR/O=Société, "Acme"/OU=a+OU=b/CN=acme';
const made = openssl.issue({
  ...{ name: 'acme', newKey: [...P256, '-utf8'], subject: SUBJECT, extensions: [`subjectAltName = ${NAMES}`] },
});
const peerCertificate = peerCertificateOf(new X509Certificate(made.pem));
const { fingerprint } = peerCertificate;
const OTHER = fingerprint.replace(/^../, (first) => (first === '00' ? '01' : '00'));
const asOpenSsl = openssl.run('x509', '-in', made.certificate, '-noout', '-subject', '-nameopt', 'RFC2253');
const rfc2253 = asOpenSsl.trim().replace(/^subject=/, '');

type Bound = Partial<Record<'fingerprint' | 'subject' | 'san', readonly string[]>>;

const standing = ({ fingerprint: prints, subject, san }: Bound) => ({
  ...{ partner_id: 'ACME', tls_required: false, certificate_fingerprint: prints ? [...prints] : null },
  ...{ certificate_subject: subject ? [...subject] : null, certificate_san: san ? [...san] : null },
});
const security = (shown: TransportSecurity['peerCertificate']): TransportSecurity => ({
  ...{ protocol: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', resumed: false, peerCertificate: shown },
});

const CASES: readonly (readonly [what: string, bound: Bound, fails: string | undefined])[] = [
  ['nothing', {}, undefined],
  ['its fingerprint', { fingerprint: [fingerprint] }, undefined],
  ['its fingerprint among several', { fingerprint: [OTHER, fingerprint] }, undefined],
  ['fingerprints of others', { fingerprint: [OTHER, OTHER] }, 'certificateFingerprint'],
  ['its subject as openssl writes it', { subject: [rfc2253] }, undefined],
  ['its subject among several', { subject: ['CN=next', `CN=acme,OU=a+OU=b,O=Société\\, \\"Acme\\",C=FR`] }, undefined],
  [
    'its subject from the other end',
    { subject: ['c=FR, O = Société\\, \\22Acme\\22, ou=b + OU=a, CN=acme'] },
    undefined,
  ],
  ['a part of its subject', { subject: ['CN=acme'] }, 'certificateSubject'],
  ['a subject in other case', { subject: [rfc2253.replace('acme', 'ACME')] }, 'certificateSubject'],
  ['a subject whose comma separates', { subject: ['CN=acme,OU=a+OU=b,O=Société,"Acme",C=FR'] }, 'certificateSubject'],
  ['a name with its kind', { san: ['dns:ACME.example'] }, undefined],
  ['a name among several', { san: ['DNS:next.example', 'acme.example'] }, undefined],
  ['an address', { san: ['192.0.2.7'] }, undefined],
  ['an address of IPv6, in short', { san: ['IP:2001:db8::1'] }, undefined],
  ['an address of IPv6, at length', { san: ['2001:DB8:0:0:0:0:0:1'] }, undefined],
  ['a URI', { san: ['urn:x:y'] }, undefined],
  ['a mail address', { san: ['email:pay@acme.example'] }, undefined],
  ['another kind of its name', { san: ['URI:acme.example'] }, 'certificateSan'],
  ['a kind that stands inside another one', { san: ['DNS:other.example'] }, 'certificateSan'],
  ['no address', { san: ['fe80::1%eth0'] }, 'certificateSan'],
  ['all three', { fingerprint: [fingerprint], subject: [rfc2253], san: ['acme.example'] }, undefined],
  [
    'all three, of which two fail',
    { fingerprint: [fingerprint], subject: ['CN=x'], san: ['x'] },
    'certificateSubject and certificateSan',
  ],
  ['an empty list', { fingerprint: [] }, 'certificateFingerprint'],
];

test.each(CASES)('bound to %s', (_, bound, fails) => {
  const partner = standing(bound);
  const problem = tlsProblem(partner, security(peerCertificate));
  const words = `the certificate that ACME presented is another one than its ${fails} says: `;
  expect(problem).toEqual(fails === undefined ? undefined : expect.stringContaining(words));
  // Its password may be empty where it is bound, and nowhere else: without a certificate it is not let in at all.
  const asked = Object.keys(bound).length > 0;
  expect(isBound(partner)).toBe(asked);
  const [without, plain] = [tlsProblem(partner, security(undefined)), tlsProblem(partner, undefined)];
  expect([without, plain]).toEqual(
    asked
      ? [expect.stringContaining('presented no certificate'), expect.stringContaining('came without TLS')]
      : [undefined, undefined],
  );
});
