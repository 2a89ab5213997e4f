/** A vendor made of node:crypto alone: licenses here are built and signed by none of the code under test. */
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

import { parsePublicKey } from '../../src/public-key.js';

export const keyPair = (bits = 2048) => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits });
  return { privateKey, publicPem: publicKey.export({ type: 'spki', format: 'pem' }) as string };
};

/** One key for all tests of a file: making one takes a tenth of a second. */
export const VENDOR = keyPair();
export const VENDOR_KEY = parsePublicKey(VENDOR.publicPem);

export const CLAIMS = {
  licenseId: 'L-0001',
  type: 'PROFESSIONAL',
  customer: 'Banque Exemple',
  email: 'it@banque.example',
  maxClusters: 1,
  maxPodsPerCluster: 3,
  expiryDate: '2027-12-31',
} as const;

export type Claims = Readonly<Record<string, unknown>>;

const segment = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

export const unsigned = (claims: unknown = CLAIMS, header: unknown = { alg: 'RS256', typ: 'JWT' }): string =>
  `${segment(header)}.${segment(claims)}`;

export const rs256 = (input: string, key: KeyObject = VENDOR.privateKey): string =>
  `${input}.${createSign('RSA-SHA256').update(input).sign(key, 'base64url')}`;

export const hs256 = (input: string, secret: string): string =>
  `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;

export const base64 = (token: string): string => Buffer.from(token, 'latin1').toString('base64');

/** A license as the vendor sends it. `undefined` leaves a claim out. */
export const license = (claims: Claims = {}, key: KeyObject = VENDOR.privateKey): string =>
  base64(rs256(unsigned({ ...CLAIMS, ...claims }), key));
