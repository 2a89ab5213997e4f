import { createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

import jwt from 'jsonwebtoken';

import { claimsSchema } from './claims.js';
import { parsePublicKey } from './public-key.js';
import { MAX_LICENSE_TEXT, verifyLicense } from './verify.js';

/** The claims of a license to be issued are not complete, or make no sense; or the key cannot sign one. */
export class IssueError extends Error {
  override readonly name = 'IssueError';
}

/**
 * Signs a license; the vendor's side.
 * @param claims as in design §4; limits may be left out, and are those of the type then.
 * @param privateKey RSA of at least 2048 bits.
 * @returns the text that the customer installs.
 * @throws {IssueError} naming every claim at fault.
 */
export const issueLicense = (claims: Readonly<Record<string, unknown>>, privateKey: KeyObject): string => {
  const checked = claimsSchema.safeParse(claims);
  if (!checked.success) {
    const { issues } = checked.error;
    throw new IssueError(issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '));
  }
  if (privateKey.type !== 'private' || privateKey.asymmetricKeyType !== 'rsa') {
    throw new IssueError(`Expected an RSA private key, got ${privateKey.asymmetricKeyType ?? privateKey.type}`);
  }
  const key = parsePublicKey(createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }) as string);
  const text = Buffer.from(jwt.sign({ ...claims }, privateKey, { algorithm: 'RS256' })).toString('base64');
  // A license that a customer cannot install must not leave the house.
  const result = verifyLicense(text, key);
  if (!result.ok) throw new IssueError(result.refusal.message);
  return text;
};

export interface Inspection {
  readonly header: unknown;
  readonly payload: unknown;
}

/** The claims of a license text, whoever signed it. @returns undefined when it holds no JWT. */
export const inspectLicense = (text: string): Inspection | undefined => {
  const token = Buffer.from(text.slice(0, MAX_LICENSE_TEXT), 'base64').toString('latin1').trim();
  const decoded = jwt.decode(token, { complete: true });
  return decoded === null ? undefined : { header: decoded.header, payload: decoded.payload };
};
