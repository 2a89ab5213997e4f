/** Files in memory, for both ends of the data path; faults are injected here and nowhere else. */
import type { ArticleBatch, ArticleSink, ArticleSource, Burst, SyncPoint } from '@pesit-node/protocol';

export class MemorySink implements ArticleSink {
  onFailure: ((error: Error) => void) | undefined;
  readonly articles: Buffer[] = [];
  readonly points: SyncPoint[] = [];
  /** Set to refuse data until `open()`. */
  full = false;
  failWith: Error | undefined;
  #open: Buffer[] = [];
  #waiting: (() => void)[] = [];

  write(batch: ArticleBatch): boolean {
    let part = 0;
    for (const end of batch.ends) {
      while (part < end) this.#open.push(Buffer.from(batch.parts[part++]!));
      this.articles.push(Buffer.concat(this.#open));
      this.#open = [];
    }
    while (part < batch.parts.length) this.#open.push(Buffer.from(batch.parts[part++]!));
    if (this.failWith !== undefined) {
      const error = this.failWith;
      queueMicrotask(() => this.onFailure?.(error));
    }
    return !this.full;
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  open(): void {
    this.full = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  checkpoint(point: SyncPoint): Promise<void> {
    this.points.push(point);
    return Promise.resolve();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.articles);
  }
}

export class MemorySource implements ArticleSource {
  readonly #articles: Buffer[];
  #next = 0;
  /** Called before each fill: to fail, to wait. */
  beforeFill: (() => Promise<void>) | undefined;

  constructor(articles: readonly Buffer[]) {
    this.#articles = [...articles];
  }

  async fill(burst: Burst): Promise<boolean> {
    await this.beforeFill?.();
    const taken: Buffer[] = [];
    for (let article = this.#articles[this.#next]; article !== undefined; article = this.#articles[this.#next]) {
      if (!burst.reserve(article.length)) break;
      taken.push(article);
      this.#next += 1;
    }
    const all = Buffer.concat(taken);
    let offset = 0;
    for (const slot of burst.slots) offset += all.copy(slot, 0, offset, offset + slot.length);
    return this.#next < this.#articles.length;
  }
}
