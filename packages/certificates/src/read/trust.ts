import type { X509Certificate } from 'node:crypto';

import { unreadable } from '../faults.js';
import { nameOf } from '../inspect.js';
import { isCertificate, readCertificate } from './certificate.js';
import { readPem, writePem } from './pem.js';

/** A bundle of CAs as it is stored. */
export interface TrustMaterial {
  /** PEM. */
  readonly certificates: string;
  readonly warnings: readonly string[];
}

/** The certificates of a PEM bundle, each once, in their order. @throws {UploadError} */
export const trustFromPem = (text: string): TrustMaterial => {
  const blocks = readPem(text, 'certificates').filter(isCertificate);
  const certificates = new Map<string, X509Certificate>();
  blocks.forEach(({ der }, index) => {
    const certificate = readCertificate(der, 'certificates', index + 1);
    certificates.set(certificate.fingerprint256, certificate);
  });
  if (certificates.size === 0) {
    throw unreadable('certificates', 'expected CA certificates in PEM (-----BEGIN CERTIFICATE-----), got none');
  }
  const twice = blocks.length - certificates.size;
  return {
    certificates: [...certificates.values()].map(({ raw }) => writePem('CERTIFICATE', raw)).join(''),
    warnings: twice === 0 ? [] : [`${twice} of ${blocks.length} certificates stood there more than once`],
  };
};

/** Sentences on certificates that are no CA: only those who present exactly these are trusted through them. */
export const leafWarnings = (certificates: readonly X509Certificate[]): readonly string[] =>
  certificates
    .filter(({ ca }) => !ca)
    .slice(0, 10)
    .map(
      (certificate) => `${nameOf(certificate)} is no CA certificate: it is trusted itself, and vouches for no other`,
    );
