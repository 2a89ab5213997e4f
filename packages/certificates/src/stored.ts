import { X509Certificate } from 'node:crypto';

import { readPem } from './read/pem.js';

/** Certificates of a store, as they were checked when they came. */
export const storedCertificates = (pem: string): readonly X509Certificate[] =>
  readPem(pem, 'certificates').map(({ der }) => new X509Certificate(der));
