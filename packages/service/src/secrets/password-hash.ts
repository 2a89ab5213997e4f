/** The form of a stored hash (PHC): `$scrypt$ln=…,r=…,p=…,keyid=…$salt$hash`; the oldest have no `keyid`. */

/** A stored hash cannot be used: it is no hash of ours, asks for too much, or its key is not there. The text says which. */
export class PasswordHashError extends Error {
  override readonly name = 'PasswordHashError';
}

/** Parameters of scrypt (RFC 7914 §2); N is 2 to the power of `logN`. */
export interface PasswordCost {
  readonly logN: number;
  readonly r: number;
  readonly p: number;
}

export interface PasswordHash {
  readonly cost: PasswordCost;
  /** Key of the HMAC under the hash; undefined: there is none. */
  readonly keyId: string | undefined;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** Bounds of what a stored hash may ask for, whoever wrote it: below them it protects nothing, beyond them one login takes the pod. */
const BOUNDS = { logN: [10, 20], r: [8, 32], p: [1, 16] } as const;
const MAX_MEMORY_MB = 128;

const FORMAT =
  /^\$scrypt\$ln=(\d{1,3}),r=(\d{1,3}),p=(\d{1,3})(?:,keyid=([0-9a-f]{8}))?\$([A-Za-z0-9+/]{4,64})\$([A-Za-z0-9+/]{16,128})$/;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '');

/** Why nothing is computed at this cost; undefined when it is within the bounds. */
export const costProblem = (cost: PasswordCost): string | undefined => {
  for (const [name, [min, max]] of Object.entries(BOUNDS)) {
    const value = cost[name as keyof PasswordCost];
    const shown = (bound: number): string => (name === 'logN' ? `2^${bound}` : String(bound));
    if (value < min || value > max) {
      return `it asks for ${name === 'logN' ? 'N' : name} = ${shown(value)}, and ${shown(min)} to ${shown(max)} is allowed`;
    }
  }
  const megabytes = (128 * cost.r * 2 ** cost.logN) / 1_048_576;
  return megabytes > MAX_MEMORY_MB ? `it asks for ${megabytes} MB, and ${MAX_MEMORY_MB} are allowed` : undefined;
};

/** @throws {PasswordHashError} when it is no hash of ours, or asks for what is not allowed */
export const readHash = (stored: string): PasswordHash => {
  const [, logN, r, p, keyId, salt, hash] = FORMAT.exec(stored) ?? [];
  if (salt === undefined || hash === undefined) {
    throw new PasswordHashError('the stored hash has an unknown form');
  }
  const cost = { logN: Number(logN), r: Number(r), p: Number(p) };
  const problem = costProblem(cost);
  if (problem !== undefined) throw new PasswordHashError(`the stored hash is not computed: ${problem}`);
  return { cost, keyId, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
};

/** As it is stored. */
export const formatHash = ({ cost: { logN, r, p }, keyId, salt, hash }: PasswordHash): string => {
  const key = keyId === undefined ? '' : `,keyid=${keyId}`;
  return `$scrypt$ln=${logN},r=${r},p=${p}${key}$${unpadded(salt)}$${unpadded(hash)}`;
};
