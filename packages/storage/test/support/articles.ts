import type { ArticleBatch, ArticleSource, Burst } from '@pesit-node/protocol';

/** A batch of whole articles, a part each. */
export function batchOf(...articles: (string | Buffer)[]): ArticleBatch {
  return piecesOf(articles.map((article) => [article]));
}

/** A batch of whole articles, each in the given parts. */
export function piecesOf(
  articles: readonly (readonly (string | Buffer)[])[],
  open: readonly string[] = [],
): ArticleBatch {
  const parts: Buffer[] = [];
  const ends: number[] = [];
  for (const pieces of articles) {
    for (const piece of pieces) parts.push(Buffer.from(piece));
    ends.push(parts.length);
  }
  for (const piece of open) parts.push(Buffer.from(piece));
  return { parts, ends, bytes: parts.reduce((sum, { length }) => sum + length, 0) };
}

export interface BurstLimits {
  /** Data bytes a burst takes, at least one article. */
  readonly capacity?: number;
  /** Articles longer than this get several slots of at most this length. */
  readonly maxUnsegmentedArticle?: number;
  /** Data bytes between two sync points; 0 = none. */
  readonly interval?: number;
}

/** A burst of its own making: it remembers where each article begins and places points before an interval is exceeded. */
export class FakeBurst implements Burst {
  readonly maxUnsegmentedArticle: number;
  readonly slots: Buffer[] = [];
  lastPoint: number;
  /** Index of the first slot of each reserved article. */
  readonly starts: number[] = [];
  readonly #capacity: number;
  readonly #interval: number;
  #used = 0;
  sincePoint: number;

  constructor(limits: BurstLimits = {}, lastPoint = 0, sincePoint = 0) {
    this.#capacity = limits.capacity ?? 1000;
    this.maxUnsegmentedArticle = limits.maxUnsegmentedArticle ?? 100;
    this.#interval = limits.interval ?? 0;
    this.lastPoint = lastPoint;
    this.sincePoint = sincePoint;
  }

  reserve(length: number): boolean {
    if (this.#interval > 0 && this.sincePoint > 0 && this.sincePoint + length > this.#interval) {
      this.lastPoint += 1;
      this.sincePoint = 0;
    }
    if (this.#used > 0 && this.#used + length > this.#capacity) return false;
    this.#used += length;
    this.sincePoint += length;
    this.starts.push(this.slots.length);
    for (let left = length; left > 0; left -= this.maxUnsegmentedArticle) {
      // 0xEE: a byte that the source forgot to fill shows.
      this.slots.push(Buffer.alloc(Math.min(left, this.maxUnsegmentedArticle), 0xee));
    }
    return true;
  }

  articles(): Buffer[] {
    return this.starts.map((start, i) =>
      Buffer.concat(this.slots.slice(start, this.starts[i + 1] ?? this.slots.length)),
    );
  }
}

/** All articles of a source, and the last point placed. */
export async function drain(
  source: ArticleSource,
  limits: BurstLimits = {},
): Promise<{ articles: Buffer[]; lastPoint: number; bursts: number }> {
  const articles: Buffer[] = [];
  let lastPoint = 0;
  let sincePoint = 0;
  for (let bursts = 1; ; bursts++) {
    const burst = new FakeBurst(limits, lastPoint, sincePoint);
    const more = await source.fill(burst);
    articles.push(...burst.articles());
    ({ lastPoint, sincePoint } = burst);
    if (!more) return { articles, lastPoint, bursts };
  }
}
