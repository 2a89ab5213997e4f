import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Build } from './build.js';
import { EVALUATION_PUBLIC_KEY } from './evaluation-key.js';
import { parsePublicKey } from './public-key.js';
import type { VendorKey } from './public-key.js';

/** Ten years; an extension is of 365 days at most. */
const MOST_DAYS = 3650;

/** As the compiler leaves the line of `build.ts`. */
const UNBAKED = "const BAKED = '{}';";

/** The build cannot be made for customers; the message says why. */
export class BakeError extends Error {
  override readonly name = 'BakeError';
}

export interface BakeOptions {
  /** The `dist` of this package in the built tree: a copy, never the one that the repository is developed with. */
  readonly dist: string;
  /** PEM text of the vendor's public key. */
  readonly vendorKey: string;
  /** Most days that all extensions of an evaluation together add, 0 to 3650. Default: any. */
  readonly maxExtensionDays?: number | undefined;
}

/**
 * Makes a build for customers of a built tree: the vendor's key counts in it, whatever is configured.
 * @returns the key that is inside from now on
 * @throws {LicenseKeyError} the key cannot be used, {BakeError} the tree or the cap cannot; nothing is changed then.
 */
export const bakeBuild = async ({ dist, vendorKey, maxExtensionDays }: BakeOptions): Promise<VendorKey> => {
  const key = parsePublicKey(vendorKey, 'BUILD');
  if (key.fingerprint === parsePublicKey(EVALUATION_PUBLIC_KEY).fingerprint) {
    throw new BakeError(
      'This is the key of evaluation builds, with which no license verifies: give the key of the vendor',
    );
  }
  if (maxExtensionDays !== undefined && !(Number.isInteger(maxExtensionDays) && isWithin(maxExtensionDays))) {
    throw new BakeError(`The cap on extensions: expected 0 to ${MOST_DAYS} days, got ${maxExtensionDays}`);
  }
  const path = join(dist, 'build.js');
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new BakeError(`${path} cannot be read: expected the dist of packages/license in a tree that was built`, {
      cause,
    });
  });
  if (text.split(UNBAKED).length !== 2) {
    throw new BakeError(
      `${path} is no build for evaluation: it has a vendor's key already, or was not built from this version`,
    );
  }
  const build: Build = { vendorKey: key.pem, maxExtensionDays };
  const line = `const BAKED = ${JSON.stringify(JSON.stringify(build))};`;
  // Its name last: a tree that was interrupted half-way is one for evaluation, never one with half a key.
  const draft = `${path}.new`;
  try {
    await writeFile(
      draft,
      text.replace(UNBAKED, () => line),
    );
    await rename(draft, path);
  } catch (cause) {
    await rm(draft, { force: true });
    throw new BakeError(`${path} cannot be written: ${(cause as Error).message}`, { cause });
  }
  return key;
};

const isWithin = (days: number): boolean => days >= 0 && days <= MOST_DAYS;
