import { createPrivateKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

import { unreadable } from '../faults.js';
import type { UploadField } from '../faults.js';
import { DerError, readDer } from './der.js';
import { HashBudget } from './derivation.js';
import { openPrivateKeyInfo } from './pbe.js';
import type { PemBlock } from './pem.js';

const LABELS: ReadonlySet<string> = new Set([
  'PRIVATE KEY',
  'RSA PRIVATE KEY',
  'EC PRIVATE KEY',
  'ENCRYPTED PRIVATE KEY',
]);

export const isPrivateKey = ({ label }: PemBlock): boolean => LABELS.has(label);

const EXPECTED = 'expected a private key in PEM (PKCS#8, RSA or EC)';

/** The encryption of OpenSSL's own older form, RFC 1421 §4.6.1.1. */
const isEncrypted = ({ label, text }: PemBlock): boolean =>
  label === 'ENCRYPTED PRIVATE KEY' || text.includes('Proc-Type: 4,ENCRYPTED');

/** @param der PKCS#8 @throws {UploadError} */
export const readPkcs8 = (der: Buffer, field: UploadField): KeyObject => {
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } catch (cause) {
    throw unreadable(field, `${EXPECTED}, got something that cannot be read as one`, cause);
  }
};

const opened = async ({ der }: PemBlock, password: string): Promise<Buffer> => {
  try {
    const unlocking = { password, budget: new HashBudget('privateKey'), field: 'privateKey' } as const;
    const plain = await openPrivateKeyInfo(readDer(der), unlocking);
    if (plain !== undefined) return plain;
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw unreadable('privateKey', `${EXPECTED}: ${error.message}`, error);
  }
  throw unreadable(
    'password',
    'it does not open the private key: expected the password that the key is encrypted with',
  );
};

/**
 * @param password for a key that is encrypted
 * @throws {UploadError} naming `privateKey` or `password`
 */
export const readPrivateKey = async (block: PemBlock, password: string | undefined): Promise<KeyObject> => {
  if (isEncrypted(block) && password === undefined) {
    throw unreadable('password', 'required: the private key is encrypted');
  }
  // Opened here, and not by OpenSSL, which does as many iterations as the file asks for.
  if (block.label === 'ENCRYPTED PRIVATE KEY') return readPkcs8(await opened(block, password ?? ''), 'privateKey');
  try {
    return createPrivateKey({ key: block.text, format: 'pem', passphrase: password ?? '' });
  } catch (cause) {
    if (isEncrypted(block)) {
      throw unreadable('password', 'it does not open the private key, or the key cannot be read', cause);
    }
    throw unreadable('privateKey', `${EXPECTED}, got something that cannot be read as one`, cause);
  }
};
