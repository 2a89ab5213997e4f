/** The sync points, computed a second time from pesit-e.md §7. */
import type { SyncPoint } from '../../src/index.js';

export const lengthsOf = (articles: readonly Buffer[]): number[] => articles.map((article) => article.length);

/**
 * Where the points fall: before an article that would bring the bytes since the last point beyond the interval, never
 * before the first and never at the end.
 */
export function expectedPoints(lengths: readonly number[], interval: number, from: SyncPoint): SyncPoint[] {
  const points: SyncPoint[] = [];
  if (interval === 0) return points;
  let { number, dataBytes, articles } = from;
  let since = 0;
  for (const length of lengths) {
    if (since > 0 && since + length > interval) {
      number += 1;
      points.push({ number, dataBytes, articles });
      since = 0;
    }
    since += length;
    dataBytes += length;
    articles += 1;
  }
  return points;
}
