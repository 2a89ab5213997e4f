import { createPublicKey } from 'node:crypto';

import { unfit, unreadable } from '../faults.js';
import { strengthFault } from '../inspect.js';
import { readPem } from '../read/pem.js';
import { x509 } from './x509.js';

/** Bytes of a request: a name, a key and a signature. */
const MAX_BYTES = 16_384;

/**
 * The public key of a certificate request (RFC 2986) whose sender has the private one. Names in it are not believed: the
 * administrator gives them.
 * @throws {UploadError}
 */
export const readCsr = async (pem: string) => {
  const block = readPem(pem, 'csr', 10).find(({ label }) => label.endsWith('CERTIFICATE REQUEST'));
  const wrong = (message: string, cause?: unknown): Error =>
    unreadable('csr', `expected a certificate request (PKCS#10) in PEM: ${message}`, cause);
  if (block === undefined) throw wrong('got none');
  if (block.der.length > MAX_BYTES) throw wrong(`it has more than ${MAX_BYTES} bytes`);
  let isSigned: boolean;
  let publicKey: InstanceType<typeof x509.PublicKey>;
  try {
    const request = new x509.Pkcs10CertificateRequest(new Uint8Array(block.der));
    ({ publicKey } = request);
    isSigned = await request.verify();
  } catch (cause) {
    throw wrong('it cannot be read', cause);
  }
  if (!isSigned) throw unfit('csr', 'its signature is not that of its key: make it anew');
  const key = createPublicKey({ key: Buffer.from(publicKey.rawData), format: 'der', type: 'spki' });
  const fault = strengthFault(key);
  if (fault !== undefined) throw unfit('csr', `the request ${fault}`);
  return { publicKey, isRsa: key.asymmetricKeyType === 'rsa' };
};
