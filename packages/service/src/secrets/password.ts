import { createHmac, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

import { costProblem, formatHash, PasswordHashError, readHash } from './password-hash.js';
import type { PasswordCost, PasswordHash } from './password-hash.js';
import type { SecretBox, SecretKey } from './secret-box.js';

/** 32 MiB and about 180 ms a check (OWASP, Password Storage). The cost travels in the hash, so that it can be raised later. */
const COST: PasswordCost = { logN: 15, r: 8, p: 3 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** Purpose of the keys of the HMAC; another text makes every stored hash worthless. */
const PURPOSE = 'pesit-node password hashes v1';

const derive = (input: string | Buffer, salt: Buffer, length: number, cost: PasswordCost): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const { logN, r, p } = cost;
    // Memory that RFC 7914 §2 needs, and a little more: nothing is computed that was not bounded before.
    const options = { N: 2 ** logN, r, p, maxmem: 128 * r * (2 ** logN + p + 8) };
    scrypt(input, salt, length, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });

/**
 * Hash of a password without a key of ours, for files that an administrator writes.
 * @param cost default N=2^15, r=8, p=3
 */
export const hashPassword = async (password: string, cost: PasswordCost = COST): Promise<string> => {
  const problem = costProblem(cost);
  if (problem !== undefined) throw new RangeError(problem);
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password.normalize('NFC'), salt, HASH_BYTES, cost);
  return formatHash({ cost, keyId: undefined, salt, hash });
};

/** Whether `password` gives `stored`, a hash without a key. @throws {PasswordHashError} when it is no such hash */
export const checkPassword = async (password: string, stored: string): Promise<boolean> => {
  const { salt, hash, cost, keyId } = readHash(stored);
  if (keyId !== undefined) throw new PasswordHashError('the stored hash needs a key');
  return timingSafeEqual(await derive(password.normalize('NFC'), salt, hash.length, cost), hash);
};

/**
 * Hashes passwords to be stored, and checks them: scrypt over an HMAC-SHA256 of the password, so that whoever carries off the
 * database alone has nothing to try passwords against. The key of the HMAC is made of `secrets.key`.
 */
export class PasswordHasher {
  readonly #keys: readonly [SecretKey, ...SecretKey[]];
  readonly #cost: PasswordCost;

  /** @param cost of new hashes; default N=2^15, r=8, p=3. Throws when it is beyond the bounds of a stored one. */
  constructor(secrets: SecretBox, cost: PasswordCost = COST) {
    const problem = costProblem(cost);
    if (problem !== undefined) throw new RangeError(problem);
    this.#keys = secrets.keysFor(PURPOSE);
    this.#cost = cost;
  }

  /** Hash of a password to be stored, with a salt of its own. */
  async hash(password: string): Promise<string> {
    const [{ id, bytes }] = this.#keys;
    const salt = randomBytes(SALT_BYTES);
    const hash = await derive(hmac(bytes, password), salt, HASH_BYTES, this.#cost);
    return formatHash({ cost: this.#cost, keyId: id, salt, hash });
  }

  /**
   * Whether `password` gives `stored`, in time that does not depend on where they differ.
   * @throws {PasswordHashError} when that cannot be found out: no hash of ours, beyond the bounds, or its key is not there
   */
  async verify(password: string, stored: string): Promise<boolean> {
    const read = readHash(stored);
    const { salt, hash, cost } = read;
    return timingSafeEqual(await derive(this.#inputOf(password, read), salt, hash.length, cost), hash);
  }

  /** Whether a stored hash is to be made anew as soon as its password is known: cheaper than new ones, or of an older key. */
  isStale(stored: string): boolean {
    const { cost, keyId } = readHash(stored);
    const { logN, r, p } = this.#cost;
    return keyId !== this.#keys[0].id || cost.logN < logN || cost.r < r || cost.p < p;
  }

  #inputOf(password: string, { keyId }: PasswordHash): string | Buffer {
    // Hashes were made without a key once.
    if (keyId === undefined) return password.normalize('NFC');
    const key = this.#keys.find(({ id }) => id === keyId);
    if (key === undefined) {
      const there = this.#keys.map(({ id }) => id).join(', ');
      throw new PasswordHashError(`the stored hash needs the key ${keyId}, secrets.key holds ${there}`);
    }
    return hmac(key.bytes, password);
  }
}

const hmac = (key: Buffer, password: string): Buffer =>
  createHmac('sha256', key).update(password.normalize('NFC')).digest();
