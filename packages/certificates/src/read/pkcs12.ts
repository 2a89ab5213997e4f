import { createHmac, timingSafeEqual } from 'node:crypto';

import type * as asn1 from 'asn1js';

import { BOUNDS } from '../bounds.js';
import { unreadable } from '../faults.js';
import { bytesOf, derOf, DerError, integerOf, itemsOf, oidOf, readDer, tagged } from './der.js';
import { HashBudget, passwordForms, pkcs12Key, PURPOSE } from './derivation.js';
import { openEncrypted, openPrivateKeyInfo } from './pbe.js';
import type { Unlocking } from './pbe.js';

/** Contents of a PKCS#12, in the order in which they stand. */
export interface Pkcs12 {
  /** DER. */
  readonly certificates: readonly Buffer[];
  /** PKCS#8 DER. */
  readonly keys: readonly Buffer[];
}

const DATA = '1.2.840.113549.1.7.1';
const ENCRYPTED_DATA = '1.2.840.113549.1.7.6';
const BAG = '1.2.840.113549.1.12.10.1';
const KEY_BAG = `${BAG}.1`;
const SHROUDED_KEY_BAG = `${BAG}.2`;
const CERTIFICATE_BAG = `${BAG}.3`;
const NESTED_BAG = `${BAG}.6`;
const X509 = '1.2.840.113549.1.9.22.1';

const MAC_HASHES: Readonly<Record<string, { readonly hash: string; readonly size: number }>> = {
  '1.3.14.3.2.26': { hash: 'sha1', size: 20 },
  '2.16.840.1.101.3.4.2.1': { hash: 'sha256', size: 32 },
  '2.16.840.1.101.3.4.2.2': { hash: 'sha384', size: 48 },
  '2.16.840.1.101.3.4.2.3': { hash: 'sha512', size: 64 },
};

const WRONG_PASSWORD = 'it does not open the PKCS#12: expected the password that it was made with';
/** Safes within safes: nobody needs them, and one may hold itself many times. */
const MAX_DEPTH = 4;
const MAX_BAGS = BOUNDS.certificates + 10;

/** Content of a ContentInfo of type data (RFC 5652 §4). */
const dataIn = (info: asn1.BaseBlock | undefined): Buffer => {
  const [type, content] = itemsOf(info);
  if (oidOf(type) !== DATA) throw new DerError('it is signed with a key instead of a password');
  return bytesOf(tagged(content, 0));
};

/** RFC 7292 §4: whether the password is the one that the file was made with. */
const checkMac = async (mac: asn1.BaseBlock, content: Buffer, { password, budget }: Unlocking): Promise<void> => {
  const [digestInfo, salt, rounds] = itemsOf(mac);
  const [algorithm, digest] = itemsOf(digestInfo);
  const name = oidOf(itemsOf(algorithm)[0]);
  const known = MAC_HASHES[name];
  if (known === undefined) {
    throw unreadable(
      'pkcs12',
      `its integrity is protected by ${name}, which is not known here: make it anew with openssl`,
    );
  }
  const { hash, size } = known;
  const expected = bytesOf(digest);
  const how = { salt: bytesOf(salt), iterations: rounds === undefined ? 1 : integerOf(rounds), hash };
  for (const form of passwordForms(password)) {
    const key = await pkcs12Key(budget, form, { ...how, purpose: PURPOSE.mac }, size);
    const found = createHmac(hash, key).update(content).digest();
    if (found.length === expected.length && timingSafeEqual(found, expected)) return;
  }
  throw unreadable('password', WRONG_PASSWORD);
};

class Bags {
  readonly certificates: Buffer[] = [];
  readonly keys: Buffer[] = [];
  readonly #unlocking: Unlocking;
  #seen = 0;

  constructor(unlocking: Unlocking) {
    this.#unlocking = unlocking;
  }

  /** RFC 7292 §4.1: AuthenticatedSafe. */
  async takeSafe(content: Buffer): Promise<void> {
    for (const info of itemsOf(readDer(content))) {
      const [type, value] = itemsOf(info);
      if (oidOf(type) === DATA) await this.#takeBags(dataIn(info), 0);
      else if (oidOf(type) === ENCRYPTED_DATA) await this.#takeBags(await this.#opened(tagged(value, 0)), 0);
      else throw new DerError('a part is protected by a certificate instead of a password');
    }
  }

  /** RFC 5652 §8: EncryptedData. */
  async #opened(encrypted: asn1.BaseBlock | undefined): Promise<Buffer> {
    const [, algorithm, content] = itemsOf(itemsOf(encrypted)[1]);
    const plain = await openEncrypted(algorithm, bytesOf(content), this.#unlocking);
    if (plain === undefined) throw unreadable('password', WRONG_PASSWORD);
    return plain;
  }

  /** RFC 7292 §4.2: SafeContents. */
  async #takeBags(content: Buffer, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) throw new DerError('it holds safes within safes');
    for (const bag of itemsOf(readDer(content))) {
      this.#seen += 1;
      if (this.#seen > MAX_BAGS) throw unreadable('pkcs12', `expected at most ${MAX_BAGS} entries, got more`);
      const [type, wrapped] = itemsOf(bag);
      const value = tagged(wrapped, 0);
      switch (oidOf(type)) {
        case KEY_BAG:
          this.keys.push(derOf(value));
          break;
        case SHROUDED_KEY_BAG: {
          const key = await openPrivateKeyInfo(value, this.#unlocking);
          if (key === undefined) throw unreadable('password', WRONG_PASSWORD);
          this.keys.push(key);
          break;
        }
        case CERTIFICATE_BAG: {
          const [kind, certificate] = itemsOf(value);
          if (oidOf(kind) === X509) this.certificates.push(bytesOf(tagged(certificate, 0)));
          break;
        }
        case NESTED_BAG:
          await this.#takeBags(derOf(value), depth + 1);
      }
    }
  }
}

/**
 * Reads a PKCS#12 (RFC 7292), as OpenSSL, Windows and Java write it, the older ciphers included.
 * @throws {UploadError} naming `pkcs12` or `password`
 */
export const readPkcs12 = async (bytes: Buffer, password: string): Promise<Pkcs12> => {
  const unlocking: Unlocking = { password, budget: new HashBudget('pkcs12'), field: 'pkcs12' };
  try {
    const [, authSafe, mac] = itemsOf(readDer(bytes));
    const content = dataIn(authSafe);
    if (mac !== undefined) await checkMac(mac, content, unlocking);
    const bags = new Bags(unlocking);
    await bags.takeSafe(content);
    return bags;
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw unreadable('pkcs12', `expected a PKCS#12 (.p12, .pfx): ${error.message}`, error);
  }
};
