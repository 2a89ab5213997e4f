import { createHash, pbkdf2 } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';

import { BOUNDS } from '../bounds.js';
import { unreadable } from '../faults.js';
import type { UploadField } from '../faults.js';

const derive = promisify(pbkdf2);

/** Hashes in one turn of the event loop: some milliseconds. */
const TURN = 5000;

/** Bounds the key derivations of one upload: the file says how often it wants to be hashed. */
export class HashBudget {
  readonly #field: UploadField;
  #left: number = BOUNDS.hashes;

  constructor(field: UploadField) {
    this.#field = field;
  }

  /** @throws {UploadError} when it asks for more than it may have */
  take(iterations: number, blocks: number): void {
    if (iterations < 1 || iterations > BOUNDS.iterations) {
      throw unreadable(
        this.#field,
        `its key derivation has ${iterations} iterations: expected 1 to ${BOUNDS.iterations}; make it anew, for example with openssl`,
      );
    }
    this.#left -= iterations * blocks;
    if (this.#left < 0) {
      throw unreadable(
        this.#field,
        `it holds so many encrypted parts, or iterations, that it would cost more than ${BOUNDS.hashes} hashes to open: expected one key with its chain`,
      );
    }
  }
}

/** Bytes of the hashes that files name, and of the blocks that they work on. */
const HASHES: Readonly<Record<string, { readonly size: number; readonly block: number }>> = {
  sha1: { size: 20, block: 64 },
  sha256: { size: 32, block: 64 },
  sha384: { size: 48, block: 128 },
  sha512: { size: 64, block: 128 },
};

/** PBKDF2 (RFC 8018 §5.2), beside the event loop. */
export const pbkdf2Key = (
  budget: HashBudget,
  password: string,
  { salt, iterations, hash }: { readonly salt: Buffer; readonly iterations: number; readonly hash: string },
  length: number,
): Promise<Buffer> => {
  budget.take(iterations, Math.ceil(length / (HASHES[hash]?.size ?? 20)));
  return derive(Buffer.from(password, 'utf8'), salt, iterations, length, hash);
};

/** RFC 7292 §B.1: UTF-16BE with two zero bytes; the empty password is written either way. */
export const passwordForms = (password: string): readonly Buffer[] => {
  const text = Buffer.from(`${password}\0`, 'utf16le').swap16();
  return password === '' ? [text, Buffer.alloc(0)] : [text];
};

/** The purpose of a derived value: RFC 7292 §B.3. */
export const PURPOSE = { key: 1, iv: 2, mac: 3 } as const;

interface Pkcs12Derivation {
  readonly purpose: (typeof PURPOSE)[keyof typeof PURPOSE];
  readonly salt: Buffer;
  readonly iterations: number;
  readonly hash: string;
}

const filled = (bytes: Buffer, block: number): Buffer => {
  if (bytes.length === 0) return bytes;
  return Buffer.alloc(block * Math.ceil(bytes.length / block), bytes);
};

/** RFC 7292 §B.2, in turns of the event loop. @param password in the form of `passwordForms` */
export const pkcs12Key = async (
  budget: HashBudget,
  password: Buffer,
  { purpose, salt, iterations, hash }: Pkcs12Derivation,
  length: number,
): Promise<Buffer> => {
  const { size, block } = HASHES[hash] ?? { size: 20, block: 64 };
  budget.take(iterations, Math.ceil(length / size));
  const diversifier = Buffer.alloc(block, purpose);
  const input = Buffer.concat([filled(salt, block), filled(password, block)]);
  const result: Buffer[] = [];
  for (let have = 0; have < length; have += size) {
    let digest = createHash(hash).update(diversifier).update(input).digest();
    for (let round = 1; round < iterations; round++) {
      if (round % TURN === 0) await turn();
      digest = createHash(hash).update(digest).digest();
    }
    result.push(digest);
    addToEach(input, filled(digest, block).subarray(0, block));
  }
  return Buffer.concat(result).subarray(0, length);
};

/** Each block of `input` becomes itself + `addend` + 1, modulo its size. */
const addToEach = (input: Buffer, addend: Buffer): void => {
  for (let at = 0; at < input.length; at += addend.length) {
    let carry = 1;
    for (let i = addend.length - 1; i >= 0; i--) {
      carry += (input[at + i] as number) + (addend[i] as number);
      input[at + i] = carry & 0xff;
      carry >>= 8;
    }
  }
};
