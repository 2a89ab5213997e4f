/**
 * Durations of transfers, counted in buckets, each a tenth longer than the one before: of a bucket its middle is answered, which
 * is wrong by 5 % at most.
 *
 * What was counted is kept as one decimal number that has 12 digits for each bucket, the shortest durations last: such numbers add up
 * as any others do, and PostgreSQL adds up thousands of them in milliseconds, where it would take arrays apart and group what they have.
 */
const GROWTH = 1.1;
/** More transfers than a bucket ever has. */
const DIGITS = 12;

/** Milliseconds that are answered for a bucket. */
const middleOf = (bucket: number): number => Math.round(GROWTH ** (bucket + 0.5));

/**
 * SQL: `bytes`, `millis` and `bucket` of a transfer; a duration has one that is COMPLETED.
 * @param began the timestamptz that it counts from, to `end_time`
 */
export const measures = (began: string): string => {
  const millis = `round(extract(epoch from end_time - ${began}) * 1000)::bigint`;
  const isTimed = `status = 'COMPLETED' and ${began} is not null`;
  return `bytes_transferred as bytes, case when ${isTimed} then greatest(${millis}, 0) end as millis,
    case when ${isTimed} then floor(ln(greatest(${millis}, 1)::float8) / ln(${GROWTH}::float8))::int end as bucket`;
};

/** SQL, an aggregate: the number of rows that each have a bucket and how often it was counted. */
export const added = (n: string, bucket: string): string =>
  `sum(cast(${n} || 'e' || ${bucket} * ${DIGITS} as numeric)) filter (where ${bucket} is not null)`;

/** How often each bucket was counted. @param number as `added` makes it; null: none was */
export const countsOf = (number: string | null): readonly number[] => {
  const counts: number[] = [];
  for (let end = number?.length ?? 0; end > 0; end -= DIGITS) {
    counts.push(Number(number?.slice(Math.max(end - DIGITS, 0), end)));
  }
  return counts;
};

/** Half of the durations, and 95 % of them, are no longer: milliseconds. @returns null without any */
export const percentiles = (
  parts: readonly (readonly number[])[],
): { readonly p50: number; readonly p95: number } | null => {
  const counts: number[] = [];
  for (const part of parts) {
    for (const [bucket, count] of part.entries()) counts[bucket] = (counts[bucket] ?? 0) + count;
  }
  const total = counts.reduce((sum, count) => sum + count, 0);
  const reached = (share: number): number => {
    let upTo = 0;
    return middleOf(counts.findIndex((count) => (upTo += count) >= total * share));
  };
  return total === 0 ? null : { p50: reached(0.5), p95: reached(0.95) };
};
