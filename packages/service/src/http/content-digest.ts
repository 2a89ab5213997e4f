import { createHash } from 'node:crypto';

import { validation } from '../errors.js';
import type { ApiError } from '../errors.js';

/** Those of RFC 9530 §5 that prove something today; the others are left aside, as §2 has it. */
const ALGORITHMS = { 'sha-256': { hash: 'sha256', bytes: 32 }, 'sha-512': { hash: 'sha512', bytes: 64 } } as const;

/** A member of the dictionary (RFC 8941 §3.2): a key, and a byte sequence. */
const MEMBER = /^([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/]*={0,2}):(?:;.*)?$/;

const refused = (message: string): ApiError => validation([{ field: 'Content-Digest', message }]);

/** Compares a body with its digests while it comes in. */
export interface ContentDigest {
  readonly update: (piece: Buffer) => void;
  /** To be called when all of it has come. @throws {ApiError} 400 when it is another body */
  readonly end: () => void;
}

/**
 * The header `Content-Digest` (RFC 9530 §2), of the body as it travels: of a form with its boundaries.
 * @returns undefined without one
 * @throws {ApiError} 400 when it cannot be read, or has neither sha-256 nor sha-512
 */
export const contentDigest = (header: string | undefined): ContentDigest | undefined => {
  if (header === undefined) return undefined;
  const hashes = header.split(',').flatMap((member) => {
    const [, name = '', encoded = ''] = MEMBER.exec(member.trim()) ?? [];
    if (name === '') throw refused('expected sha-256=:BASE64: or sha-512=:BASE64: (RFC 9530)');
    if (!Object.hasOwn(ALGORITHMS, name)) return [];
    const { hash, bytes } = ALGORITHMS[name as keyof typeof ALGORITHMS];
    const expected = Buffer.from(encoded, 'base64');
    if (expected.length !== bytes)
      throw refused(`expected ${bytes} bytes of ${name} in base64, got ${expected.length}`);
    return [{ name, expected, hash: createHash(hash) }];
  });
  if (hashes.length === 0) throw refused('expected sha-256 or sha-512 among its digests (RFC 9530)');
  return {
    update: (piece) => {
      for (const { hash } of hashes) hash.update(piece);
    },
    end: () => {
      for (const { name, expected, hash } of hashes) {
        const digest = hash.digest();
        if (digest.equals(expected)) continue;
        throw refused(
          `the body is another one than it says: its ${name} is ${digest.toString('base64')}, expected ${expected.toString('base64')}. Nothing of it was kept: send it again`,
        );
      }
    },
  };
};
