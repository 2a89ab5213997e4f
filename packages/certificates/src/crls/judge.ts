import type { X509Certificate } from 'node:crypto';

import { UploadError } from '../faults.js';
import { nameOf } from '../inspect.js';
import { DerError } from '../read/der.js';
import { derOfCrl, readCrl, signersOf } from '../read/crl.js';
import type { Crl } from '../read/crl.js';
import type { CrlFetch } from '../fields.js';
import { FetchError } from './fetch.js';

/** Clocks differ by so much. */
const CLOCK_MS = 300_000;

export interface GoodCrl {
  readonly crl: Crl;
  readonly entries: number;
}

const iso = (time: number): string => new Date(time).toISOString();

const read = (bytes: Buffer): Crl => {
  try {
    return readCrl(derOfCrl(bytes));
  } catch (error) {
    if (!(error instanceof UploadError)) throw error;
    throw new FetchError(`what came is no CRL (${error.message})`, { cause: error });
  }
};

const count = async (crl: Crl): Promise<number> => {
  try {
    return (await crl.entries()).size;
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw new FetchError(`the CRL that came has bad entries (${error.message})`, { cause: error });
  }
};

/**
 * Whether a CRL that was fetched may take the place of the one before: it is of one of these CAs, it counts now, and it is not older.
 * @throws {FetchError}
 */
export const judgeCrl = async (
  bytes: Buffer,
  cas: readonly X509Certificate[],
  before: Pick<CrlFetch, 'number' | 'this_update'>,
  now: number,
): Promise<GoodCrl> => {
  const crl = read(bytes);
  if ((await signersOf(crl, cas)).length === 0) {
    const names = cas.slice(0, 3).map(nameOf).join(', ');
    throw new FetchError(`the CRL that came is signed by none of the CAs of the truststore (${names})`);
  }
  const { thisUpdate, nextUpdate, number } = crl;
  if (thisUpdate > now + CLOCK_MS)
    throw new FetchError(`the CRL that came begins at ${iso(thisUpdate)}: look at the clocks`);
  if (nextUpdate !== undefined && nextUpdate <= now) {
    throw new FetchError(`the CRL that came should have been replaced by ${iso(nextUpdate)}`);
  }
  const { number: last, this_update: from } = before;
  if (last !== null && (number === undefined || number < BigInt(last))) {
    throw new FetchError(
      `the CRL that came has the number ${number ?? 'none'}, and ${last} was here before: if its CA began anew, remove the URL and add it again`,
    );
  }
  if (from !== null && thisUpdate < from.getTime()) {
    throw new FetchError(
      `the CRL that came is of ${iso(thisUpdate)}, and one of ${from.toISOString()} was here before`,
    );
  }
  return { crl, entries: await count(crl) };
};
