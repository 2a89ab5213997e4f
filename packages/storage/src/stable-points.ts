import type { SyncPoint } from '@pesit-node/protocol';
import { flushDirectories } from './files.js';
import { GroupCommit, pointOf } from './group-commit.js';
import type { StoredPoint, WriteProgress } from './group-commit.js';
import type { HashMark, RunningHash } from './running-hash.js';
import type { OpenedStaging } from './staged-opening.js';
import type { Durability, StagedFileOptions } from './staged-options.js';

interface MarkedPoint extends StoredPoint {
  readonly mark: HashMark | undefined;
}

export interface StablePointsOptions {
  readonly opened: Pick<OpenedStaging, 'place' | 'file' | 'journal' | 'point' | 'hash'>;
  readonly durability: Durability;
  /** The staged file has its name on stable storage already. */
  readonly entryIsStable: boolean;
  readonly progress: WriteProgress;
  readonly failed: (error: unknown) => void;
  /** See `StagedFileOptions`. */
  readonly flushed?: StagedFileOptions['flushed'];
}

/**
 * The sync points of one staged file, from a point where it was cut on: asked for, gathered, made stable with their data in the
 * journal, and answered. This class alone knows which part of the file is stable.
 */
export class StablePoints {
  readonly #options: StablePointsOptions;
  readonly #commits: GroupCommit<MarkedPoint>;
  #newest: StoredPoint | undefined;
  /** Hash of the bytes before the newest point. */
  #hash: RunningHash | undefined;
  #entryIsStable: boolean;

  constructor(options: StablePointsOptions) {
    const { point, hash } = options.opened;
    this.#options = options;
    this.#newest = point.number === 0 ? undefined : point;
    this.#hash = point.number === 0 ? undefined : hash?.copy();
    this.#entryIsStable = options.entryIsStable;
    this.#commits = new GroupCommit(
      options.progress,
      (points) => this.#commit(points),
      options.failed,
      // Without digests the data go before the record, and two of them could overtake each other on the way to the journal.
      hash === undefined ? 1 : 2,
    );
  }

  /** The newest point kept, on stable storage as far as the durability says. */
  get newest(): StoredPoint | undefined {
    return this.#newest;
  }

  /** The hash of the bytes before the newest point; undefined without a checksum, and at the start. */
  get hash(): RunningHash | undefined {
    return this.#hash;
  }

  get entryIsStable(): boolean {
    return this.#entryIsStable;
  }

  /** Whether a journal is on the disk. */
  get hasJournal(): boolean {
    return this.#options.opened.journal.exists;
  }

  /** Resolves when the point is stable with all data before it. @param gather so many may wait for one flush */
  add({ number, dataBytes, articles }: SyncPoint, gather: number): Promise<void> {
    const { progress, opened } = this.#options;
    const fileOffset = progress.accepted;
    const mark = opened.hash?.mark(fileOffset);
    return this.#commits.add(fileOffset, { number, dataBytes, articles, fileOffset, mark }, gather);
  }

  /** Resolves when all that was accepted is written, and stable where the durability wants it before the end. */
  end(): Promise<void> {
    return this.#commits.add(this.#options.progress.accepted);
  }

  /** Points that were asked for are stable, or have failed. */
  idle(): Promise<void> {
    return this.#commits.idle();
  }

  /** Takes no more points; those that wait are rejected with the reason. */
  stop(reason: Error): void {
    this.#commits.stop(reason);
  }

  flush(): Promise<void> {
    return this.#options.opened.journal.flush();
  }

  close(): Promise<void> {
    return this.#options.opened.journal.close();
  }

  /**
   * The one place where a point becomes stable: data and journal, then what leads to both. With a digest in the record the
   * two are flushed at the same time, because `resume` detects a record that is there before its bytes; without one the data go
   * first.
   */
  async #commit(points: readonly MarkedPoint[]): Promise<void> {
    const { durability, opened } = this.#options;
    const { place, file, journal, hash } = opened;
    const flushes = durability === 'checkpoint';
    const began = performance.now();
    const newest = points.at(-1);
    const isChecked = points.every(({ mark }) => mark?.digest !== undefined);
    const flushed = flushes && !isChecked;
    if (flushes && (flushed || newest === undefined)) await file.datasync();
    if (newest === undefined) {
      if (flushes) this.#options.flushed?.(performance.now() - began);
      return;
    }
    if (flushes || hash) {
      const records = points.map((point) => ({ ...pointOf(point), flushed, digest: point.mark?.digest }));
      await allDone([journal.append(records), flushes && !flushed ? file.datasync() : Promise.resolve()]);
    }
    if (flushes && !this.#entryIsStable) {
      // A point in a file that no directory names after a power cut would be a promise broken.
      await flushDirectories(place.files, [place.staging, place.root]);
      this.#entryIsStable = true;
    }
    if (flushes) this.#options.flushed?.(performance.now() - began);
    // The flush of an earlier point may end later.
    if (newest.number <= (this.#newest?.number ?? 0)) return;
    this.#newest = pointOf(newest);
    this.#hash = newest.mark?.hash;
  }
}

/** Waits for all, also when one fails: a file is closed afterwards, and nothing must be under way on it then. */
const allDone = async (works: readonly Promise<void>[]): Promise<void> => {
  for (const result of await Promise.allSettled(works)) if (result.status === 'rejected') throw result.reason;
};
