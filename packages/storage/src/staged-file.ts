import type { ArticleBatch, ArticleSink, PesitError, SyncPoint } from '@pesit-node/protocol';
import { StorageError, storageError } from './errors.js';
import type { Action } from './errors.js';
import { flushDirectories } from './files.js';
import type { FileOperations, OpenFile } from './files.js';
import type { StoredPoint } from './group-commit.js';
import { peekStaged } from './leftovers.js';
import type { StagedFacts } from './leftovers.js';
import { StagedDelivery } from './staged-delivery.js';
import { cutBack, openAgain, openNew } from './staged-opening.js';
import type { OpenedStaging } from './staged-opening.js';
import type {
  Delivery,
  DeliveryTarget,
  Durability,
  StagedContent,
  StagedFileOptions,
  TakenBack,
} from './staged-options.js';
import { StagedIntake } from './staged-intake.js';
import { forgetHash, keepHash } from './staged-hashes.js';
import type { StagingLock } from './staging-lock.js';
import { removeStaged } from './staging-place.js';
import type { StagingPlace } from './staging-place.js';

export interface ResumedFile {
  readonly file: StagedFile;
  /** Where the file continues: the point to name to the peer. Number 0 and all zero: from the start. */
  readonly point: StoredPoint;
  /** Why less than all that was staged could be used, for the log; undefined when nothing was lost, or nothing there. */
  readonly reason: string | undefined;
}

/**
 * A file while it is received: `<receiveDirectory>/.pesit/<key>.part`, private, unseen until `deliver`, with the journal of
 * its points beside it.
 *
 * The order at the end of a transfer: `prepareDelivery` (data stable) → check the counts → `deliver` (final name, then
 * directories stable) → commit the database record → ACK(TRANS.END). A caller that does not deliver calls `release` to keep what
 * is there for a restart (`resume`), or `discard`.
 */
export class StagedFile implements ArticleSink {
  onFailure: ((error: Error) => void) | undefined;
  readonly #place: StagingPlace;
  readonly #lock: StagingLock;
  readonly #options: StagedFileOptions;
  readonly #file: OpenFile;
  readonly #durability: Durability;
  readonly #delivery: StagedDelivery;
  #intake: StagedIntake;
  #goingBack: Promise<void> | undefined;
  #failure: PesitError | undefined;
  #prepared: Promise<StagedContent> | undefined;
  #delivering: Promise<Delivery> | undefined;
  #swept: Promise<void> | undefined;
  #ended: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /**
   * Creates the staged file; nothing is left behind when it cannot.
   * @throws StorageError 2-211 directory missing or not writable, 2-219 no space, 2-207 the key is in use
   */
  static async create(options: StagedFileOptions): Promise<StagedFile> {
    return new StagedFile(options, await openNew(options));
  }

  /**
   * Opens the staged file that an earlier attempt left, cut back to its newest usable point; creates it when there is none.
   * The staged bytes are read once for their hash (not with `checksum: 'none'`).
   * @throws StorageError as `create`; 2-204 when the file was delivered already: see `StagedFacts.delivered`
   */
  static async resume(options: StagedFileOptions): Promise<ResumedFile> {
    const opened = await openAgain(options);
    return { file: new StagedFile(options, opened), point: opened.point, reason: opened.reason };
  }

  /**
   * The state of the file staged under a key; changes nothing, and may be asked while the file is written.
   * @returns undefined when nothing is
   */
  static peek(receiveDirectory: string, key: string, files?: FileOperations): Promise<StagedFacts | undefined> {
    return peekStaged(receiveDirectory, key, files);
  }

  private constructor(options: StagedFileOptions, opened: OpenedStaging) {
    const { place, lock, file, point } = opened;
    const { durability = 'checkpoint' } = options;
    this.#options = options;
    this.#place = place;
    this.#lock = lock;
    this.#file = file;
    this.#durability = durability;
    this.#delivery = new StagedDelivery(place, durability);
    this.#intake = this.#takeIn(opened, durability === 'checkpoint' && point.number > 0);
  }

