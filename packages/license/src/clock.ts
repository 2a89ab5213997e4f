/**
 * How time is counted when the clock cannot be trusted (docs/license.md, Time).
 *
 * Three instants are kept: the first start, `counted` (time that surely went by: it runs while the service runs, by the
 * monotonic clock, whatever the clock says) and `highest` (the newest time that the clock was believed to show). Neither of
 * the last two goes back.
 *
 * - The clock is ahead of `counted` by three days or less: a short stop; it is believed.
 * - It is ahead of `highest` by 180 days or less when the service starts: a long stop; `highest` believes it, `counted` not.
 *   Should it have been wrong and be corrected, the evaluation stands still until the right clock gets there: nothing is
 *   given, and nothing is taken twice.
 * - It is ahead by more, or was set forward under a running service: it counts while it stands there, and no longer.
 * - It is behind `counted`: it was turned back, or is wrong; `highest` advances with the time that the service runs.
 *
 * The evaluation goes by `highest`, a paid license by `counted` and the clock alone: a clock that was wrong for an hour must
 * not end a business.
 */
import { DAY_MS } from './claims.js';

/** Milliseconds since 1970, all three. */
export interface ClockRecord {
  readonly startedAt: number;
  readonly counted: number;
  readonly highest: number;
}

export interface Observation {
  /** Time of the clock. */
  readonly now: number;
  /** By the monotonic clock, since this process observed last; 0 the first time. Milliseconds. */
  readonly ran: number;
  /** The first observation of a process: whatever the clock has gone ahead may be time in which the service was down. */
  readonly starting: boolean;
}

const SHORT_STOP_MS = 3 * DAY_MS;
const LONG_STOP_MS = 180 * DAY_MS;
/** Clocks of several machines, and a clock that is slewed, differ by this much without being turned back. */
const TOLERANCE_MS = 5 * 60_000;
/** No right clock shows an earlier time: a clock that does was not set yet. */
export const EARLIEST_MS = Date.UTC(2025, 0, 1);

/** A first start before the clock was set: moved to where the clock is now, with the time that has run since. */
const moved = ({ startedAt, counted }: ClockRecord, now: number): ClockRecord => ({
  startedAt: now - (counted - startedAt),
  counted: now,
  highest: now,
});

/** The record after one more look at the clock. */
export const observe = (record: ClockRecord, { now, ran, starting }: Observation): ClockRecord => {
  const went = Math.max(0, ran);
  const counted = record.counted + went;
  if (record.highest < EARLIEST_MS && now >= EARLIEST_MS) return moved({ ...record, counted }, now);
  const believed = now > counted && now - counted <= SHORT_STOP_MS ? now : counted;
  const turnedBack = now < counted - TOLERANCE_MS;
  const highest = turnedBack ? record.highest + went : record.highest;
  const longStop = starting && now - highest <= LONG_STOP_MS;
  return {
    startedAt: record.startedAt,
    counted: believed,
    highest: Math.max(highest, believed, longStop ? now : -Infinity),
  };
};

/** The records of two witnesses put together: the earlier start, the later times. A record from before the clock was set yields. */
export const mergeRecords = (one: ClockRecord, other: ClockRecord): ClockRecord => {
  if (one.startedAt < EARLIEST_MS !== other.startedAt < EARLIEST_MS) {
    return one.startedAt < EARLIEST_MS ? other : one;
  }
  return {
    startedAt: Math.min(one.startedAt, other.startedAt),
    counted: Math.max(one.counted, other.counted),
    highest: Math.max(one.highest, other.highest),
  };
};

/** Times that were seen elsewhere: oldest and newest records of the history, for example. */
export interface SeenTimes {
  readonly earliest?: number | undefined;
  readonly latest?: number | undefined;
}

const earlier = (startedAt: number, earliest: number | undefined): number =>
  earliest === undefined || earliest < EARLIEST_MS ? startedAt : Math.min(startedAt, earliest);

/**
 * A record that is older than what was seen: it began no later, and is no younger. A newest time beyond a long stop is that
 * of a clock that was wrong.
 */
export const withSeenTimes = (record: ClockRecord, { earliest, latest }: SeenTimes, now: number): ClockRecord => {
  const believable = latest !== undefined && latest - Math.max(now, record.highest) <= LONG_STOP_MS;
  return {
    ...record,
    startedAt: earlier(record.startedAt, earliest),
    highest: believable ? Math.max(record.highest, latest) : record.highest,
  };
};

/**
 * A first start, or a record that somebody has removed: then what was seen stands in for it, and wrong clocks are not
 * excused. Only a paid license is not to suffer from a time that cannot be.
 */
export const recovered = ({ earliest, latest = -Infinity }: SeenTimes, now: number): ClockRecord => ({
  startedAt: earlier(now, earliest),
  counted: latest - now <= LONG_STOP_MS ? Math.max(now, latest) : now,
  highest: Math.max(now, latest),
});

/** The time that a paid license is measured by. */
export const licenseTime = ({ counted }: ClockRecord, now: number): number => Math.max(counted, now);

/** The time that the evaluation is measured by. */
export const evaluationTime = ({ counted, highest }: ClockRecord, now: number): number =>
  Math.max(counted, highest, now);
