/** Files in memory, for both ends of the data path; faults are injected here and nowhere else. */
import type { ArticleBatch, ArticleSink, ArticleSource, Burst, SyncPoint } from '@pesit-node/protocol';

export class MemorySink implements ArticleSink {
  onFailure: ((error: Error) => void) | undefined;
  readonly articles: Buffer[] = [];
  readonly points: SyncPoint[] = [];
  /** Data bytes taken. */
  taken = 0;
  /** False: articles are counted, not kept. */
  keep = true;
  /** Set to refuse data until `open()`. */
  full = false;
  /** Called with each batch, first. */
  onWrite: ((batch: ArticleBatch) => void) | undefined;
  /** What a checkpoint waits for. */
  stored: (point: SyncPoint) => Promise<void> = () => Promise.resolve();
  /** Points to which it went back. */
  readonly returns: SyncPoint[] = [];
  /** Called first when it goes back: to wait, to fail. */
  beforeGoBack: (point: SyncPoint) => void | Promise<void> = () => undefined;
  /** To be deleted by who wants a sink that cannot. */
  goBack?: (point: SyncPoint) => Promise<void> = async (point) => {
    this.returns.push(point);
    await this.beforeGoBack(point);
    this.articles.length = point.articles;
    this.#open = [];
  };
  #open: Buffer[] = [];
  #waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];

  write(batch: ArticleBatch): boolean {
    this.onWrite?.(batch);
    this.taken += batch.bytes;
    if (this.keep) this.#keep(batch);
    return !this.full;
  }

  #keep(batch: ArticleBatch): void {
    let part = 0;
    for (const end of batch.ends) {
      while (part < end) this.#open.push(Buffer.from(batch.parts[part++]!));
      this.articles.push(Buffer.concat(this.#open));
      this.#open = [];
    }
    while (part < batch.parts.length) this.#open.push(Buffer.from(batch.parts[part++]!));
  }

  drained(): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  open(): void {
    this.full = false;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** As a disk does: whoever waits is told, and the owner. */
  fail(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.onFailure?.(error);
  }

  checkpoint(point: SyncPoint): Promise<void> {
    this.points.push(point);
    return this.stored(point);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.articles);
  }
}

export class MemorySource implements ArticleSource {
  readonly #articles: Buffer[];
  #next = 0;
  /** Called before each fill, with its number from 0: to fail, to wait. */
  beforeFill: ((fill: number) => void | Promise<void>) | undefined;
  #fills = 0;
  readonly returns: SyncPoint[] = [];
  beforeGoBack: (point: SyncPoint) => void | Promise<void> = () => undefined;
  /** To be deleted by who wants a source that cannot. */
  goBack?: (point: SyncPoint) => Promise<void> = async (point) => {
    this.returns.push(point);
    await this.beforeGoBack(point);
    this.#next = point.articles;
  };

  constructor(articles: readonly Buffer[]) {
    this.#articles = [...articles];
  }

  async fill(burst: Burst): Promise<boolean> {
    await this.beforeFill?.(this.#fills++);
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

/** Articles of one size without end; what they hold does not matter. */
export class EndlessSource implements ArticleSource {
  /** Data bytes asked for so far. */
  filled = 0;
  fills = 0;
  beforeFill: ((fill: number) => void | Promise<void>) | undefined;
  readonly #size: number;

  constructor(size: number) {
    this.#size = size;
  }

  async fill(burst: Burst): Promise<boolean> {
    await this.beforeFill?.(this.fills);
    this.fills += 1;
    while (burst.reserve(this.#size)) this.filled += this.#size;
    return true;
  }
}