  /** From the point where the file was cut. */
  #takeIn(opened: OpenedStaging, entryIsStable: boolean): StagedIntake {
    return new StagedIntake({
      ...{ opened, entryIsStable, file: this.#file, options: this.#options, durability: this.#durability },
      failed: (error, action) => this.#fail(error, action),
      outgrown: (reason) => {
        // A complete file stays so.
        if (this.#prepared === undefined && this.#ended === undefined) this.#fail(reason, 'write');
      },
    });
  }

  /** Full path of the staged file, for logs. */
  get stagedPath(): string {
    return this.#place.stagedPath;
  }

  /** Articles received whole (PI 28), those before a restart included. */
  get articles(): number {
    return this.#intake.articles;
  }

  /** Article bytes received, as they came: padding included, line ends not; those before a restart included. */
  get dataBytes(): number {
    return this.#intake.dataBytes;
  }

  /** File bytes queued so far. */
  get size(): number {
    return this.#intake.writer.accepted;
  }

  /** File bytes handed to the operating system. */
  get bytesWritten(): number {
    return this.#intake.writer.written;
  }

  /** The newest point kept, on stable storage as far as the durability says: where a restart would begin. */
  get stablePoint(): StoredPoint | undefined {
    return this.#intake.points.newest;
  }

  write(batch: ArticleBatch, release?: () => void): boolean {
    if (this.#failure || this.#ended) return false;
    if (this.#prepared) throw new Error('articles after prepareDelivery');
    const { writer } = this.#intake;
    try {
      this.#intake.decode(batch);
    } catch (error) {
      this.#fail(error, 'write');
      return false;
    }
    if (release !== undefined) writer.whenWritten(release);
    writer.pump();
    return writer.hasRoom;
  }

  drained(): Promise<void> {
    return this.#intake.writer.drained();
  }

  checkpoint(point: SyncPoint, gather = 1): Promise<void> {
    if (this.#ended) return Promise.reject(this.#failure ?? givenUp());
    return this.#intake.points.add(point, gather);
  }

  /**
   * RESYN: cuts the file and its journal back to a point, or to the start. The points that were asked for before are stored
   * first, those after this one forgotten; `prepareDelivery` is to be called anew. With a checksum the part before the point
   * is read again. A point is known by the journal: without one (durability `end` or `none`, no checksum) it is refused.
   * @throws StorageError 2-218 the point is not in the journal, or the file is delivered; else as `checkpoint`
   */
  goBack({ number }: SyncPoint): Promise<void> {
    const going = this.#cutBack(number);
    this.#goingBack = going.catch(() => undefined);
    return going;
  }

  async #cutBack(number: number): Promise<void> {
    await this.#prepared?.catch(() => undefined);
    await this.#intake.points.idle();
    if (this.#ended) throw this.#failure ?? givenUp();
    if (this.#failure) throw this.#failure;
    if (this.#delivering) throw tooLateToGoBack(this.stagedPath);
    this.#intake.stop(givenUp());
    await this.#intake.writer.idle();
    await this.#intake.points.close();
    try {
      const { place, lock } = { place: this.#place, lock: this.#lock };
      const { newest, hash, entryIsStable } = this.#intake.points;
      const known = newest?.number === number ? hash?.copy() : undefined;
      const opened = await cutBack(this.#options, place, lock, this.#file, number, known);
      this.#intake = this.#takeIn(opened, entryIsStable);
      this.#prepared = undefined;
    } catch (error) {
      throw this.#fail(error, 'write');
    }
  }

  /**
   * Ends the file: all bytes on stable storage, still unseen. May be called again.
   * @throws StorageError as `write`; 3-311 (remote) when the last article is not complete
   */
  prepareDelivery(): Promise<StagedContent> {
    this.#prepared ??= this.#prepare();
    return this.#prepared;
  }

  /**
   * Gives the file its final name; it and every directory on the way are on stable storage when this resolves.
   * After a failure the file is still staged: deliver it under another name, release or discard it.
   * @throws StorageError 2-204 the name exists, 2-226 it leads outside the receive directory, 2-211, 2-213, 2-219
   */
  async deliver(target: DeliveryTarget): Promise<Delivery> {
    if (this.#ended) throw givenUp();
    this.#delivering ??= this.#deliver(target);
    try {
      return await this.#delivering;
    } catch (error) {
      this.#delivering = undefined;
      throw error;
    }
  }

  /**
   * Ends this attempt and keeps what is there for `resume`. Points that were asked for are still stored; everything
   * acknowledged is on stable storage when this resolves, with durability `end` too. May be called at any time, and again;
   * after `discard` it does nothing, and `discard` after it neither (`removeLeftover` removes what was released).
   * @throws StorageError 2-213, 2-219 when what was acknowledged cannot be flushed
   */
  release(): Promise<void> {
    this.#ended ??= this.#release();
    return this.#ended;
  }

  /**
   * The newest point, once those that were asked for before are stored or have failed: with one, `release` keeps what a
   * restart can use. Never rejects.
   */
  async lastPoint(): Promise<StoredPoint | undefined> {
    await this.#goingBack;
    await this.#intake.points.idle();
    return this.#intake.points.newest;
  }

  /**
   * Removes the delivered file again: its transfer could not be recorded. Its mark says so until `recorded`.
   * @throws StorageError when the file may still be there
   */
  takeBack(): Promise<TakenBack> {
    return this.#delivery.takeBack();
  }

  /** Takes the mark of a delivery away: its record says COMPLETED, or that it was withdrawn. Never rejects. */
  recorded(): Promise<void> {
    return this.#delivery.recorded();
  }

  /** Removes the staged file and its journal; a file already delivered stays. May be called at any time, and again. */
  discard(): Promise<void> {
    this.#ended ??= this.#discard();
    return this.#ended;
  }

  async #prepare(): Promise<StagedContent> {
    if (this.#failure) throw this.#failure;
    if (this.#ended) throw givenUp();
    if (!this.#intake.atArticleEnd) {
      this.#fail(
        new StorageError('the data end in the middle of an article: the sender must finish it before DTF.END', {
          fault: 'remote',
          diagnostic: '3-311',
        }),
        'write',
      );
    }
    await this.#intake.points.end();
    if (this.#durability === 'end') {
      await this.#file.datasync().catch((error: unknown) => {
        throw this.#fail(error, 'flush');
      });
    }
    return { size: this.#intake.writer.written, checksum: this.#intake.checksum() };
  }

  async #deliver(target: DeliveryTarget): Promise<Delivery> {
    const content = await this.prepareDelivery();
    const path = await this.#delivery.deliver(target);
    await this.#closeDelivered();
    return { path, ...content };
  }

  async #release(): Promise<void> {
    await this.#goingBack;
    await this.#delivering?.catch(() => undefined);
    if (this.#delivery.isDone) return this.#closeDelivered();
    try {
      await this.#intake.points.idle();
      await this.#stop();
      const { newest, hash } = this.#intake.points;
      if (this.#durability === 'end' && newest !== undefined) await this.#flush();
      if (hash !== undefined) keepHash(this.stagedPath, hash);
    } catch (error) {
      throw storageError(error, 'flush', this.stagedPath, 'the received file');
    } finally {
      await this.#close();
      await this.#lock.release();
    }
  }

  async #discard(): Promise<void> {
    forgetHash(this.stagedPath);
    await this.#goingBack;
    await this.#delivering?.catch(() => undefined);
    if (this.#delivery.isDone) return this.#closeDelivered();
    await this.#stop();
    await this.#close();
    try {
      await removeStaged(this.#place);
    } catch (error) {
      throw storageError(error, 'deliver', this.stagedPath, 'the staged file');
    } finally {
      await this.#lock.release();
    }
  }

  async #stop(): Promise<void> {
    const reason = this.#failure ?? givenUp();
    this.#failure = reason;
    this.#intake.stop(reason);
    await this.#intake.idle();
  }

  /** The file has its final name: nothing of this attempt stays. */
  #closeDelivered(): Promise<void> {
    forgetHash(this.stagedPath);
    this.#swept ??= Promise.all([
      this.#close(),
      this.#delivery.sweep(this.#intake.points.hasJournal),
      this.#lock.release(),
    ]).then(() => undefined);
    return this.#swept;
  }

  /** The data were flushed before, or are no longer wanted: no error of a close changes that. */
  #close(): Promise<void> {
    this.#closed ??= Promise.allSettled([this.#file.close(), this.#intake.points.close()]).then(() => undefined);
    return this.#closed;
  }

  /** Everything written so far, the journal, and the names of both. */
  async #flush(): Promise<void> {
    const { files, root, staging } = this.#place;
    await Promise.all([this.#file.datasync(), this.#intake.points.flush()]);
    await flushDirectories(files, [staging, root]);
  }

  #fail(error: unknown, action: Action): PesitError {
    if (this.#failure) return this.#failure;
    const failure = storageError(error, action, this.stagedPath, 'the received file');
    this.#failure = failure;
    this.#intake.stop(failure);
    // Not from inside `write`: the session that called it is in the middle of its own work.
    queueMicrotask(() => this.onFailure?.(failure));
    return failure;
  }
}

const tooLateToGoBack = (path: string) =>
  new StorageError(`${path} is being delivered: it can no longer go back to a sync point`, {
    fault: 'local',
    diagnostic: '2-218',
    peerText: 'the file is being delivered',
  });

const givenUp = () =>
  new StorageError('this attempt of the transfer was given up', {
    fault: 'local',
    diagnostic: '2-216',
    condition: 'cancelled',
    peerText: 'this attempt of the transfer was given up',
  });
