import { X509Certificate } from 'node:crypto';

import { BOUNDS } from '../bounds.js';
import { unfit, unreadable } from '../faults.js';
import type { UploadField } from '../faults.js';
import { nameOf, strengthFault } from '../inspect.js';
import type { PemBlock } from './pem.js';

/** Labels that programs give certificates. */
const LABELS: ReadonlySet<string> = new Set(['CERTIFICATE', 'X509 CERTIFICATE', 'X.509 CERTIFICATE']);

export const isCertificate = ({ label }: PemBlock): boolean => LABELS.has(label);

/** Java's own stores: JKS, and JCEKS. */
const JAVA_MAGIC: ReadonlySet<string> = new Set(['feedfeed', 'cececece']);

/** @throws {UploadError} with the command that converts it, when it is a store of Java's */
export const refuseJks = (bytes: Buffer, field: UploadField): void => {
  if (!JAVA_MAGIC.has(bytes.toString('hex', 0, 4))) return;
  throw unreadable(
    field,
    'it is a Java keystore (JKS): convert it with `keytool -importkeystore -srckeystore FILE.jks -destkeystore FILE.p12 -deststoretype PKCS12`, and give the PKCS#12',
  );
};

/**
 * Reads a certificate, and refuses one whose key is too weak to be used.
 * @param number where it stands among others, from 1
 * @throws {UploadError}
 */
export const readCertificate = (der: Buffer, field: UploadField, number: number): X509Certificate => {
  if (der.length > BOUNDS.certificateBytes) {
    throw unreadable(
      field,
      `certificate ${number} has ${der.length} bytes: expected at most ${BOUNDS.certificateBytes}`,
    );
  }
  let certificate: X509Certificate;
  let fault: string | undefined;
  try {
    certificate = new X509Certificate(der);
    fault = strengthFault(certificate.publicKey);
  } catch (cause) {
    throw unreadable(field, `certificate ${number} cannot be read: expected an X.509 certificate that is whole`, cause);
  }
  if (fault !== undefined) throw unfit(field, `certificate ${number} (${nameOf(certificate)}) ${fault}`);
  return certificate;
};
