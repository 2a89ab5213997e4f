import { nextSpacing, spacedInterval } from '@pesit-node/protocol';
import type { Burst } from '@pesit-node/protocol';
import { START } from './group-commit.js';
import type { StoredPoint } from './group-commit.js';

/**
 * How one attempt places its points: all that is needed to find any of them again in the file, without a table. Keep it with
 * the transfer before the first burst of the attempt leaves: it is the same for as long as the attempt lasts.
 */
export interface Pacing {
  /** The point from which the attempt sends; 0 for a first one. */
  readonly from: number;
  /** PI 7 as negotiated, in bytes; 0 = no points. */
  readonly interval: number;
  /** `Burst.maxUnsegmentedArticle` of the session: BU and BV articles are never longer. */
  readonly maxUnsegmentedArticle: number;
  /**
   * PI 21 of the attempt, 0 or absent none. With compression the interval counts compressed bytes (annex A §3), which nobody
   * knows without compressing once more: such points are not found again, and the transfer starts over.
   */
  readonly compression?: number | undefined;
}

/** The attempts that placed the points which still stand: one that went back took all points after its start with it. */
const standing = (attempts: readonly Pacing[]): readonly Pacing[] =>
  attempts.filter(({ from }, i) => attempts.slice(i + 1).every((later) => later.from > from));

/** Whether all places can be found by counting. */
export const canBeCounted = (attempts: readonly Pacing[]): boolean =>
  standing(attempts).every(({ compression = 0 }) => compression === 0);

/**
 * The place of a point in a file of articles of one length, BU, BV and BF: no need to look into it.
 * @param size bytes of the file
 * @param articleLength of an attempt
 * @returns undefined when no such point was placed
 */
export const pointAmongBlocks = (
  target: number,
  attempts: readonly Pacing[],
  size: number,
  articleLength: (attempt: Pacing) => number,
): StoredPoint | undefined => {
  const all = standing(attempts);
  let { number, fileOffset, articles } = START;
  for (const [i, attempt] of all.entries()) {
    const end = Math.min(target, all[i + 1]?.from ?? target);
    if (end === number) continue;
    if (attempt.from !== number || attempt.interval === 0) return undefined;
    const length = articleLength(attempt);
    while (number < end) {
      const until = Math.min(end, nextSpacing(number));
      const interval = spacedInterval(attempt.interval, number);
      const each = Math.max(1, Math.floor(interval / length));
      articles += (until - number) * each;
      fileOffset += (until - number) * each * length;
      // A last article that still fits into the interval, or none at all, gets no point before it.
      const next = Math.min(length, size - fileOffset);
      if (next <= 0 || each * length + next <= interval) return undefined;
      number = until;
    }
  }
  return number === target ? { number, dataBytes: fileOffset, articles, fileOffset } : undefined;
};

/**
 * Goes the way of earlier attempts through a text file, up to a point: takes the place of a burst, counts what is reserved as
 * a session does (§3.6.3 o), has no room for it, and refuses the first article behind the point.
 */
export class Recount implements Burst {
  readonly slots: readonly Buffer[] = [];
  lastPoint = 0;
  dataBytes = 0;
  articles = 0;
  readonly #target: number;
  readonly #signal: AbortSignal | undefined;
  readonly #attempts: readonly Pacing[];
  #attempt: Pacing | undefined;
  #sincePoint = 0;
  #interval = 0;

  /**
   * @param target number of a point, from 1
   * @param signal looked at with each article: the way ends with its reason
   */
  constructor(target: number, attempts: readonly Pacing[], signal?: AbortSignal) {
    this.#signal = signal;
    this.#target = target;
    this.#attempts = standing(attempts);
    this.#goOn();
  }

  get maxUnsegmentedArticle(): number {
    return this.#attempt?.maxUnsegmentedArticle ?? 0;
  }

  reserve(length: number): boolean {
    this.#signal?.throwIfAborted();
    const interval = this.#interval;
    if (interval > 0 && this.#sincePoint > 0 && this.#sincePoint + length > interval) {
      this.lastPoint += 1;
      this.#sincePoint = 0;
      this.#goOn();
      if (this.lastPoint === this.#target) return false;
    }
    this.#sincePoint += length;
    this.dataBytes += length;
    this.articles += 1;
    return true;
  }

  #goOn(): void {
    this.#attempt = this.#attempts.findLast(({ from }) => from <= this.lastPoint);
    this.#interval = spacedInterval(this.#attempt?.interval ?? 0, this.lastPoint);
  }
}
