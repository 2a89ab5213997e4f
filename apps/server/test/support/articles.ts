import type { ArticleBatch, ArticleSink, ArticleSource } from '@pesit-node/protocol';

/** A source of these articles, just as they are. */
export const sourceOf = (articles: readonly Buffer[]): ArticleSource => {
  let next = 0;
  return {
    fill: (burst) => {
      for (; next < articles.length; next += 1) {
        const article = articles[next]!;
        const before = burst.slots.length;
        if (!burst.reserve(article.length)) return Promise.resolve(true);
        let from = 0;
        for (const slot of burst.slots.slice(before)) from += article.copy(slot, 0, from);
      }
      return Promise.resolve(false);
    },
  };
};

/** Keeps articles as they come. */
export class ArticleList implements ArticleSink {
  readonly articles: Buffer[] = [];
  #open: Buffer[] = [];

  write({ parts, ends }: ArticleBatch): boolean {
    let next = 0;
    for (const end of ends) {
      for (; next < end; next += 1) this.#open.push(Buffer.from(parts[next]!));
      this.articles.push(Buffer.concat(this.#open.splice(0)));
    }
    for (; next < parts.length; next += 1) this.#open.push(Buffer.from(parts[next]!));
    return true;
  }

  drained(): Promise<void> {
    return Promise.resolve();
  }

  checkpoint(): Promise<void> {
    return Promise.resolve();
  }
}
