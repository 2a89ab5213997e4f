import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { constants } from 'node:fs';
import type { ArticleSource, Burst, PesitError } from '@pesit-node/protocol';
import { BlockCutter } from './block-cutter.js';
import { StorageError, errorCode, storageError } from './errors.js';
import { nodeFiles } from './files.js';
import type { FileFacts, FileOperations, OpenFile } from './files.js';
import { LineCutter } from './line-cutter.js';
import { PointTable } from './point-table.js';
import type { RecordFormat } from './record-format.js';
import type { ChecksumKind } from './staged-options.js';

/** What a cutter reads from. */
export interface SourceReader {
  /** For the operator's messages. */
  readonly path: string;
  readonly file: OpenFile;
  /** Bytes, when the file was opened. */
  readonly size: number;
  readonly hash: Hash | undefined;
  readonly points: PointTable;
  changed(how: string): PesitError;
}

export interface FileSourceOptions {
  /** Default `sha256`. */
  readonly checksum?: ChecksumKind;
  /** Default: the real file system. */
  readonly files?: FileOperations;
}

const SOURCE = 'the file to send';

/** A file while it is sent. It is opened once, so a file renamed over it meanwhile changes nothing. */
export class FileSource implements ArticleSource {
  readonly path: string;
  /** Place of each sync point in the file, for a restart. */
  readonly points = new PointTable();
  readonly #file: OpenFile;
  readonly #facts: FileFacts;
  readonly #hash: Hash | undefined;
  readonly #cutter: { fill(burst: Burst): Promise<boolean> };
  #checksum: string | undefined;
  #ended = false;
  #closed: Promise<void> | undefined;

  /**
   * @param path a resolved path (`resolveInside`, `findFileToSend`): a link in its last place is refused
   * @throws StorageError 2-205 missing; 2-211 a link, not a regular file, or not readable; 2-200 unfilled record: the size of a
   *   BF file is not a multiple of the record length
   */
  static async open(path: string, format: RecordFormat, options: FileSourceOptions = {}): Promise<FileSource> {
    const { files = nodeFiles, checksum = 'sha256' } = options;
    // Without O_NONBLOCK the open of a FIFO waits for a writer that may never come.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
    const file = await files.open(path, flags).catch((error: unknown) => {
      throw errorCode(error) === 'ELOOP' ? notRegular(path, 'link') : storageError(error, 'open', path, SOURCE);
    });
    try {
      const facts = await file.stat();
      if (facts.kind !== 'file') throw notRegular(path, facts.kind);
      if (format.name === 'BF') requireWholeRecords(path, facts.size, format.recordLength);
      return new FileSource(path, format, file, facts, checksum);
    } catch (error) {
      await file.close();
      throw storageError(error, 'open', path, SOURCE);
    }
  }

  private constructor(path: string, format: RecordFormat, file: OpenFile, facts: FileFacts, checksum: ChecksumKind) {
    this.path = path;
    this.#file = file;
    this.#facts = facts;
    this.#hash = checksum === 'sha256' ? createHash('sha256') : undefined;
    const { points } = this;
    const reader: SourceReader = {
      path,
      file,
      size: facts.size,
      hash: this.#hash,
      points,
      changed: (how) => this.#changed(how),
    };
    this.#cutter = format.text
      ? new LineCutter(reader, format.recordLength, format.name === 'TF')
      : new BlockCutter(reader, format.recordLength, format.name === 'BF');
  }

  /** Bytes of the file when it was opened. */
  get size(): number {
    return this.#facts.size;
  }

  /** Modification time when it was opened. */
  get modified(): Date {
    return new Date(Number(this.#facts.mtimeNs / 1_000_000n));
  }

  /** `sha256:` and 64 hex digits of the file's bytes; undefined before the end was reached, or with `checksum: 'none'`. */
  get checksum(): string | undefined {
    return this.#checksum;
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

  /** May be called again. */
  close(): Promise<void> {
    this.#closed ??= this.#file.close();
    return this.#closed;
  }

  /** Before the last burst leaves: what was read is the file as it was at the start, or it is not sent as whole. */
  async #end(): Promise<void> {
    const now = await this.#file.stat();
    if (now.size !== this.size) throw this.#changed(`${this.size} bytes expected, ${now.size} found`);
    if (now.mtimeNs !== this.#facts.mtimeNs) throw this.#changed('its modification time is not the one of the start');
    this.#ended = true;
    const digest = this.#hash?.digest('hex');
    if (digest !== undefined) this.#checksum = `sha256:${digest}`;
  }

  #changed(how: string): PesitError {
    return new StorageError(`${this.path} changed while it was sent: ${how}; send it again once it is complete`, {
      fault: 'local',
      diagnostic: '2-215',
      peerText: `the source changed while it was sent: ${how}`,
    });
  }
}

function requireWholeRecords(path: string, size: number, recordLength: number): void {
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
}

const notRegular = (path: string, kind: FileFacts['kind']) =>
  new StorageError(`${path} is not a regular file (${kind}): only regular files can be sent`, {
    fault: 'local',
    diagnostic: '2-211',
    peerText: `${SOURCE} is not a regular file`,
    expected: 'file',
    got: kind,
  });
