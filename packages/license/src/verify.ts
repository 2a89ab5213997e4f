import jwt from 'jsonwebtoken';

import { claimsSchema } from './claims.js';
import type { LicenseClaims } from './claims.js';
import type { VendorKey } from './public-key.js';

/** A license text has about 1000 characters. */
export const MAX_LICENSE_TEXT = 16_384;

/** Every way to be refused. */
export type LicenseFault =
  | 'empty'
  | 'too-long'
  | 'not-base64'
  | 'trailing-data'
  | 'not-a-jwt'
  | 'unsigned'
  | 'wrong-algorithm'
  | 'wrong-signature'
  | 'unknown-type'
  | 'bad-claims'
  | 'not-yet-valid'
  | 'expired';

export interface LicenseRefusal {
  readonly fault: LicenseFault;
  /** For the operator: what was expected, what came. Nothing of the text itself is repeated but names and figures. */
  readonly message: string;
}

/** A license whose signature and claims are right; whether it is its time is another question (`timeFault`). */
export interface License extends LicenseClaims {
  /** The text in one line, as it is stored. */
  readonly text: string;
}

export type Verification =
  { readonly ok: true; readonly license: License } | { readonly ok: false; readonly refusal: LicenseRefusal };

const refuse = (fault: LicenseFault, message: string): Verification => ({ ok: false, refusal: { fault, message } });

/** Decodes only what an encoder would have written: no stray bits in the last character, no characters skipped. */
const canonical = (text: string, encoding: 'base64' | 'base64url'): Buffer | undefined => {
  const bytes = Buffer.from(text, encoding);
  return bytes.toString(encoding) === text ? bytes : undefined;
};

const parseObject = (bytes: Buffer): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};

/** base64 → JWT text, with words for each way that people get it wrong. */
const unwrap = (text: string): { readonly token: string } | Verification => {
  if (text === '') return refuse('empty', 'The license is empty: expected the base64 text that the vendor sent');
  if (/^[\w-]+\.[\w-]*\.[\w-]*$/.test(text)) {
    return refuse('not-base64', 'This is a JWT itself: expected it once more in base64, as the vendor sends it');
  }
  if (/^[A-Za-z0-9+/]+={1,2}[^=]/.test(text)) {
    return refuse('trailing-data', 'There is something after the end of the base64 text (after the "=")');
  }
  const bytes = canonical(text, 'base64');
  if (bytes === undefined) {
    return refuse(
      'not-base64',
      'Not base64 (A-Z a-z 0-9 + / and = at the end): was the text cut or changed on the way?',
    );
  }
  return { token: bytes.toString('latin1') };
};

const checkShape = (token: string): Verification | undefined => {
  const parts = token.split('.');
  if (parts.length > 3 || (parts.length === 3 && /^[\w-]*[^\w-]/.test(parts[2] ?? ''))) {
    return refuse('trailing-data', 'There is something after the signature of the JWT (a line end, perhaps)');
  }
  const [header, payload, signature] = parts.map((part) => canonical(part, 'base64url'));
  if (header === undefined || payload === undefined || (signature === undefined && parts.length === 3)) {
    return refuse('not-a-jwt', 'The base64 text holds no JWT: expected header.payload.signature, each in base64url');
  }
  const fields = parseObject(header);
  if (fields === undefined) return refuse('not-a-jwt', 'The header of the JWT is not a JSON object');
  const algorithm = fields['alg'];
  if (typeof algorithm === 'string' && algorithm.toLowerCase() === 'none') {
    return refuse('unsigned', 'The license is not signed (algorithm none): expected RS256');
  }
  if (algorithm !== 'RS256') {
    const got = typeof algorithm === 'string' ? algorithm.slice(0, 20) : 'none at all';
    return refuse('wrong-algorithm', `The license is signed with ${got}: expected RS256`);
  }
  if (signature === undefined || signature.length === 0) {
    return refuse('unsigned', 'The signature of the license is missing');
  }
  if (parseObject(payload) === undefined) return refuse('bad-claims', 'The payload of the JWT is not a JSON object');
  return undefined;
};

/**
 * Signature and claims of a license text, whatever the time. Bounded cost: one RSA verification of at most 16 KB.
 * @param text base64 of the JWT; blanks and line ends around it or within are ignored, as mail programs add them.
 */
export const verifyLicense = (text: string, key: VendorKey): Verification => {
  if (text.length > MAX_LICENSE_TEXT) {
    return refuse('too-long', `The license has ${text.length} characters: at most ${MAX_LICENSE_TEXT} are read`);
  }
  const line = text.replace(/[ \t\r\n]/g, '');
  const unwrapped = unwrap(line);
  if (!('token' in unwrapped)) return unwrapped;
  const { token } = unwrapped;
  const misshapen = checkShape(token);
  if (misshapen !== undefined) return misshapen;

  let payload: jwt.JwtPayload;
  try {
    // An object: `checkShape` has seen to it. Times are `timeFault`'s matter.
    payload = jwt.verify(token, key.pem, {
      algorithms: ['RS256'],
      ignoreExpiration: true,
      ignoreNotBefore: true,
    }) as jwt.JwtPayload;
  } catch {
    return refuse(
      'wrong-signature',
      "The signature was not made with the vendor's key: the license was altered, or issued for another build (license.public-key)",
    );
  }
  const claims = claimsSchema.safeParse(payload);
  if (claims.success) return { ok: true, license: { ...claims.data, text: line } };
  const { issues } = claims.error;
  const unknownType = issues.length === 1 && issues[0]?.path[0] === 'type' && payload['type'] !== undefined;
  return refuse(
    unknownType ? 'unknown-type' : 'bad-claims',
    `Signed by the vendor, but: ${issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')}`,
  );
};

const instant = (time: number): string => new Date(time).toISOString();

/** Why a license is not valid at `now` (milliseconds); `undefined` when it is. */
export const timeFault = (license: LicenseClaims, now: number): LicenseRefusal | undefined => {
  if (now < license.notBefore) {
    return {
      fault: 'not-yet-valid',
      message: `License ${license.licenseId} is valid from ${instant(license.notBefore)}; it is ${instant(now)} here`,
    };
  }
  if (now >= license.expiresAt) {
    return {
      fault: 'expired',
      message: `License ${license.licenseId} expired on ${license.expiryDate}; it is ${instant(now)} here`,
    };
  }
  return undefined;
};

/** A license that is valid now, or why not. */
export const checkLicense = (text: string, key: VendorKey, now: number): Verification => {
  const result = verifyLicense(text, key);
  if (!result.ok) return result;
  const refusal = timeFault(result.license, now);
  return refusal === undefined ? result : { ok: false, refusal };
};
