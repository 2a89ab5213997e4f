import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { join } from 'node:path';
import type { ArticleBatch, ArticleSink, PesitError, SyncPoint } from '@pesit-node/protocol';
import { ArticleDecoder } from './article-decoder.js';
import { moveIntoPlace } from './delivery.js';
import { makeDirectoriesInside, makePrivateDirectory } from './directories.js';
import { StorageError, errorCode, storageError } from './errors.js';
import type { Action } from './errors.js';
import { FileWriter } from './file-writer.js';
import { flushDirectory, nodeFiles } from './files.js';
import type { FileOperations, OpenFile } from './files.js';
import { GroupCommit } from './group-commit.js';
import type { StoredPoint } from './group-commit.js';
import { STAGING_DIRECTORY, relativeSegments } from './path-safety.js';
import type { RecordFormat } from './record-format.js';

/** `transfer.checksum`. */
export type ChecksumKind = 'sha256' | 'none';

export interface StagedFileOptions {
  /** Absolute; must exist. */
  readonly receiveDirectory: string;
  /** Names the staged file; unique among the transfers that share the directory. `[A-Za-z0-9._-]`, at most 200. */
  readonly key: string;
  readonly format: RecordFormat;
  /** Default `sha256`. */
  readonly checksum?: ChecksumKind;
  /** Default: the real file system. */
  readonly files?: FileOperations;
}

export interface DeliveryTarget {
  /** Final name relative to the receive directory, `/` between segments; missing directories are created. */
  readonly path: string;
  /** Replace a file of that name. False: such a file makes the delivery fail with 2-204. */
  readonly overwrite: boolean;
}

/** A staged file whose bytes are all on stable storage. */
export interface StagedContent {
  /** Bytes of the file. */
  readonly size: number;
  /** `sha256:` and 64 hex digits; undefined with `checksum: 'none'`. */
  readonly checksum: string | undefined;
}

export interface Delivery extends StagedContent {
  /** Absolute, links resolved. */
  readonly path: string;
}

const KEY = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/**
 * A file while it is received: `<receiveDirectory>/.pesit/<key>.part`, private, unseen until `deliver`.
 *
 * The order at the end of a transfer: `prepareDelivery` (data stable) → check the counts → `deliver` (final name, then
 * directories stable) → commit the database record → ACK(TRANS.END). Whoever does not deliver calls `discard`.
 */
export class StagedFile implements ArticleSink {
  onFailure: ((error: Error) => void) | undefined;
  readonly #files: FileOperations;
  readonly #file: OpenFile;
  readonly #root: string;
  readonly #stagedPath: string;
  readonly #decoder: ArticleDecoder;
  readonly #hash: Hash | undefined;
  readonly #writer: FileWriter;
  readonly #commits: GroupCommit;
  #dataBytes = 0;
  #stablePoint: StoredPoint | undefined;
  #entryIsStable = false;
  #failure: PesitError | undefined;
  #prepared: Promise<StagedContent> | undefined;
  #delivering: Promise<Delivery> | undefined;
  #delivered = false;
  #discarded: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /**
   * Creates the staged file; nothing is left behind when it cannot.
   * @throws StorageError 2-211 directory missing or not writable, 2-219 no space, 2-207 the key is in use
   */
  static async create(options: StagedFileOptions): Promise<StagedFile> {
    const { receiveDirectory, key, files = nodeFiles } = options;
    if (!KEY.test(key)) throw new TypeError(`${JSON.stringify(key)} cannot name a staged file`);
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    let path = join(receiveDirectory, STAGING_DIRECTORY, `${key}.part`);
    try {
      const root = await files.realpath(receiveDirectory);
      const staging = join(root, STAGING_DIRECTORY);
      await makePrivateDirectory(files, staging);
      path = join(staging, `${key}.part`);
      return new StagedFile(options, files, await files.open(path, flags, 0o600), root, path);
    } catch (error) {
      if (errorCode(error) === 'EEXIST') throw keyInUse(path, error);
      throw storageError(error, 'create', path, 'a file in the receive directory');
    }
  }

