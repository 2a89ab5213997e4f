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
  /** So many may wait, this one included, before a flush begins. */
  readonly gather: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A flush that was begun, for all who wait for what it covers. */
interface Flush<Point> {
  readonly group: readonly Waiting<Point>[];
  isDone: boolean;
}

/** Bytes for which a flush begins, whoever could still gather: beyond that a flush more costs little beside the writing. */
const GATHER_BYTES = 512 * 1024;

/** The writes a commit depends on: how far they are, and how to wait for more. */
export interface WriteProgress {
  readonly written: number;
  /** Bytes that came so far, written or not. */
  readonly accepted: number;
  writtenUpTo(offset: number): Promise<void>;
}

/**
 * Group commit (design §3): while flushes run the next points gather, and one flush answers all that were written before it
 * began. Points gather before the first flush too, as long as their data keep coming and whoever asks lets them: each flush
 * wakes threads and disk, which costs more than the bytes between two near points. Answers come in order, whichever flush ends first. `commit` makes the data before the points, then the points, stable.
 */
export class GroupCommit<Point> {
  readonly #progress: WriteProgress;
  readonly #commit: (points: readonly Point[]) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #maxFlushes: number;
  #waiting: Waiting<Point>[] = [];
  /** Not answered yet, oldest first. */
  #flushes: Flush<Point>[] = [];
  #running = 0;
  #starting = false;
  /** Bytes that had come when it was last looked whether more do; undefined while nobody looks. */
  #heard: number | undefined;
  #flushedUpTo: number;
  #stopped: Error | undefined;
  #idlers: (() => void)[] = [];

  /**
   * @param onError must `stop` this; called with what a write or a flush rejected with
   * @param maxFlushes under way at once. With one, a point that is written while a flush runs waits for its end and then for
   *   its own, and the disk has nothing to do in between; more than two gain nothing, and take the threads of other transfers.
   */
  constructor(
    progress: WriteProgress,
    commit: (points: readonly Point[]) => Promise<void>,
    onError: (error: unknown) => void,
    maxFlushes: number,
  ) {
    this.#progress = progress;
    this.#flushedUpTo = progress.written;
    this.#commit = commit;
    this.#onError = onError;
    this.#maxFlushes = maxFlushes;
  }

  /**
   * Resolves when the first `offset` bytes, and the point, are on stable storage.
   * @param gather how many points may wait, this one included, before a flush begins: not for longer than data keep coming
   */
  add(offset: number, point?: Point, gather = 1): Promise<void> {
    if (this.#stopped) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ offset, point, gather, resolve, reject });
      this.#start();
    });
  }

  /** Rejects all who wait, and begins no flush from now on. */
  stop(error: Error): void {
    if (this.#stopped) return;
    this.#stopped = error;
    const flushed = this.#flushes.splice(0).flatMap(({ group }) => group);
    for (const { reject } of [...flushed, ...this.#waiting.splice(0)]) reject(error);
  }

  /** Resolves when no flush runs and, unless stopped, nobody waits for one. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idlers.push(resolve);
      this.#checkIdle();
    });
  }

  #start(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#starting || this.#running === this.#maxFlushes) return;
    if (this.#isDue()) this.#begin();
    else this.#listen();
  }

  #begin(): void {
    const last = this.#waiting.at(-1);
    if (last === undefined || this.#starting || this.#running === this.#maxFlushes) return;
    this.#starting = true;
    this.#progress
      .writtenUpTo(last.offset)
      .then(() => {
        this.#flush();
      }, this.#onError)
      .finally(() => {
        this.#starting = false;
        if (!this.#stopped) this.#start();
        this.#checkIdle();
      });
  }

  #isDue(): boolean {
    const { length } = this.#waiting;
    const last = this.#waiting.at(-1);
    return last !== undefined && (length >= last.gather || last.offset - this.#flushedUpTo >= GATHER_BYTES);
  }

  /** Until a turn of the event loop brings no more data: what waits then waits for nothing. */
  #listen(): void {
    if (this.#heard !== undefined) return;
    this.#heard = this.#progress.accepted;
    const listen = (): void => {
      const { accepted } = this.#progress;
      if (this.#stopped || this.#starting || this.#waiting.length === 0) {
        this.#heard = undefined;
      } else if (accepted === this.#heard) {
        this.#heard = undefined;
        this.#begin();
      } else {
        this.#heard = accepted;
        setImmediate(listen);
      }
    };
    setImmediate(listen);
  }

  /** One flush for all whose bytes the operating system has by now. */
  #flush(): void {
    const { written } = this.#progress;
    const later = this.#waiting.findIndex(({ offset }) => offset > written);
    const group = this.#waiting.splice(0, later === -1 ? this.#waiting.length : later);
    if (group.length === 0) return;
    this.#flushedUpTo = group.at(-1)?.offset ?? this.#flushedUpTo;
    const flush = { group, isDone: false };
    this.#flushes.push(flush);
    this.#running += 1;
    this.#commit(group.flatMap(({ point }) => point ?? []))
      .then(() => {
        flush.isDone = true;
        this.#answer();
      }, this.#onError)
      .finally(() => {
        this.#running -= 1;
        this.#start();
        this.#checkIdle();
      });
  }

  #answer(): void {
    for (let [first] = this.#flushes; first?.isDone; [first] = this.#flushes) {
      this.#flushes.shift();
      for (const { resolve } of first.group) resolve();
    }
  }

  #checkIdle(): void {
    if (this.#starting || this.#running > 0 || this.#waiting.length > 0) return;
    for (const resolve of this.#idlers.splice(0)) resolve();
  }
}
