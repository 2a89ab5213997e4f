import type { SyncPoint } from '@pesit-node/protocol';

/** A sync point and where it lies in the file (pesit-e.md §7: both ends keep such a table). */
export interface StoredPoint extends SyncPoint {
  /** Bytes of the file before this point: line ends included, padding and prefixes not. */
  readonly fileOffset: number;
}

/** Point 0: the start of every file. */
export const START: StoredPoint = { number: 0, dataBytes: 0, articles: 0, fileOffset: 0 };

export const pointOf = ({ number, dataBytes, articles, fileOffset }: StoredPoint): StoredPoint => ({
  number,
  dataBytes,
  articles,
  fileOffset,
});

interface Waiting<Point> {
  readonly offset: number;
  readonly point: Point | undefined;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** What a commit stands on: how far the writes are, and how to wait for more. */
export interface WriteProgress {
  readonly written: number;
  writtenUpTo(offset: number): Promise<void>;
}

/**
 * Group commit (design §3): while one flush runs the next points gather, and one flush answers all that were written
 * before it began, in order. `commit` makes the data before the points, then the points, stable.
 */
export class GroupCommit<Point> {
  readonly #progress: WriteProgress;
  readonly #commit: (points: readonly Point[]) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #waiting: Waiting<Point>[] = [];
  #loop: Promise<void> | undefined;
  #stopped: Error | undefined;

  constructor(
    progress: WriteProgress,
    commit: (points: readonly Point[]) => Promise<void>,
    onError: (error: unknown) => void,
  ) {
    this.#progress = progress;
    this.#commit = commit;
    this.#onError = onError;
  }

  /** Resolves when the first `offset` bytes, and the point, are on stable storage. */
  add(offset: number, point?: Point): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ offset, point, resolve, reject });
      this.#loop ??= this.#run();
    });
  }

  stop(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  /** Resolves when no flush runs and, unless stopped, nobody waits for one. */
  async idle(): Promise<void> {
    await this.#loop;
  }

  async #run(): Promise<void> {
    try {
      for (let first = this.#waiting[0]; first; first = this.#waiting[0]) {
        await this.#progress.writtenUpTo(first.offset);
        const { written } = this.#progress;
        const later = this.#waiting.findIndex(({ offset }) => offset > written);
        const group = later === -1 ? [...this.#waiting] : this.#waiting.slice(0, later);
        await this.#commit(group.flatMap(({ point }) => point ?? []));
        this.#waiting = this.#waiting.slice(group.length);
        for (const { resolve } of group) resolve();
      }
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#loop = undefined;
    }
  }
}
