import { setTimeout as delay } from 'node:timers/promises';
import { MAX_SYNC_POINT } from '@pesit-node/protocol';
import type { ArticleSource, Burst, PesitError, SyncPoint } from '@pesit-node/protocol';
import { BlockCutter } from './block-cutter.js';
import { StorageError, storageError } from './errors.js';
import type { FileStore, ReadableFile } from './file-store.js';
import { isSameVersion } from './file-version.js';
import type { FileVersion } from './file-version.js';
import { START } from './group-commit.js';
import type { StoredPoint } from './group-commit.js';
import { canBeCounted } from './pacing.js';
import type { Pacing } from './pacing.js';
import { RunningHash } from './running-hash.js';
import { LineCutter } from './line-cutter.js';
import { LocalFileStore } from './local-file-store.js';
import { PointTable } from './point-table.js';
import { HashBeside, hashUpTo } from './prefix-hash.js';
import type { RecordFormat } from './record-format.js';
import type { SourceReader } from './source-reader.js';
import type { ChecksumKind } from './staged-options.js';

interface Cutter {
  fill(burst: Burst): Promise<boolean>;
  startAt(number: number, attempts: readonly Pacing[], signal?: AbortSignal): Promise<StoredPoint | undefined>;
  /** Goes on behind `articles` articles, which end at `fileOffset`; the source's hash stands there. */
  goTo(fileOffset: number, articles: number): void;
}

export interface FileSourceOptions {
  /** The version that the first attempt sent. Another is refused: a restart never mixes two. */
  readonly expected?: FileVersion;
  /** Default `sha256`. */
  readonly checksum?: ChecksumKind;
  /** Most bytes of one read, beside the bursts that are read whole. Default 524,288; of text 262,144. */
  readonly readSize?: number | undefined;
  /** Where the file lies. Default: anywhere on the local disk. */
  readonly store?: Pick<FileStore, 'open'>;
}

const SOURCE = 'the file to send';
const ANYWHERE = new LocalFileStore('/');
/**
 * Bytes before a restart point that are hashed before the first burst leaves. Behind more the whole file is hashed beside the
 * sending: a partner waits for data no longer than Tp.
 */
const HASHED_FIRST = 64 * 1024 * 1024;
/** Milliseconds that the end of a transfer waits for such a hash; less than any Tp. */
const HASH_LIMIT = 10_000;

/** A file while it is sent. It is opened once, so a file renamed over it meanwhile changes nothing. */
export class FileSource implements ArticleSource {
  readonly path: string;
  /** Place of each sync point that this attempt has placed, or passed on its way to its start. */
  readonly points = new PointTable();
  readonly #file: ReadableFile;
  readonly #version: FileVersion;
  readonly #format: RecordFormat;
  readonly #checksumKind: ChecksumKind;
  readonly #readSize: number | undefined;
  #reader: SourceReader;
  #cutter: Cutter;
  #checksum: string | undefined;
  #beside: HashBeside | undefined;
  #ended = false;
  #closed: Promise<void> | undefined;

  /**
   * @param path as its store calls it (`FileStore.find`): a link in its last place is refused
   * @throws StorageError as `FileStore.open`; 2-200 unfilled record: the size of a BF file is not a multiple of the record
   *   length; 2-215 it is not the expected version
   */
  static async open(path: string, format: RecordFormat, options: FileSourceOptions = {}): Promise<FileSource> {
    const { store = ANYWHERE, expected } = options;
    const file = await store.open(path);
    try {
      const { version } = file;
      if (expected) requireVersion(path, expected, version);
      if (format.name === 'BF') requireWholeRecords(path, version.size, format.recordLength);
      return new FileSource(path, format, file, version, options);
    } catch (error) {
      await file.close();
      throw storageError(error, 'open', path, SOURCE);
    }
  }

  private constructor(
    path: string,
    format: RecordFormat,
    file: ReadableFile,
    version: FileVersion,
    { checksum = 'sha256', readSize }: FileSourceOptions,
  ) {
    this.path = path;
    this.#file = file;
    this.#version = version;
    this.#format = format;
    this.#checksumKind = checksum;
    this.#readSize = readSize;
    this.#reader = this.#readerFromStart();
    this.#cutter = this.#cutterFromStart();
  }

