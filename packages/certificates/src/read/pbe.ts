import { createDecipheriv } from 'node:crypto';

import type * as asn1 from 'asn1js';

import { unreadable } from '../faults.js';
import type { UploadField } from '../faults.js';
import { bytesOf, integerOf, itemsOf, oidOf } from './der.js';
import { passwordForms, pbkdf2Key, pkcs12Key, PURPOSE } from './derivation.js';
import type { HashBudget } from './derivation.js';
import { decryptRc2 } from './rc2.js';

/** The password, and what it may cost to try it. */
export interface Unlocking {
  readonly password: string;
  readonly budget: HashBudget;
  /** The field that holds what is encrypted. */
  readonly field: UploadField;
}

const PBES2 = '1.2.840.113549.1.5.13';
const PBKDF2 = '1.2.840.113549.1.5.12';

/** RFC 8018 §B.1.2; without a name the first. */
const PRFS: Readonly<Record<string, string>> = {
  '1.2.840.113549.2.7': 'sha1',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
};

const CIPHERS: Readonly<Record<string, { readonly cipher: string; readonly key: number }>> = {
  '2.16.840.1.101.3.4.1.2': { cipher: 'aes-128-cbc', key: 16 },
  '2.16.840.1.101.3.4.1.22': { cipher: 'aes-192-cbc', key: 24 },
  '2.16.840.1.101.3.4.1.42': { cipher: 'aes-256-cbc', key: 32 },
  '1.2.840.113549.3.7': { cipher: 'des-ede3-cbc', key: 24 },
};

/** RFC 7292 §C, as older programs write it. */
const OLD_CIPHERS: Readonly<Record<string, { readonly cipher: 'des-ede3-cbc' | 'rc2'; readonly key: number }>> = {
  '1.2.840.113549.1.12.1.3': { cipher: 'des-ede3-cbc', key: 24 },
  '1.2.840.113549.1.12.1.5': { cipher: 'rc2', key: 16 },
  '1.2.840.113549.1.12.1.6': { cipher: 'rc2', key: 5 },
};

/** Undefined: the padding is wrong. */
const decipher = (cipher: string, key: Buffer, iv: Buffer, data: Buffer): Buffer | undefined => {
  try {
    const opened = createDecipheriv(cipher, key, iv);
    return Buffer.concat([opened.update(data), opened.final()]);
  } catch {
    return undefined;
  }
};

const unknown = (field: UploadField, what: string): Error =>
  unreadable(
    field,
    `it is encrypted with ${what}, which is not known here: make it anew with openssl (AES-256, PBKDF2), or give PEM`,
  );

const openPbes2 = async (params: asn1.BaseBlock, data: Buffer, unlocking: Unlocking): Promise<Buffer | undefined> => {
  const { password, budget, field } = unlocking;
  const [derivation, encryption] = itemsOf(params).map(itemsOf);
  const kdf = oidOf(derivation?.[0]);
  if (kdf !== PBKDF2) throw unknown(field, `the key derivation ${kdf}`);
  const [salt, iterations, ...more] = itemsOf(derivation?.[1]);
  const prf = more.find((one) => one.idBlock.tagNumber === 16);
  const prfName = prf === undefined ? '1.2.840.113549.2.7' : oidOf(itemsOf(prf)[0]);
  const hash = PRFS[prfName];
  if (hash === undefined) throw unknown(field, `the hash ${prfName}`);
  const name = oidOf(encryption?.[0]);
  const cipher = CIPHERS[name];
  if (cipher === undefined) throw unknown(field, `the cipher ${name}`);
  const how = { salt: bytesOf(salt), iterations: integerOf(iterations), hash };
  const key = await pbkdf2Key(budget, password, how, cipher.key);
  return decipher(cipher.cipher, key, bytesOf(encryption?.[1]), data);
};

const openOld = async (
  { cipher, key: length }: (typeof OLD_CIPHERS)[string],
  params: asn1.BaseBlock | undefined,
  data: Buffer,
  { password, budget }: Unlocking,
): Promise<Buffer | undefined> => {
  const [salt, iterations] = itemsOf(params);
  const how = { salt: bytesOf(salt), iterations: integerOf(iterations), hash: 'sha1' };
  for (const form of passwordForms(password)) {
    const key = await pkcs12Key(budget, form, { ...how, purpose: PURPOSE.key }, length);
    const iv = await pkcs12Key(budget, form, { ...how, purpose: PURPOSE.iv }, 8);
    const plain = cipher === 'rc2' ? decryptRc2(key, length * 8, iv, data) : decipher(cipher, key, iv, data);
    if (plain !== undefined) return plain;
  }
  return undefined;
};

/**
 * Opens what a password protects: PBES2 (RFC 8018) with AES or 3DES, and the older ways of PKCS#12.
 * @param algorithm AlgorithmIdentifier
 * @returns undefined when the password does not fit
 * @throws {UploadError} for a way that is not known, or that costs too much
 * @throws {DerError}
 */
export const openEncrypted = async (
  algorithm: asn1.BaseBlock | undefined,
  data: Buffer,
  unlocking: Unlocking,
): Promise<Buffer | undefined> => {
  const [name, params] = itemsOf(algorithm);
  const oid = oidOf(name);
  const old = OLD_CIPHERS[oid];
  if (old !== undefined) return openOld(old, params, data, unlocking);
  if (oid !== PBES2 || params === undefined) throw unknown(unlocking.field, oid);
  return openPbes2(params, data, unlocking);
};

/** The private key (PKCS#8 DER) inside an EncryptedPrivateKeyInfo; undefined when the password does not fit. */
export const openPrivateKeyInfo = async (
  info: asn1.BaseBlock | undefined,
  unlocking: Unlocking,
): Promise<Buffer | undefined> => {
  const [algorithm, data] = itemsOf(info);
  return openEncrypted(algorithm, bytesOf(data), unlocking);
};
