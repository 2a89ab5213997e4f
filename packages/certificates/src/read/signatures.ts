import { verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { promisify } from 'node:util';

/** In a thread of the pool: a hash over a long CRL takes a moment. */
export const verifies = promisify<string | null, Buffer, KeyObject, Buffer, boolean>(verify);

/** Hash of the signature algorithms that CAs use; null: the algorithm has one of its own. */
export const SIGNATURES: Readonly<Record<string, string | null>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
  '1.3.101.112': null,
  '1.3.101.113': null,
};
