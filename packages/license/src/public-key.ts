import { createHash, createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';

import type { KeyWithoutEffect } from '@pesit-node/service';
import { NodeRSA } from 'node-rsa';

import { BUILD } from './build.js';
import type { Build } from './build.js';
import { EVALUATION_PUBLIC_KEY } from './evaluation-key.js';

export const MIN_KEY_BITS = 2048;
/** A PEM of 16,384 bits has about 3 KB. */
const MAX_PEM = 16_384;

/** `license.public-key` cannot be used: the service does not start, because no license could ever be installed. */
export class LicenseKeyError extends Error {
  override readonly name = 'LicenseKeyError';
}

/** Where the key comes from: the build, `license.public-key`, or the repository. */
export const KEY_SOURCES = ['BUILD', 'CONFIGURATION', 'EVALUATION'] as const;

/** The vendor's public key, checked. */
export interface VendorKey {
  readonly source: (typeof KEY_SOURCES)[number];
  /** `sha256:` and 64 hex digits of the key as SPKI DER: what people compare. */
  readonly fingerprint: string;
  readonly pem: string;
  readonly bits: number;
}

/**
 * Checks the PEM text of an RSA public key (SPKI or PKCS#1). jsonwebtoken itself would verify with a 1024-bit key.
 * @throws {LicenseKeyError} not an RSA public key, a private key, less than 2048 bits.
 */
export const parsePublicKey = (text: string, source: VendorKey['source'] = 'CONFIGURATION'): VendorKey => {
  // Environment variables often carry `\n` in place of line ends.
  const pem = text.replaceAll('\\n', '\n').trim();
  if (pem.length > MAX_PEM) throw new LicenseKeyError(`The public key is longer than ${MAX_PEM} characters`);
  let key: NodeRSA;
  try {
    key = new NodeRSA(pem);
  } catch (cause) {
    throw new LicenseKeyError(
      `Not an RSA public key in PEM: expected -----BEGIN PUBLIC KEY----- or -----BEGIN RSA PUBLIC KEY----- (${(cause as Error).message})`,
      { cause },
    );
  }
  if (!key.isPublic(true)) {
    throw new LicenseKeyError(
      'This is a private key: give the public key alone, and treat the private key as disclosed if others could read it here',
    );
  }
  const bits = key.getKeySize();
  if (bits < MIN_KEY_BITS) {
    throw new LicenseKeyError(`The public key has ${bits} bits: at least ${MIN_KEY_BITS} are needed`);
  }
  return { source, fingerprint: fingerprintOf(pem), pem: `${pem}\n`, bits };
};

const fingerprintOf = (pem: string): string => {
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(der).digest('hex')}`;
};

/**
 * The key that licenses are verified with: that of the build; in an evaluation build the one that `license.public-key` names.
 * @param value PEM text, the path of a PEM file, or nothing for the key of evaluation builds. Not looked at where the build has one.
 * @throws {LicenseKeyError} also when the file cannot be read.
 */
export const loadPublicKey = async (value: string, build: Build = BUILD): Promise<VendorKey> => {
  if (build.vendorKey !== undefined) return parsePublicKey(build.vendorKey, 'BUILD');
  if (value.trim() === '') return parsePublicKey(EVALUATION_PUBLIC_KEY, 'EVALUATION');
  if (value.includes('-----BEGIN')) return inContext('license.public-key', () => parsePublicKey(value));
  const text = await readFile(value, 'utf8').catch((cause: unknown) => {
    throw new LicenseKeyError(
      `license.public-key: expected PEM text or the path of a PEM file; ${value} cannot be read (${(cause as Error).message})`,
      { cause },
    );
  });
  return inContext(`license.public-key (${value})`, () => parsePublicKey(text));
};

/** `license.public-key` where it is set and does nothing, for the log and `/actuator/info`. */
export const keyWithoutEffect = (value: string, { source }: VendorKey): readonly KeyWithoutEffect[] =>
  source === 'BUILD' && value.trim() !== ''
    ? [{ key: 'license.public-key', reason: "this build has the vendor's key inside, which alone counts" }]
    : [];

const inContext = (where: string, parse: () => VendorKey): VendorKey => {
  try {
    return parse();
  } catch (cause) {
    throw new LicenseKeyError(`${where}: ${(cause as Error).message}`, { cause });
  }
};