  private constructor(
    { format, checksum = 'sha256' }: StagedFileOptions,
    files: FileOperations,
    file: OpenFile,
    root: string,
    stagedPath: string,
  ) {
    this.#files = files;
    this.#file = file;
    this.#root = root;
    this.#stagedPath = stagedPath;
    this.#decoder = new ArticleDecoder(format);
    this.#hash = checksum === 'sha256' ? createHash('sha256') : undefined;
    this.#writer = new FileWriter(file, this.#hash, (error) => this.#fail(error, 'write'));
    this.#commits = new GroupCommit(
      this.#writer,
      (points) => this.#commit(points),
      (error) => this.#fail(error, 'flush'),
    );
  }

  /** Full path of the staged file, for logs. */
  get stagedPath(): string {
    return this.#stagedPath;
  }

  /** Articles received whole (PI 28). */
  get articles(): number {
    return this.#decoder.articles;
  }

  /** Article bytes received, as they came: padding included, line ends not. */
  get dataBytes(): number {
    return this.#dataBytes;
  }

  /** File bytes queued so far. */
  get size(): number {
    return this.#writer.accepted;
  }

  /** File bytes handed to the operating system. */
  get bytesWritten(): number {
    return this.#writer.written;
  }

  /** The newest point on stable storage. */
  get stablePoint(): StoredPoint | undefined {
    return this.#stablePoint;
  }

  write(batch: ArticleBatch): boolean {
    if (this.#failure) return false;
    if (this.#prepared) throw new Error('articles after prepareDelivery');
    try {
      this.#decoder.decode(batch, this.#writer.queue);
    } catch (error) {
      this.#fail(error, 'write');
      return false;
    }
    this.#dataBytes += batch.bytes;
    this.#writer.pump();
    return this.#writer.hasRoom;
  }

  drained(): Promise<void> {
    return this.#writer.drained();
  }

  checkpoint(point: SyncPoint): Promise<void> {
    const { number, dataBytes, articles } = point;
    const fileOffset = this.#writer.accepted;
    return this.#commits.add(fileOffset, { number, dataBytes, articles, fileOffset });
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
   * After a failure the file is still staged: deliver it under another name, or discard it.
   * @throws StorageError 2-204 the name exists, 2-226 it leads outside the receive directory, 2-211, 2-213, 2-219
   */
  async deliver(target: DeliveryTarget): Promise<Delivery> {
    if (this.#discarded) throw givenUp();
    this.#delivering ??= this.#deliver(target);
    try {
      return await this.#delivering;
    } catch (error) {
      this.#delivering = undefined;
      throw error;
    }
  }

  /** Removes the staged file; a file already delivered stays. May be called at any time, and again. */
  discard(): Promise<void> {
    this.#discarded ??= this.#discard();
    return this.#discarded;
  }

  /** The one place where a point becomes stable: data first, then what leads to them. */
  async #commit(points: readonly StoredPoint[]): Promise<void> {
    await this.#file.datasync();
    const newest = points.at(-1);
    if (newest === undefined) return;
    if (!this.#entryIsStable) {
      // A point in a file that no directory names after a power cut would be a promise broken.
      await this.#flushDirectories([join(this.#root, STAGING_DIRECTORY), this.#root]);
      this.#entryIsStable = true;
    }
    this.#stablePoint = newest;
  }

  async #prepare(): Promise<StagedContent> {
    if (this.#failure) throw this.#failure;
    if (!this.#decoder.atArticleEnd) {
      this.#fail(
        new StorageError('the data end in the middle of an article: the sender must finish it before DTF.END', {
          fault: 'remote',
          diagnostic: '3-311',
        }),
        'write',
      );
    }
    await this.#commits.add(this.#writer.accepted);
    const digest = this.#hash?.digest('hex');
    return { size: this.#writer.written, checksum: digest === undefined ? undefined : `sha256:${digest}` };
  }

  async #deliver({ path, overwrite }: DeliveryTarget): Promise<Delivery> {
    const content = await this.prepareDelivery();
    const segments = relativeSegments(path);
    const name = segments.at(-1) ?? '';
    let final = join(this.#root, path);
    try {
      const chain = await makeDirectoriesInside(this.#files, this.#root, segments.slice(0, -1));
      final = join(chain.at(-1) ?? this.#root, name);
      await moveIntoPlace(this.#files, this.#stagedPath, final, overwrite);
      this.#delivered = true;
      try {
        // All of the chain, for another delivery may have created a directory and not flushed its parent yet.
        await this.#flushDirectories([...chain, join(this.#root, STAGING_DIRECTORY)]);
      } catch (error) {
        if (!overwrite) await this.#takeBack(final);
        throw error;
      }
      await this.#close();
    } catch (error) {
      throw storageError(error, 'deliver', final, 'the received file');
    }
    return { path: final, ...content };
  }

  /** The sender will hear that the transfer failed and send again: a copy under the final name would make two. */
  async #takeBack(final: string): Promise<void> {
    await this.#files.rename(final, this.#stagedPath).then(
      () => (this.#delivered = false),
      () => undefined,
    );
  }

  async #discard(): Promise<void> {
    await this.#delivering?.catch(() => undefined);
    if (this.#delivered) return this.#close();
    const reason = this.#failure ?? givenUp();
    this.#failure = reason;
    this.#writer.stop(reason);
    this.#commits.stop(reason);
    await this.#writer.idle();
    await this.#commits.idle();
    // Whatever close has to say, the data are not wanted any more.
    await this.#close().catch(() => undefined);
    try {
      await this.#files.unlink(this.#stagedPath);
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw storageError(error, 'deliver', this.#stagedPath, 'the staged file');
    }
  }

  #close(): Promise<void> {
    this.#closed ??= this.#file.close();
    return this.#closed;
  }

  async #flushDirectories(paths: readonly string[]): Promise<void> {
    await Promise.all([...new Set(paths)].map((path) => flushDirectory(this.#files, path)));
  }

  #fail(error: unknown, action: Action): void {
    if (this.#failure) return;
    const failure = storageError(error, action, this.#stagedPath, 'the received file');
    this.#failure = failure;
    this.#writer.stop(failure);
    this.#commits.stop(failure);
    // Not from inside `write`: the session that called it is in the middle of its own work.
    queueMicrotask(() => this.onFailure?.(failure));
  }
}

const givenUp = () =>
  new StorageError('the transfer was given up: its staged file is removed', { fault: 'local', diagnostic: '2-216' });

const keyInUse = (path: string, cause: unknown) =>
  new StorageError(`${path} exists: another attempt of this transfer runs, or left it; let that one end or remove it`, {
    fault: 'local',
    diagnostic: '2-207',
    peerText: 'this transfer is in progress already',
    cause,
  });
