/** Certificates of a test file, and terms made of them. */
import { X509Certificate } from 'node:crypto';
import { TlsClientTerms, TlsServerTerms, connectTls, serveTls } from '../../src/index.js';
import type { ClientAuth, RevocationCheck, TlsClientMaterial, TlsServerMaterial, TlsServing } from '../../src/index.js';
import { TestCa, selfSigned } from '../../src/testing/certificates.js';
import type { TestCertificate } from '../../src/testing/certificates.js';

const DAY_MS = 86_400_000;
const days = (count: number): Date => new Date(Date.now() + count * DAY_MS);

export interface Pki {
  readonly ca: TestCa;
  readonly other: TestCa;
  readonly good: TestCertificate;
  readonly server: TestCertificate;
  readonly rsa: TestCertificate;
  readonly byIntermediate: TestCertificate;
  readonly expired: TestCertificate;
  readonly early: TestCertificate;
  readonly foreign: TestCertificate;
  readonly otherName: TestCertificate;
  readonly revoked: TestCertificate;
  readonly serverOnly: TestCertificate;
  readonly selfSigned: TestCertificate;
  /** Without a subject: its names alone say whose it is (RFC 5280 §4.1.2.6). */
  readonly nameless: TestCertificate;
  readonly namelessAlone: TestCertificate;
  readonly verbose: TestCertificate;
}

export const createPki = async (): Promise<Pki> => {
  const [ca, other] = [await TestCa.create('Bank CA'), await TestCa.create('Other CA', 'RSA')];
  const intermediate = await ca.intermediate('Bank issuing CA', 'RSA');
  return {
    ca,
    other,
    good: await ca.issue('partner'),
    server: await ca.issue('server'),
    rsa: await ca.issue('rsa', { keyType: 'RSA' }),
    byIntermediate: await intermediate.issue('below'),
    expired: await ca.issue('expired', { notBefore: days(-20), notAfter: days(-10) }),
    early: await ca.issue('early', { notBefore: days(10), notAfter: days(20) }),
    foreign: await other.issue('foreign'),
    otherName: await ca.issue('elsewhere', { sans: [{ type: 'dns', value: 'elsewhere.example' }] }),
    revoked: await ca.issue('revoked'),
    serverOnly: await ca.issue('server-only', { usages: ['serverAuth'] }),
    selfSigned: await selfSigned('alone'),
    nameless: await ca.issue('nameless', { subject: '' }),
    namelessAlone: await selfSigned('nameless', { subject: '' }),
    verbose: await selfSigned('verbose', { subject: `CN=${'v'.repeat(20_000)}` }),
  };
};

export const trusting = ({ ca }: Pki) => ({ certificates: [ca.certificate] });

/** Knows one revoked certificate, by its serial. */
export const revoking =
  ({ revoked }: Pki): RevocationCheck =>
  ([leaf]) =>
    Promise.resolve(
      leaf?.serialNumber.toUpperCase() === revoked.serial
        ? { code: 'TLS_CERTIFICATE_REVOKED', text: 'the certificate of the partner was revoked on a day' }
        : undefined,
    );

/** The network of a listener. */
export const accepting = (
  pki: Pki,
  clientAuth: ClientAuth,
  material: Partial<TlsServerMaterial> = {},
  serving: Partial<TlsServing> = {},
) => {
  const terms = new TlsServerTerms({
    ...{ identity: pki.server, trust: trusting(pki), clientAuth, revocation: revoking(pki) },
    ...material,
  });
  return serveTls({ terms: () => terms, ...serving });
};

/** The network of a requester. */
export const opening = (pki: Pki, material: TlsClientMaterial = {}) => {
  const terms = new TlsClientTerms({ trust: trusting(pki), ...material });
  return connectTls(() => terms);
};

export const subjectOf = ({ certificateChain }: TestCertificate): string =>
  new X509Certificate(certificateChain).subject;
