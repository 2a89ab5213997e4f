/**
 * The port to where files are sent from and delivered to (design §2): the local disk (`LocalFileStore`), later an
 * object store or SFTP. To add one: implement `FileStore`, run `describeFileStore` (`@pesit-node/storage/testing`) over it,
 * and let the `FileStores` of the apps know which configured locations are of its kind.
 *
 * A store is a directory, or a bucket with a prefix. A *name* is relative to it, with `/` between segments;
 * a *path* is what the store itself calls a file, and what records keep: absolute, links resolved, on the local disk. Neither
 * leads out of the store.
 *
 * Sending is `find`, then `open`, then reads at any offset straight into the buffers that go to the socket.
 * Receiving is always staged on the local disk, where sync points can be made stable: a store has a part in it from
 * `deliver` on, which may move the staged file or put it as one object. A file is seen whole under its name or not at all.
 *
 * Every failure is a `StorageError` with the diagnostic to send.
 */
import type { ArticleSink } from '@pesit-node/protocol';
import type { SelectionRequest } from './file-selection.js';
import type { FileVersion } from './file-version.js';
import type { StoredPoint } from './group-commit.js';
import type { SendableFile } from './sendable-file.js';
import type { Delivery, DeliveryTarget, StagedContent, StagedFileOptions, TakenBack } from './staged-options.js';

/** Capabilities of a store: asked by code that would otherwise have to know its kind. */
export interface FileStoreCapabilities {
  /** Giving a file another name is one step, which others see done or not done. */
  readonly renameIsAtomic: boolean;
  /** Bytes in the middle of a file are read without those before them: a restart costs no more than what is left. */
  readonly rangedReads: boolean;
  /** The written part of an incomplete file is there after a crash. */
  readonly partialWritesSurvive: boolean;
  /** A file gets another name within the store without its bytes coming through this process. */
  readonly serverSideMove: boolean;
}

/** The object that a name stands for. */
export interface Located {
  /** Path that `open` takes. */
  readonly path: string;
  /** Name of the file itself, links resolved; empty: the store itself. */
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'other' | 'nothing';
  /** Version of a file; undefined for all else. */
  readonly version: FileVersion | undefined;
}

/**
 * An open file. Data written to its name meanwhile are never mixed into it: reads continue with the version that was opened,
 * fail with StorageError 2-215 (condition `source changed`), or `stat` shows another version.
 */
export interface ReadableFile {
  /** The version that was opened. */
  readonly version: FileVersion;
  /**
   * Reads straight into the given buffers.
   * @param position bytes from the start of the file
   * @returns bytes read, possibly fewer than there is room for; 0 at the end of the file
   * @throws an error of the store or StorageError; `FileSource` makes it one
   */
  readv(buffers: readonly Buffer[], position: number): Promise<number>;
  /** The version as it is now. */
  stat(): Promise<FileVersion>;
  close(): Promise<void>;
}

/** How a file is staged: see `StagedFileOptions`. */
export type ReceiveOptions = Omit<StagedFileOptions, 'receiveDirectory' | 'files'>;

/** A file while it is received; the rules of `StagedFile` hold for each store. */
export interface ReceivedFile extends ArticleSink {
  /** Full path of the local staged file, for logs. */
  readonly stagedPath: string;
  /** Articles received whole (PI 28), those before a restart included. */
  readonly articles: number;
  /** Article bytes received (PI 27), those before a restart included. */
  readonly dataBytes: number;
  /** File bytes queued so far. */
  readonly size: number;
  /** File bytes handed to the operating system. */
  readonly bytesWritten: number;
  /** Where a restart would begin; undefined: at the start. */
  readonly stablePoint: StoredPoint | undefined;
  /** Ends the file: all bytes on stable local storage, still unseen. */
  prepareDelivery(): Promise<StagedContent>;
  /**
   * Gives the whole file its final name; it is in the store for good when this resolves. After a failure it is still staged.
   * @returns with the path of the file in the store
   * @throws StorageError 2-204 the name exists (condition `name taken`), 2-226 it leads out of the store, 2-211, 2-213, 2-219; whatever `admit` throws
   */
  deliver(target: DeliveryTarget): Promise<Delivery>;
  /**
   * Removes the delivered file again: its transfer could not be recorded, and the sender will send it again. Its mark says so until `recorded`,
   * where the store has marks.
   * @throws StorageError when the file may still be there
   */
  takeBack(): Promise<TakenBack>;
  /** Its record says COMPLETED, or that it was withdrawn: what tells a restart so may go. Never rejects. */
  recorded(): Promise<void>;
  /** The newest point, once those that were asked for are stored or have failed. Never rejects. */
  lastPoint(): Promise<StoredPoint | undefined>;
  /** Ends this attempt and keeps what is there for `resume`. @throws StorageError 2-213, 2-219 */
  release(): Promise<void>;
  /** Ends this attempt and removes what is staged; a file already delivered stays. */
  discard(): Promise<void>;
}

export interface ResumedReceiving {
  readonly file: ReceivedFile;
  /** Where the file continues: the point to name to the peer. Number 0: from the start. */
  readonly point: StoredPoint;
  /** Why less than all that was staged could be used, for the log; undefined when nothing was lost, or nothing there. */
  readonly reason: string | undefined;
}

export interface FileStore {
  readonly capabilities: FileStoreCapabilities;
  /** Local directory below which files that are received are staged: what `StagedFile.peek` and `removeLeftover` take. */
  readonly staging: string;

  /**
   * The file that answers a SELECT: the one of exactly this name, else the oldest (then the first by name) that matches and is
   * wanted. Hidden names (that begin with a dot) and names below a `/` are not seen.
   * @returns undefined when there is none (answer 2-205)
   * @throws StorageError 2-205 the store is missing, 2-211 it cannot be read; whatever `wanted` throws
   */
  find(request?: SelectionRequest): Promise<SendableFile | undefined>;

  /**
   * The file of exactly this name, if `find` could see it.
   * @param pattern that it has to match. Default `*`
   * @throws StorageError as `find`
   */
  findNamed(name: string, pattern?: string): Promise<SendableFile | undefined>;

  /**
   * The object under a name, at any depth, hidden or not.
   * @param name relative, or a path of this store
   * @throws StorageError 2-226 when it leads out of the store, contains NUL, or cannot be resolved
   */
  locate(name: string): Promise<Located>;

  /**
   * @param path of this store
   * @returns undefined when there is no such file
   * @throws StorageError 2-226 when the path is not of this store, 2-211 or 2-213 when it cannot be looked at
   */
  version(path: string): Promise<FileVersion | undefined>;

  /**
   * Opens a file for reads at any offset.
   * @param path of this store: of `find`, `findNamed` or `locate`
   * @throws StorageError 2-205 missing; 2-211 a link, not a regular file, or not readable; 2-226 not of this store
   */
  open(path: string): Promise<ReadableFile>;

  /**
   * Stages a new file on the local disk, unseen until it is delivered.
   * @throws StorageError 2-211 it cannot be staged, 2-219 no space, 2-207 the key is in use (condition `staged file in use`)
   */
  receive(options: ReceiveOptions): Promise<ReceivedFile>;

  /**
   * Goes on with what an earlier attempt staged, from its newest usable point; as `receive` when there is none.
   * @throws StorageError as `receive`; 2-204 when it was delivered already
   */
  resume(options: ReceiveOptions): Promise<ResumedReceiving>;
}

/** The stores of a service. */
export interface FileStores {
  /** @param location as configured and resolved: an absolute directory, or one file for reading */
  at(location: string): FileStore;
}
