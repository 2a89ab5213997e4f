/** Certificates for tests, good and bad, from CAs that live as long as the test. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

export interface TestCertificate {
  /** PEM: the certificate, then those between it and the root. */
  readonly certificateChain: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
  /** Upper-case hex. */
  readonly serial: string;
  /** SHA-256, upper-case hex with colons. */
  readonly fingerprint: string;
}

export interface TestCertificateOptions {
  /** Default `EC`, P-256. */
  readonly keyType?: 'EC' | 'RSA';
  /** RFC 4514. Default `CN=<name>`. */
  readonly subject?: string;
  /** As `{ type: 'dns', value: 'example.org' }`. Default: localhost and 127.0.0.1. */
  readonly sans?: readonly x509.JsonGeneralName[];
  readonly notBefore?: Date;
  readonly notAfter?: Date;
  /** Extended key usage. Default: server and client. */
  readonly usages?: readonly ('serverAuth' | 'clientAuth')[];
}

const DAY_MS = 86_400_000;
const ALGORITHMS = {
  EC: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  RSA: {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
} as const;

const newKeys = (keyType: 'EC' | 'RSA'): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHMS[keyType], true, ['sign', 'verify']);

/** An RSA key takes the time of a hundred certificates: those that are no CA have one together. */
let rsaKeys: Promise<webcrypto.CryptoKeyPair> | undefined;
const leafKeys = (keyType: 'EC' | 'RSA' = 'EC'): Promise<webcrypto.CryptoKeyPair> =>
  keyType === 'RSA' ? (rsaKeys ??= newKeys('RSA')) : newKeys('EC');

const newSerial = (): string => {
  const bytes = webcrypto.getRandomValues(new Uint8Array(12));
  bytes[0] = 0x40 | ((bytes[0] ?? 0) & 0x3f);
  return Buffer.from(bytes).toString('hex').toUpperCase();
};

const privatePem = async (key: webcrypto.CryptoKey): Promise<string> =>
  x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');

const fingerprintOf = async (certificate: x509.X509Certificate): Promise<string> => {
  const hash = Buffer.from(await certificate.getThumbprint('SHA-256'));
  return (hash.toString('hex').toUpperCase().match(/../g) ?? []).join(':');
};

const shown = async (
  certificate: x509.X509Certificate,
  keys: webcrypto.CryptoKeyPair,
  above: readonly x509.X509Certificate[],
): Promise<TestCertificate> => ({
  certificateChain: [certificate, ...above].map((each) => `${each.toString('pem')}\n`).join(''),
  privateKey: await privatePem(keys.privateKey),
  serial: certificate.serialNumber.toUpperCase(),
  fingerprint: await fingerprintOf(certificate),
});

/** A certificate that nobody but its owner has signed. */
export const selfSigned = async (name: string, options: TestCertificateOptions = {}): Promise<TestCertificate> => {
  const keys = await leafKeys(options.keyType);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...leaf(name, options),
    name: options.subject ?? `CN=${name}`,
    keys,
    signingAlgorithm: ALGORITHMS[options.keyType ?? 'EC'],
  });
  return shown(certificate, keys, []);
};

const leaf = (name: string, { sans, notBefore, notAfter, usages }: TestCertificateOptions) => ({
  serialNumber: newSerial(),
  notBefore: notBefore ?? new Date(Date.now() - DAY_MS),
  notAfter: notAfter ?? new Date(Date.now() + 30 * DAY_MS),
  extensions: [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
    new x509.ExtendedKeyUsageExtension(
      (usages ?? ['serverAuth', 'clientAuth']).map((usage) => x509.ExtendedKeyUsage[usage]),
    ),
    new x509.SubjectAlternativeNameExtension([
      ...(sans ?? [
        { type: 'dns' as const, value: 'localhost' },
        { type: 'ip' as const, value: '127.0.0.1' },
        { type: 'dns' as const, value: name.replaceAll(/[^A-Za-z0-9-]/g, '-') },
      ]),
    ]),
  ],
});

export class TestCa {
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #keyType: 'EC' | 'RSA';
  readonly #certificate: x509.X509Certificate;
  /** The CAs between this one and the root, this one first; none for a root. */
  readonly #above: readonly x509.X509Certificate[];

  private constructor(
    keyType: 'EC' | 'RSA',
    keys: webcrypto.CryptoKeyPair,
    certificate: x509.X509Certificate,
    above: readonly x509.X509Certificate[],
  ) {
    this.#keyType = keyType;
    this.#keys = keys;
    this.#certificate = certificate;
    this.#above = above;
  }

  static async create(name = 'Test CA', keyType: 'EC' | 'RSA' = 'EC', notAfter?: Date): Promise<TestCa> {
    const keys = await newKeys(keyType);
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      ...authority(notAfter),
      name: `CN=${name}`,
      keys,
      signingAlgorithm: ALGORITHMS[keyType],
    });
    return new TestCa(keyType, keys, certificate, []);
  }

  /** PEM. */
  get certificate(): string {
    return `${this.#certificate.toString('pem')}\n`;
  }

  /** Upper-case hex. */
  get serial(): string {
    return this.#certificate.serialNumber.toUpperCase();
  }

  async intermediate(name: string, keyType: 'EC' | 'RSA' = 'EC', notAfter?: Date): Promise<TestCa> {
    const keys = await newKeys(keyType);
    const certificate = await x509.X509CertificateGenerator.create({
      ...authority(notAfter),
      subject: `CN=${name}`,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHMS[this.#keyType],
    });
    return new TestCa(keyType, keys, certificate, [certificate, ...this.#above]);
  }

  async issue(name: string, options: TestCertificateOptions = {}): Promise<TestCertificate> {
    const keys = await leafKeys(options.keyType);
    const certificate = await x509.X509CertificateGenerator.create({
      ...leaf(name, options),
      subject: options.subject ?? `CN=${name}`,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHMS[this.#keyType],
    });
    return shown(certificate, keys, this.#above);
  }

  /** A list of revoked certificates, PEM. */
  async crl(revoked: readonly string[], nextUpdate = new Date(Date.now() + DAY_MS)): Promise<string> {
    const crl = await x509.X509CrlGenerator.create({
      issuer: this.#certificate.subject,
      thisUpdate: new Date(Date.now() - 3_600_000),
      nextUpdate,
      entries: revoked.map((serialNumber) => ({ serialNumber, revocationDate: new Date(Date.now() - 60_000) })),
      signingKey: this.#keys.privateKey,
      signingAlgorithm: ALGORITHMS[this.#keyType],
    });
    return `${x509.PemConverter.encode(crl.rawData, 'X509 CRL')}\n`;
  }
}

const authority = (notAfter = new Date(Date.now() + 365 * DAY_MS)) => ({
  serialNumber: newSerial(),
  notBefore: new Date(Date.now() - 2 * DAY_MS),
  notAfter,
  extensions: [
    new x509.BasicConstraintsExtension(true, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
  ],
});
