import type { ListenerStatus } from './fields.js';
import type { PodLine } from './pod-lines.js';

/** A listener on one pod, with the name of the pod. */
export interface NamedLine extends PodLine {
  readonly pod: string;
}

/** A listener as all pods together have it. */
export interface OnAllPods {
  readonly status: ListenerStatus;
  readonly statusReason: string | null;
  /** When the first of those that failed is tried again. */
  readonly nextAttemptAt: Date | null;
  readonly sessions: number;
  readonly refused: number;
  /** Since when the first has its port. */
  readonly since: Date | null;
}

/** The status that counts most, first: one pod that serves makes a listener that serves. */
const WANTED_ORDER = ['RUNNING', 'STARTING', 'FAILED', 'STOPPING', 'STOPPED'] as const;
const UNWANTED_ORDER = ['RUNNING', 'STOPPING', 'STARTING', 'FAILED', 'STOPPED'] as const;

const earliest = (times: readonly (Date | null)[]): Date | null => {
  const known = times.filter((time) => time !== null).map((time) => time.getTime());
  return known.length === 0 ? null : new Date(Math.min(...known));
};

const said = ({ pod, status, statusReason }: NamedLine): string =>
  `${pod} ${status}${statusReason === null ? '' : `: ${statusReason}`}`;

/**
 * `RUNNING on 2 of 3; pod-3 FAILED: port 6502 is in use by another process`. Where all pods say the same, or there is but one,
 * its own reason stands alone. A pod that stands by counts where no other is.
 * @param lines at least one
 */
export const onAllPods = (lines: readonly NamedLine[], wanted: boolean): OnAllPods => {
  const serving = lines.filter(({ standby, status }) => !standby || status !== 'STOPPED');
  const counted = serving.length === 0 ? lines : serving;
  const order = wanted ? WANTED_ORDER : UNWANTED_ORDER;
  const status = order.find((one) => counted.some((line) => line.status === one)) ?? 'STOPPED';
  const others = counted.filter((line) => line.status !== status);
  const reasons = [...new Set(counted.map(({ statusReason }) => statusReason))];
  const [first = null] = reasons;
  const isAlike = others.length === 0 && reasons.length === 1;
  const alike = counted.length - others.length;
  const spoken = others.length === 0 ? counted.filter(({ statusReason }) => statusReason !== null) : others;
  return {
    status,
    statusReason: isAlike ? first : [`${status} on ${alike} of ${counted.length}`, ...spoken.map(said)].join('; '),
    nextAttemptAt: earliest(lines.map((line) => line.nextAttemptAt)),
    sessions: lines.reduce((sum, line) => sum + line.sessions, 0),
    refused: lines.reduce((sum, line) => sum + line.refused, 0),
    since: earliest(lines.map(({ since }) => since)),
  };
};
