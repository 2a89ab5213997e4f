/**
 * §3.6.3 gives sync points the numbers 1 to 999,999; with 32 KB between them that is 30.5 GiB. A sender spaces them out instead
 * of failing (pesit-e.md §7): the interval of PI 7 holds for the first three quarters of the numbers, then it grows fourfold each
 * time that half of the numbers that are left is used. So a point hangs on nothing but the interval and the points before it,
 * whatever the size of the file, and 32 KB reach a terabyte with 128 MB between the last ones.
 */

/** §3.6.3: the last number of a sync point. From there on points are left out. */
export const MAX_SYNC_POINT = 999_999;
/** Numbers that are left when the interval begins to grow. */
const SPARE = 250_000;
const GROWTH = 4;

/** How often half of what was left is used up, 0 while the interval holds. */
const stageOf = (lastPoint: number): number => {
  const left = MAX_SYNC_POINT + 1 - lastPoint;
  return left > SPARE ? 0 : 1 + Math.floor(Math.log2(SPARE / Math.max(1, left)));
};

/**
 * The most data bytes after point `lastPoint`, up to the next.
 * @param interval negotiated, in bytes; 0 = no points
 */
export const spacedInterval = (interval: number, lastPoint: number): number => interval * GROWTH ** stageOf(lastPoint);

/** The first point after `lastPoint` from which on the spacing is another one; the last number when there is none. */
export const nextSpacing = (lastPoint: number): number => {
  const left = Math.floor(SPARE / 2 ** stageOf(lastPoint));
  return Math.min(MAX_SYNC_POINT, MAX_SYNC_POINT + 1 - left);
};
