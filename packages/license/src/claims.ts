import { z } from 'zod';

/** Types of licenses, and how much each allows when it does not say (specification, Limits). −1 = unlimited. */
export const LICENSE_TYPES = {
  PROFESSIONAL: { maxClusters: 1, maxPodsPerCluster: 3 },
  BUSINESS: { maxClusters: 5, maxPodsPerCluster: -1 },
  ENTERPRISE: { maxClusters: -1, maxPodsPerCluster: -1 },
} as const satisfies Record<string, Limits>;

export type LicenseType = keyof typeof LICENSE_TYPES;
export const LICENSE_TYPE_NAMES = Object.keys(LICENSE_TYPES) as readonly LicenseType[];

export interface Limits {
  /** −1 = unlimited. */
  readonly maxClusters: number;
  /** −1 = unlimited. */
  readonly maxPodsPerCluster: number;
}

/** The claims that the vendor signed. Times are milliseconds since 1970. */
export interface LicenseClaims extends Limits {
  readonly licenseId: string;
  readonly type: LicenseType;
  readonly customer: string;
  readonly email: string;
  /** `2027-12-31`: the last day on which it is valid, in UTC. */
  readonly expiryDate: string;
  /** First instant at which it is no longer valid: the end of `expiryDate`, or `exp` when that is earlier. */
  readonly expiresAt: number;
  /** First instant at which it is valid (`nbf`); −Infinity when it does not say. */
  readonly notBefore: number;
}

export const DAY_MS = 86_400_000;
const LARGEST_LIMIT = 100_000;
/** The last second of the year 9999. */
const LAST_SECOND = 253_402_300_799;

const shown = (value: unknown): string => JSON.stringify(value).slice(0, 80);

const expected =
  (what: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    input === undefined ? `missing (expected ${what})` : `expected ${what}, got ${shown(input)}`;

const words = (max: number) => {
  const error = expected(`1 to ${max} printable characters`);
  return z
    .string({ error })
    .max(max, { error })
    .regex(/^[^\p{C}]*\S[^\p{C}]*$/u, { error });
};

const limit = () =>
  z.custom<number>(
    (value) =>
      Number.isInteger(value) && (value === -1 || ((value as number) >= 1 && (value as number) <= LARGEST_LIMIT)),
    { error: expected(`-1 (unlimited) or 1 to ${LARGEST_LIMIT}`) },
  );

const seconds = () =>
  z.custom<number>((value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LAST_SECOND, {
    error: expected('seconds since 1970'),
  });

/** Midnight of a day that exists (2027-02-29 does not), in milliseconds. */
const startOfDay = (day: string): number | undefined => {
  const time = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day) ? time : undefined;
};

/** Claims that this version does not know are left alone: a newer issuer may add some. */
export const claimsSchema = z
  .looseObject({
    licenseId: words(64),
    type: z.enum(LICENSE_TYPE_NAMES, { error: expected(`one of ${LICENSE_TYPE_NAMES.join(', ')}`) }),
    customer: words(200),
    email: z.email({ error: expected('an e-mail address') }).max(254),
    maxClusters: limit().optional(),
    maxPodsPerCluster: limit().optional(),
    expiryDate: z.custom<string>((value) => typeof value === 'string' && startOfDay(value) !== undefined, {
      error: expected('a day as 2027-12-31'),
    }),
    nbf: seconds().optional(),
    exp: seconds().optional(),
  })
  .transform((claims): LicenseClaims => {
    const { licenseId, type, customer, email, expiryDate, nbf, exp } = claims;
    const endOfDay = (startOfDay(expiryDate) as number) + DAY_MS;
    return {
      licenseId,
      type,
      customer,
      email,
      maxClusters: claims.maxClusters ?? LICENSE_TYPES[type].maxClusters,
      maxPodsPerCluster: claims.maxPodsPerCluster ?? LICENSE_TYPES[type].maxPodsPerCluster,
      expiryDate,
      expiresAt: exp === undefined ? endOfDay : Math.min(endOfDay, exp * 1000),
      notBefore: nbf === undefined ? -Infinity : nbf * 1000,
    };
  });
