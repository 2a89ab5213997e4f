import { oneOrMore } from '@pesit-node/service';
import { z } from 'zod';

/**
 * A SHA-256 fingerprint as it is written here, upper-case hex with colons, from any spelling (lower case, blanks, hyphens, without
 * colons, `SHA256:` before it). @returns undefined where it is none
 */
const fingerprintOf = (text: string): string | undefined => {
  const hex = text
    .replace(/^sha-?256\s*(?:fingerprint)?\s*[:=]/i, '')
    .replace(/[\s:-]/g, '')
    .toUpperCase();
  return /^[0-9A-F]{64}$/.test(hex) ? (hex.match(/../g) ?? []).join(':') : undefined;
};

const EXPECTED =
  'expected a SHA-256 fingerprint: 64 hexadecimal digits, with or without colons, such as 3A:5F:09:… (openssl x509 -noout -fingerprint -sha256)';

const fingerprint = () =>
  z
    .string()
    .max(200, EXPECTED)
    .refine((value) => fingerprintOf(value) !== undefined, EXPECTED)
    .transform((value) => fingerprintOf(value) ?? value);

/** SHA-256 fingerprints of certificates, one or a list, in any spelling; kept in one. */
export const fingerprints = () => oneOrMore(fingerprint());
