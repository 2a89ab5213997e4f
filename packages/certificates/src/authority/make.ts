import { randomBytes, X509Certificate } from 'node:crypto';
import type { webcrypto } from 'node:crypto';

import { AsnConvert } from '@peculiar/asn1-schema';
import {
  BasicConstraints,
  CRLNumber,
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_basicConstraints,
  id_ce_cRLNumber,
  id_ce_nameConstraints,
  NameConstraints,
} from '@peculiar/asn1-x509';

import { writePem } from '../read/pem.js';
import type { CaKey, KeyPair } from './keys.js';
import type { AltName } from './names.js';
import type { Reason } from './reasons.js';
import { x509 } from './x509.js';

/** RFC 5280 §4.1.2.2: positive, at most 20 bytes; 120 of its bits are random. */
const newSerial = (): string => `4${randomBytes(16).toString('hex').slice(1)}`;

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

/** A node connects to others, too, with the certificate of its listener. */
const USAGES = { server: [SERVER_AUTH, CLIENT_AUTH], partner: [CLIENT_AUTH] } as const;

export type IssueKind = keyof typeof USAGES;

const { KeyUsageFlags: usage } = x509;

const constraints = (pathLength?: number): InstanceType<typeof x509.Extension> => {
  const value = new BasicConstraints({
    cA: pathLength !== undefined,
    ...(pathLength === undefined ? {} : { pathLenConstraint: pathLength }),
  });
  return new x509.Extension(id_ce_basicConstraints, true, AsnConvert.serialize(value));
};

export interface NewCa {
  /** DER. */
  readonly name: ArrayBuffer;
  readonly keys: KeyPair;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Domains that it may issue for alone; none: any. */
  readonly permittedDomains: readonly string[];
}

/** A CA that signs leaves alone: path length 0. @returns PEM */
export const makeCa = async ({ name, keys, notBefore, notAfter, permittedDomains }: NewCa): Promise<string> => {
  const subtrees = permittedDomains.map((dNSName) => new GeneralSubtree({ base: new GeneralName({ dNSName }) }));
  const permitted = new NameConstraints({ permittedSubtrees: new GeneralSubtrees(subtrees) });
  const made = await x509.X509CertificateGenerator.create({
    ...{ serialNumber: newSerial(), subject: new x509.Name(name), issuer: new x509.Name(name), notBefore, notAfter },
    ...{ publicKey: keys.publicKey, signingKey: keys.privateKey, signingAlgorithm: keys.privateKey.algorithm },
    signingAlgorithm: { ...keys.privateKey.algorithm, hash: 'SHA-256' },
    extensions: [
      constraints(0),
      new x509.KeyUsagesExtension(usage.keyCertSign | usage.cRLSign | usage.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ...(subtrees.length === 0
        ? []
        : [new x509.Extension(id_ce_nameConstraints, true, AsnConvert.serialize(permitted))]),
    ],
  });
  return writePem('CERTIFICATE', Buffer.from(made.rawData));
};

/** The CA as it signs. */
export interface Signer {
  /** PEM. */
  readonly certificate: string;
  readonly key: CaKey;
  /** URLs of its CRL and its OCSP responder, for those who meet one of its certificates. */
  readonly crlUrl: string | null;
  readonly ocspUrl: string | null;
}

export interface NewLeaf {
  readonly name: ArrayBuffer;
  readonly publicKey: webcrypto.CryptoKey | InstanceType<typeof x509.PublicKey>;
  /** RSA keys encipher in TLS 1.2 of old peers. */
  readonly isRsa: boolean;
  readonly sans: readonly AltName[];
  readonly kind: IssueKind;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** @returns PEM */
export const makeLeaf = async (signer: Signer, leaf: NewLeaf): Promise<string> => {
  const ca = new x509.X509Certificate(signer.certificate);
  const { name, publicKey, sans, kind, notBefore, notAfter } = leaf;
  const made = await x509.X509CertificateGenerator.create({
    ...{ serialNumber: newSerial(), subject: new x509.Name(name), issuer: ca.subjectName, notBefore, notAfter },
    ...{ publicKey, signingKey: signer.key.signingKey, signingAlgorithm: signer.key.signingAlgorithm },
    extensions: [
      constraints(),
      leaf.isRsa
        ? new x509.KeyUsagesExtension(usage.digitalSignature | usage.keyEncipherment, true)
        : new x509.KeyUsagesExtension(usage.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([...USAGES[kind]]),
      await x509.SubjectKeyIdentifierExtension.create(publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
      ...(sans.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(sans.map((one) => ({ ...one })))]),
      ...(signer.crlUrl === null ? [] : [new x509.CRLDistributionPointsExtension([signer.crlUrl])]),
      ...(signer.ocspUrl === null ? [] : [new x509.AuthorityInfoAccessExtension({ ocsp: signer.ocspUrl })]),
    ],
  });
  return writePem('CERTIFICATE', Buffer.from(made.rawData));
};

export interface RevokedEntry {
  /** Hex. */
  readonly serial: string;
  readonly at: Date;
  readonly reason: Reason;
}

export interface NewCrl {
  readonly number: number;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  readonly entries: readonly RevokedEntry[];
}

/** @returns DER */
export const makeCrl = async (signer: Signer, { number, thisUpdate, nextUpdate, entries }: NewCrl): Promise<Buffer> => {
  const ca = new x509.X509Certificate(signer.certificate);
  const made = await x509.X509CrlGenerator.create({
    ...{ issuer: ca.subjectName, thisUpdate, nextUpdate },
    ...{ signingKey: signer.key.signingKey, signingAlgorithm: signer.key.signingAlgorithm },
    entries: entries.map(({ serial, at, reason }) => ({
      ...{ serialNumber: serial, revocationDate: at },
      // RFC 5280 §5.3.1: `unspecified` is said by saying nothing.
      ...(reason === 'unspecified' ? {} : { reason: x509.X509CrlReason[reason] }),
    })),
    extensions: [
      await x509.AuthorityKeyIdentifierExtension.create(ca.publicKey),
      new x509.Extension(id_ce_cRLNumber, false, AsnConvert.serialize(new CRLNumber(number))),
    ],
  });
  return Buffer.from(made.rawData);
};

/** As the interface shows serials. */
export const serialOf = (pem: string): string => new X509Certificate(pem).serialNumber;
