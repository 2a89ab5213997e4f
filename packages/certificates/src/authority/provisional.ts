import { hostname } from 'node:os';

import type { Identity } from '../certificates.js';
import { writePem } from '../read/pem.js';
import { exportKey, makeKeys } from './keys.js';
import { nameDer } from './names.js';
import { x509 } from './x509.js';

const DAY_MS = 86_400_000;
/** Nobody is to trust it: it need not end while the process runs. */
const VALID_DAYS = 3650;

/** A certificate that nobody has signed, for a server that has no other yet. */
export const provisionalIdentity = async (): Promise<Identity> => {
  const keys = await makeKeys('EC');
  const name = new x509.Name(nameDer({ commonName: `provisional, ${hostname()}`.slice(0, 64) }));
  const now = Date.now();
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    ...{ name: name.toString(), keys, signingAlgorithm: { ...keys.privateKey.algorithm, hash: 'SHA-256' } },
    ...{ notBefore: new Date(now - DAY_MS), notAfter: new Date(now + VALID_DAYS * DAY_MS) },
    extensions: [new x509.BasicConstraintsExtension(false, undefined, true)],
  });
  return {
    certificateChain: writePem('CERTIFICATE', Buffer.from(made.rawData)),
    privateKey: writePem('PRIVATE KEY', await exportKey(keys.privateKey)),
  };
};
