/**
 * The two ends of the data path, as the protocol sees them (§4.4.20, pesit-e.md §6).
 * Types alone: `storage` implements them, `net` drives them, and neither imports the other.
 */

/**
 * Articles as they came off the wire: views of the received buffers, never copies.
 *
 * `parts` are the bytes in order. `ends` holds, for each article completed in this batch, how many parts are
 * complete when it ends (exclusive index into `parts`, ascending; equal neighbours are empty articles).
 * A batch may begin or end in the middle of an article (segmentation, or an article cut by two socket reads).
 */
export interface ArticleBatch {
  readonly parts: readonly Buffer[];
  readonly ends: readonly number[];
  /** Sum of the lengths of `parts`. */
  readonly bytes: number;
}

/** A sync point and what it stands for, in totals since the start of the file (§3.6.3 o, pesit-e.md §7). */
export interface SyncPoint {
  /** PI 20; 0 is the start of the file. */
  readonly number: number;
  /** Data bytes as PI 27 counts them: article bytes on the wire, prefixes excluded. */
  readonly dataBytes: number;
  /** Articles as PI 28 counts them. */
  readonly articles: number;
}

/** Point 0: the start of every file. */
export const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/** Where received articles go. Failures are `PesitError`s that carry the diagnostic to send. */
export interface ArticleSink {
  /**
   * Queues a batch for writing, in order.
   * @param release to be called once, in the order of the batches, when the views are needed no more: their memory is
   *   then used again. A sink that never calls it costs memory, not correctness.
   * @returns false when more than the high-water mark waits: stop reading from the peer until `drained()`.
   */
  write(batch: ArticleBatch, release?: () => void): boolean;
  /** Resolves when the queue is below the mark again; rejects when the sink has failed. */
  drained(): Promise<void>;
  /**
   * Resolves when everything written before this call, and the point itself, are on stable storage.
   * Calls may overlap; one flush may resolve several (group commit), always in order.
   * @param gather how many points may wait, this one included, before a flush has to begin: the peer keeps sending until
   *   then. 1 unless said otherwise.
   */
  checkpoint(point: SyncPoint, gather?: number): Promise<void>;
  /**
   * RESYN (§3.6.3 p): forgets what came after `point`, which is the start or one that this attempt was given by
   * `checkpoint`; what is written next follows it. Nothing is written until it resolves; rejects when it cannot go there.
   * Absent: a RESYN interrupts the transfer.
   */
  goBack?(point: SyncPoint): Promise<void>;
  /** Called once, as soon as a write or a flush has failed, whoever is waiting. */
  onFailure?: ((error: Error) => void) | undefined;
}

/**
 * Room for outgoing articles inside one buffer that already has place for every FPDU header.
 * Filled by an `ArticleSource`, written to the socket in one piece.
 */
export interface Burst {
  /**
   * Reserves room for the next article of `length` bytes; places a SYN before it when the interval asks for one.
   * @returns false when the burst is full or the acknowledgement window is closed, perhaps by a SYN that was placed: fill what
   *   was reserved and return.
   */
  reserve(length: number): boolean;
  /** The places to fill, in file order: one a reserved article, several when it is segmented. */
  readonly slots: readonly Buffer[];
  /** Number of the last sync point placed (over the whole transfer; 0 before the first). Compare around `reserve`. */
  readonly lastPoint: number;
  /** Longest article that travels unsegmented in this session. */
  readonly maxUnsegmentedArticle: number;
}

/** Where outgoing articles come from. */
export interface ArticleSource {
  /**
   * Reserves articles in `burst` until it refuses or the data end, and fills every slot.
   * Rejects with a `PesitError` (2-213, 2-215, 2-200, 2-220 …) when the file cannot be read, changed, or does not fit its format.
   * @returns true when data remain, false when the last article was reserved in this burst.
   */
  fill(burst: Burst): Promise<boolean>;
  /**
   * RESYN (§3.6.3 p): `fill` continues behind `point`, which is the start or one that it saw placed (`Burst.lastPoint`). Not
   * called while `fill` runs; rejects when it cannot go there. Absent: a RESYN interrupts the transfer.
   */
  goBack?(point: SyncPoint): Promise<void>;
}
