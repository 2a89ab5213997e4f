/** Articles in and out of bursts and batches. */
import type { ArticleBatch, Burst, SyncPoint } from '../index.js';
import { Chance } from './chance.js';

/** Puts batches together again; a batch may begin and end inside an article. */
export class Collector {
  readonly articles: Buffer[] = [];
  #open: Buffer[] = [];

  /** Bytes of an article that has not ended yet. */
  get open(): number {
    return this.#open.reduce((sum, part) => sum + part.length, 0);
  }

  /** RESYN: what came after the first `articles` is void. */
  goBack(articles: number): void {
    if (this.articles.length < articles) throw new Error(`${this.articles.length} of ${articles} articles are here`);
    this.articles.length = articles;
    this.#open = [];
  }

  add(batch: ArticleBatch): void {
    let start = 0;
    for (const end of batch.ends) {
      this.articles.push(Buffer.concat([...this.#open, ...batch.parts.slice(start, end)]));
      this.#open = [];
      start = end;
    }
    this.#open.push(...batch.parts.slice(start));
    const bytes = batch.parts.reduce((sum, part) => sum + part.length, 0);
    if (bytes !== batch.bytes) throw new Error(`batch says ${batch.bytes} bytes, holds ${bytes}`);
  }
}

/** Reserves articles from `next` on until the burst refuses, fills them, and returns the index of the first that is left. */
export const fill = (burst: Burst, articles: readonly Buffer[], next: number): number => {
  let at = next;
  while (at < articles.length && burst.reserve((articles[at] as Buffer).length)) at++;
  const content = Buffer.concat(articles.slice(next, at));
  let offset = 0;
  for (const slot of burst.slots) offset += content.copy(slot, 0, offset, offset + slot.length);
  if (offset !== content.length) throw new Error(`slots for ${offset} of ${content.length} bytes`);
  return at;
};

/** Articles of the given lengths with recognisable contents. */
export const articlesOf = (lengths: readonly number[], seed = 1): Buffer[] => {
  const chance = new Chance(seed);
  return lengths.map((length) => chance.bytes(length));
};

export const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/** Compares lists of articles; quicker than `toEqual` on long buffers, and it names the first that differs. */
export const difference = (actual: readonly Buffer[], expected: readonly Buffer[]): string | undefined => {
  for (let i = 0; i < Math.max(actual.length, expected.length); i++) {
    const [a, b] = [actual[i], expected[i]];
    if (a === undefined || b === undefined) return `${actual.length} articles instead of ${expected.length}`;
    if (!a.equals(b)) return `article ${i}: ${a.length} bytes instead of ${b.length}, or others`;
  }
  return undefined;
};
