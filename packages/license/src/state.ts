import { DAY_MS, LICENSE_TYPES } from './claims.js';
import type { LicenseType, Limits } from './claims.js';
import { evaluationTime, licenseTime } from './clock.js';
import type { ClockRecord } from './clock.js';
import { timeFault } from './verify.js';
import type { License } from './verify.js';

/** Specification, Limits. */
export const EVALUATION_LIMITS: Limits = { maxClusters: 1, maxPodsPerCluster: 3 };
/** How long before the end headers and the log speak of it. */
export const WARNING_DAYS = 14;

/** Days that were added to the evaluation. */
export interface Extension {
  readonly days: number;
  /** `evaluationTime` when they were added, milliseconds. */
  readonly at: number;
  /** `ClockRecord.counted` when they were added: since then at least that much time went by. */
  readonly counted: number;
}

/** Everything that the state depends on, besides the time. */
export interface LicenseFacts {
  /** Those that were verified and not replaced by force, in any order. */
  readonly licenses: readonly License[];
  readonly clock: ClockRecord;
  readonly extensions: readonly Extension[];
  /** `license.evaluation-days`. */
  readonly evaluationDays: number;
  /** Most days that all extensions together add; those that were granted first count first. Default: any. */
  readonly maxExtensionDays?: number | undefined;
}

export type LicenseMode = 'valid' | 'evaluation' | 'blocked';

/** The license object of the specification; exactly one of `valid`, `evaluation`, `blocked` is true. */
export interface LicenseStatus extends Limits {
  readonly valid: boolean;
  readonly evaluation: boolean;
  readonly blocked: boolean;
  readonly type: LicenseType | 'EVALUATION';
  readonly licenseId: string | null;
  readonly customer: string | null;
  /** `2027-12-31`, the last day. */
  readonly expirationDate: string;
  /** Days that have begun count whole; 0 when it is over. */
  readonly daysUntilExpiration: number;
  /** Where there is no valid license. */
  readonly evaluationStartDate?: string;
  readonly evaluationExpirationDate?: string;
  readonly evaluationDaysRemaining?: number;
  /** The state in words, with what to do. */
  readonly message: string;
}

interface Evaluation {
  readonly start: number;
  /** First instant at which it is over. */
  readonly end: number;
  readonly now: number;
}

/**
 * The evaluation's end, and its own time. Days are added to what remains: to the end, or to the moment when they were
 * granted if it was over then. An extension is also a witness: it cannot be earlier now than it was then, plus what ran since.
 */
export const evaluationPeriod = (
  { clock, extensions, evaluationDays, maxExtensionDays = Infinity }: Omit<LicenseFacts, 'licenses'>,
  now: number,
): Evaluation => {
  let end = clock.startedAt + evaluationDays * DAY_MS;
  let time = evaluationTime(clock, now);
  let left = maxExtensionDays;
  for (const { days, at, counted } of extensions.toSorted((a, b) => a.at - b.at)) {
    const granted = Math.min(days, left);
    left -= granted;
    if (granted > 0) end = Math.max(end, at) + granted * DAY_MS;
    time = Math.max(time, at + Math.max(0, clock.counted - counted));
  }
  return { start: clock.startedAt, end, now: time };
};

/** Days begun count whole. */
const daysLeft = (end: number, now: number): number => Math.max(0, Math.ceil((end - now) / DAY_MS));

/** `2027-12-31`; a year beyond 9999 is written as that year's end. */
const dayOf = (time: number): string => new Date(Math.min(time, Date.UTC(9999, 11, 31))).toISOString().slice(0, 10);

/** The valid license that lasts longest; of equals, the more generous type, then the smaller identifier: the same on all pods. */
export const winner = (licenses: readonly License[], now: number): License | undefined => {
  const rank = ({ type }: License): number => Object.keys(LICENSE_TYPES).indexOf(type);
  return licenses
    .filter((license) => timeFault(license, now) === undefined)
    .toSorted((a, b) => b.expiresAt - a.expiresAt || rank(b) - rank(a) || (a.licenseId < b.licenseId ? -1 : 1))[0];
};

const days = (count: number): string => (count === 1 ? '1 day' : `${count} days`);

/**
 * The state at `now` (milliseconds): a valid license, else what is left of the evaluation, else blocked.
 * Pure: all that time and tricks with it can do is in `clock.ts` and in the arguments.
 */
export const decide = (facts: LicenseFacts, now: number): LicenseStatus => {
  const paidTime = licenseTime(facts.clock, now);
  const license = winner(facts.licenses, paidTime);
  if (license !== undefined) return licensed(license, paidTime);
  const evaluation = evaluationPeriod(facts, now);
  const remaining = daysLeft(evaluation.end, evaluation.now);
  const period = {
    evaluationStartDate: dayOf(evaluation.start),
    evaluationExpirationDate: dayOf(evaluation.end),
    evaluationDaysRemaining: remaining,
  };
  if (remaining > 0) {
    return {
      valid: false,
      evaluation: true,
      blocked: false,
      ...evaluationIdentity(evaluation),
      daysUntilExpiration: remaining,
      ...period,
      message: `Evaluation: ${days(remaining)} left. Install a license with POST /api/v1/license`,
    };
  }
  return { valid: false, evaluation: false, blocked: true, ...over(facts.licenses, evaluation, paidTime), ...period };
};

const evaluationIdentity = ({ end }: Evaluation) =>
  ({
    type: 'EVALUATION',
    licenseId: null,
    customer: null,
    expirationDate: dayOf(end),
    ...EVALUATION_LIMITS,
  }) as const;

const identity = ({ type, licenseId, customer, expiryDate, maxClusters, maxPodsPerCluster }: License) => ({
  type,
  licenseId,
  customer,
  expirationDate: expiryDate,
  maxClusters,
  maxPodsPerCluster,
});

const licensed = (license: License, now: number): LicenseStatus => {
  const left = daysLeft(license.expiresAt, now);
  return {
    valid: true,
    evaluation: false,
    blocked: false,
    ...identity(license),
    daysUntilExpiration: left,
    message: `Licensed to ${license.customer} until ${license.expiryDate}`,
  };
};

const INSTALL = 'Install a license with POST /api/v1/license';

/** The last license or evaluation, so that the operator sees what is over. */
const over = (licenses: readonly License[], evaluation: Evaluation, paidTime: number) => {
  const last = licenses.toSorted((a, b) => b.expiresAt - a.expiresAt)[0];
  if (last === undefined) {
    const message = `The evaluation period is over since ${dayOf(evaluation.end)}. ${INSTALL}`;
    return { ...evaluationIdentity(evaluation), daysUntilExpiration: 0, message };
  }
  const reason = timeFault(last, paidTime)?.message ?? '';
  return { ...identity(last), daysUntilExpiration: 0, message: `${reason}; no evaluation is left. ${INSTALL}` };
};
