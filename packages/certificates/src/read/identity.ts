import type { KeyObject, X509Certificate } from 'node:crypto';

import { BOUNDS } from '../bounds.js';
import { chainFor } from '../chain.js';
import { unfit, unreadable } from '../faults.js';
import { nameOf } from '../inspect.js';
import { isCertificate, readCertificate, refuseJks } from './certificate.js';
import { readPem, writePem } from './pem.js';
import type { PemBlock } from './pem.js';
import { readPkcs12 } from './pkcs12.js';
import { isPrivateKey, readPkcs8, readPrivateKey } from './private-key.js';

/** A TLS identity as it is stored. */
export interface IdentityMaterial {
  /** PEM, leaf first. */
  readonly certificate: string;
  /** PEM, PKCS#8, in clear. */
  readonly privateKey: string;
  /** Sentences on what was done with the upload. */
  readonly warnings: readonly string[];
}

const assemble = (
  key: KeyObject,
  given: readonly X509Certificate[],
  fields: { readonly key: 'privateKey' | 'pkcs12'; readonly certificate: 'certificate' | 'pkcs12' },
): IdentityMaterial => {
  if (given.length > BOUNDS.chain) {
    throw unreadable(
      fields.certificate,
      `expected a chain of at most ${BOUNDS.chain} certificates, got ${given.length}`,
    );
  }
  const chain = chainFor(key, given);
  if (chain === undefined) {
    const names = given.map(nameOf).slice(0, 3).join(', ');
    throw unfit(
      fields.key,
      `the private key belongs to none of the certificates (${names}): give the key of the first`,
    );
  }
  const { certificates, others } = chain;
  const isInOrder = certificates.every((certificate, index) => certificate === given[index]);
  const warnings = [
    ...(isInOrder ? [] : ['the chain was out of order: it was put in order, leaf first']),
    ...(others.length === 0
      ? []
      : [`left out, as no part of the chain: ${others.map(nameOf).slice(0, 10).join(', ')}`]),
  ];
  return {
    certificate: certificates.map(({ raw }) => writePem('CERTIFICATE', raw)).join(''),
    privateKey: key.export({ format: 'pem', type: 'pkcs8' }) as string,
    warnings,
  };
};

const readChain = (blocks: readonly PemBlock[]): readonly X509Certificate[] => {
  const found = blocks.filter(isCertificate).map(({ der }, index) => readCertificate(der, 'certificate', index + 1));
  if (found.length === 0) {
    throw unreadable('certificate', 'expected a chain of certificates in PEM (-----BEGIN CERTIFICATE-----), got none');
  }
  return found;
};

/**
 * An identity from PEM texts. The key may stand in either.
 * @throws {UploadError}
 */
export const identityFromPem = async (
  certificate: string,
  privateKey: string,
  password: string | undefined,
): Promise<IdentityMaterial> => {
  const chain = readChain(readPem(certificate, 'certificate', BOUNDS.chain + 1));
  const [block, ...more] = readPem(privateKey, 'privateKey').filter(isPrivateKey);
  if (block === undefined) {
    throw unreadable('privateKey', 'expected a private key in PEM (-----BEGIN PRIVATE KEY-----), got none');
  }
  if (more.length > 0) throw unreadable('privateKey', `expected one private key, got ${more.length + 1}`);
  return assemble(await readPrivateKey(block, password), chain, { key: 'privateKey', certificate: 'certificate' });
};

/** An identity from a PKCS#12. @throws {UploadError} */
export const identityFromPkcs12 = async (bytes: Buffer, password: string): Promise<IdentityMaterial> => {
  refuseJks(bytes, 'pkcs12');
  const { certificates, keys } = await readPkcs12(bytes, password);
  const [key, ...more] = keys;
  if (key === undefined) {
    throw unreadable('pkcs12', 'it holds no private key: expected a certificate with its key, or post a truststore');
  }
  if (more.length > 0)
    throw unreadable('pkcs12', `expected one private key, got ${keys.length}: make it anew with one`);
  if (certificates.length === 0) throw unreadable('pkcs12', 'it holds no certificate: expected one with its chain');
  const chain = certificates.map((der, index) => readCertificate(der, 'pkcs12', index + 1));
  return assemble(readPkcs8(key, 'pkcs12'), chain, { key: 'pkcs12', certificate: 'pkcs12' });
};

/** Base64 in a field, with or without line ends. @throws {UploadError} */
export const readBase64 = (text: string): Buffer => {
  const plain = text.replace(/\s+/g, '');
  if (plain === '' || !/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) {
    throw unreadable('pkcs12', 'expected the file in base64');
  }
  const bytes = Buffer.from(plain, 'base64');
  if (bytes.length > BOUNDS.storeBytes) {
    throw unreadable('pkcs12', `expected at most ${BOUNDS.storeBytes} bytes, got ${bytes.length}`);
  }
  return bytes;
};