  /** Bytes of the file when it was opened. */
  get size(): number {
    return this.#version.size;
  }

  /** Modification time when it was opened. */
  get modified(): Date {
    return new Date(Number(this.#version.mtimeNs / 1_000_000n));
  }

  /** For `expected` of the next attempt; keep it with the transfer. */
  get version(): FileVersion {
    const { size, mtimeNs, tag } = this.#version;
    return tag === undefined ? { size, mtimeNs } : { size, mtimeNs, tag };
  }

  /** `sha256:` and 64 hex digits of the file's bytes, those before a restart point included; undefined before the end was reached, or with `checksum: 'none'`. */
  get checksum(): string | undefined {
    return this.#checksum;
  }

  /**
   * To be awaited at the end, before `checksum` is read: behind a far restart point the hash may be under way still. After
   * `limit` milliseconds the transfer goes without one.
   */
  async hashed(limit = HASH_LIMIT): Promise<void> {
    if (this.#beside === undefined || !this.#ended || this.#checksum !== undefined) return;
    const timeout = new AbortController();
    const over = delay(limit, undefined, { signal: timeout.signal }).catch(() => undefined);
    const checksum = await Promise.race([this.#beside.checksum, over]);
    timeout.abort();
    // The hash read the file once more beside the sending: it must be the version that was sent.
    if (checksum !== undefined && (await this.#hasChanged()) === undefined) this.#checksum = checksum;
  }

  /**
   * Goes to a point of earlier attempts. Its place is found by counting once more, never by a table that a crash may have
   * left behind: BU, BV and BF by a division, TV and TF by cutting the lines before it again. With a checksum the part before
   * the point is read in any case. Not to be called while `fill` runs.
   * @param attempts all earlier attempts, in order
   * @returns the point to start from, with its totals; undefined when none of the attempts placed such a point (2-214): the
   *   file is at its start then
   * @param signal looked at between two blocks of what is read
   * @throws StorageError as `fill`; the reason of `signal`, a `PesitError`
   */
  async startAt(number: number, attempts: readonly Pacing[], signal?: AbortSignal): Promise<StoredPoint | undefined> {
    this.#goToStart();
    if (number === 0) return START;
    if (number < 0 || number > MAX_SYNC_POINT || !canBeCounted(attempts)) return undefined;
    try {
      const found = await this.#cutter.startAt(number, attempts, signal);
      if (found === undefined) this.#goToStart();
      return found;
    } catch (error) {
      throw storageError(error, 'read', this.path, SOURCE);
    }
  }

  /** @throws StorageError 2-215 the file changed since it was opened, 2-220 a line is too long, 2-213 it cannot be read */
  async fill(burst: Burst): Promise<boolean> {
    try {
      if (await this.#cutter.fill(burst)) return true;
      if (!this.#ended) await this.#end();
      return false;
    } catch (error) {
      throw storageError(error, 'read', this.path, SOURCE);
    }
  }

  /**
   * RESYN: the point is one of this attempt, so `points` has its place. With a checksum the part before it is read once more.
   * @throws StorageError 2-214 for any other point; else as `fill`
   */
  async goBack({ number, articles }: SyncPoint): Promise<void> {
    if (number === 0) {
      this.#goToStart();
      return;
    }
    const fileOffset = this.points.offsetOf(number);
    if (fileOffset === undefined) throw noSuchPoint(this.path, number);
    try {
      this.#ended = false;
      this.#checksum = undefined;
      this.#reader = this.#readerFromStart();
      this.#cutter = this.#cutterFromStart();
      await this.#reader.hashUpTo(fileOffset);
      this.#cutter.goTo(fileOffset, articles);
      this.points.set(number, fileOffset);
    } catch (error) {
      throw storageError(error, 'read', this.path, SOURCE);
    }
  }

  /** May be called again. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Before the last burst leaves: what was read is the file as it was at the start, or it is not sent as whole. */
  async #end(): Promise<void> {
    const how = await this.#hasChanged();
    if (how !== undefined) throw this.#changed(how);
    this.#ended = true;
    this.#checksum = this.#reader.hash?.checksum();
  }

  /** In words how the file is not the one that was opened. */
  async #hasChanged(): Promise<string | undefined> {
    const now = await this.#file.stat();
    if (now.size !== this.size) return `${this.size} bytes expected, ${now.size} found`;
    if (now.mtimeNs !== this.#version.mtimeNs) return 'its modification time is not the one of the start';
    return isSameVersion(now, this.#version) ? undefined : 'its store calls it another version than at the start';
  }

  async #close(): Promise<void> {
    await this.#beside?.stop();
    await this.#file.close();
  }

  #goToStart(): void {
    this.points.clear();
    this.#ended = false;
    this.#checksum = undefined;
    this.#reader = this.#readerFromStart();
    this.#cutter = this.#cutterFromStart();
  }

  #readerFromStart(): SourceReader {
    const reader: SourceReader = {
      path: this.path,
      file: this.#file,
      size: this.size,
      hash: this.#checksumKind === 'sha256' ? new RunningHash() : undefined,
      points: this.points,
      hashUpTo: async (fileOffset, signal) => {
        if (reader.hash === undefined) return;
        if (fileOffset > HASHED_FIRST) {
          reader.hash = undefined;
          this.#beside ??= new HashBeside(this.#file, this.size, this.#readSize);
          return;
        }
        reader.hash = await hashUpTo(this.#file, fileOffset, signal, this.#readSize);
        if (reader.hash === undefined) throw this.#changed(`it ends before byte ${fileOffset} of ${this.size}`);
      },
      changed: (how) => this.#changed(how),
    };
    return reader;
  }

  #cutterFromStart(): Cutter {
    const { name, recordLength, text, codePage } = this.#format;
    return text
      ? new LineCutter(this.#reader, recordLength, name === 'TF', codePage, this.#readSize)
      : new BlockCutter(this.#reader, recordLength, name === 'BF');
  }

  #changed(how: string): PesitError {
    return new StorageError(`${this.path} changed while it was sent: ${how}; send it again once it is complete`, {
      fault: 'local',
      diagnostic: '2-215',
      condition: 'source changed',
      peerText: `the source changed while it was sent: ${how}`,
    });
  }
}

const noSuchPoint = (path: string, number: number) =>
  new StorageError(`${path}: sync point ${number} was not placed by this attempt; restart the transfer`, {
    fault: 'local',
    diagnostic: '2-214',
    condition: 'point unknown',
    peerText: `sync point ${number} is unknown here`,
  });

const requireVersion = (path: string, expected: FileVersion, now: FileVersion): void => {
  if (isSameVersion(now, expected)) return;
  const { size, mtimeNs } = now;
  const how =
    size === expected.size
      ? `modified at ${timeOf(mtimeNs)}, then at ${timeOf(expected.mtimeNs)}`
      : `${expected.size} bytes then, ${size} now`;
  throw new StorageError(`${path} is no longer the file of the first attempt (${how}): send it as a new transfer`, {
    fault: 'local',
    diagnostic: '2-215',
    condition: 'source changed',
    peerText: `the source changed since the first attempt: ${how}`,
    expected: `${expected.size} bytes, ${timeOf(expected.mtimeNs)}`,
    got: `${size} bytes, ${timeOf(mtimeNs)}`,
  });
};

const timeOf = (ns: bigint) => new Date(Number(ns / 1_000_000n)).toISOString();

const requireWholeRecords = (path: string, size: number, recordLength: number): void => {
  const rest = size % recordLength;
  if (rest === 0) return;
  const text = `unfilled record: ${size} bytes are no multiple of the record length ${recordLength}, the last record has ${rest}`;
  throw new StorageError(`${path}: ${text}; set recordLength to that of the file, or send it as BU (variable binary)`, {
    fault: 'local',
    diagnostic: '2-200',
    peerText: text,
    expected: `a multiple of ${recordLength}`,
    got: String(size),
  });
};
