import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { codeOf } from '@pesit-node/ground';
import { readFully, writeFully } from './files.js';
import type { FileOperations, OpenFile } from './files.js';
import { MAX_HEADER, RECORD_SIZE, decodeHeader, decodeRecord, encodeHeader, encodeRecords } from './journal-format.js';
import type { JournalHeader, JournalPoint } from './journal-format.js';

/** Records read at once. */
const PIECE = 1024;
/**
 * A journal grows by so many bytes at a time, zeros behind its records. A flush of what lies within them needs no commit of the
 * file system's own journal, and does not wait for the one that the data beside it need: measured on ext4, half the time of a
 * flush of both.
 */
const BLOCK = 4096;

/** How a journal is opened to append to it. `O_DSYNC`: a write is on stable storage when it ends, one call instead of two. */
export const appending = (flush: boolean): number => constants.O_RDWR | (flush ? constants.O_DSYNC : 0);

/**
 * The journal that a file which is received writes: nothing on disk before its first point, then one append a group. Whether
 * its file is `flushed` by every append was decided when it was opened.
 */
export class PointJournal {
  readonly #files: FileOperations;
  readonly #path: string;
  readonly #header: JournalHeader;
  readonly #flushed: boolean;
  #file: Promise<OpenFile> | undefined;
  /** Where the next record goes: taken by an append as it begins, so that two may be under way. */
  #position: number;
  /** Size that the file has, or will have when `#grown` resolves: no record may go before the zeros that it lies among. */
  #size: number;
  #grown: Promise<void> = Promise.resolve();
  #exists: boolean;

  /** @param flush false: an append is only handed to the operating system */
  static fresh(
    files: FileOperations,
    path: string,
    header: Omit<JournalHeader, 'nonce'>,
    flush: boolean,
  ): PointJournal {
    return new PointJournal(files, path, { ...header, nonce: randomBytes(8) }, flush, undefined, 0);
  }

  /**
   * Goes on after record `index`; what follows it is cut off, with `flush` on stable storage too.
   * @param found opened with `appending(flush)`
   */
  static async continued(
    files: FileOperations,
    found: FoundJournal,
    index: number,
    flush: boolean,
  ): Promise<PointJournal> {
    const position = found.header.size + (index + 1) * RECORD_SIZE;
    await found.file.truncate(position);
    if (flush) await found.file.datasync();
    return new PointJournal(files, found.path, found.header, flush, found.file, position);
  }

  private constructor(
    files: FileOperations,
    path: string,
    header: JournalHeader,
    flushed: boolean,
    file: OpenFile | undefined,
    position: number,
  ) {
    this.#files = files;
    this.#path = path;
    this.#header = header;
    this.#flushed = flushed;
    this.#file = file && Promise.resolve(file);
    this.#position = position;
    this.#size = position;
    this.#exists = file !== undefined;
  }

  /** Whether there is a file of it. */
  get exists(): boolean {
    return this.#exists;
  }

  async append(points: readonly JournalPoint[]): Promise<void> {
    const bytes = [encodeRecords(points, this.#header.nonce)];
    if (this.#file === undefined) {
      this.#file = this.#create();
      bytes.unshift(encodeHeader(this.#header));
    }
    const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
    const position = this.#position;
    this.#position += length;
    if (this.#position <= this.#size) {
      await this.#grown;
      await writeFully(await this.#file, bytes, position, length);
      return;
    }
    this.#size = Math.ceil(this.#position / BLOCK) * BLOCK;
    bytes.push(Buffer.alloc(this.#size - this.#position));
    this.#grown = this.#grow(this.#grown, this.#file, bytes, position, this.#size - position);
    await this.#grown;
  }

  async #grow(
    before: Promise<void>,
    file: Promise<OpenFile>,
    bytes: readonly Buffer[],
    position: number,
    length: number,
  ): Promise<void> {
    await before;
    await writeFully(await file, bytes, position, length);
  }

  async flush(): Promise<void> {
    await (await this.#file)?.datasync();
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await (await file?.catch(() => undefined))?.close();
  }

  async #create(): Promise<OpenFile> {
    const flags = appending(this.#flushed) | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const file = await this.#files.open(this.#path, flags, 0o600);
    this.#exists = true;
    return file;
  }
}

/** A journal that was left, open, with its header known. */
export interface FoundJournal {
  readonly path: string;
  readonly file: OpenFile;
  readonly header: JournalHeader & { readonly size: number };
  /** Whole records; a torn one at the end does not count. */
  readonly records: number;
  /** Nanoseconds since the epoch. */
  readonly mtimeNs: bigint;
}

/**
 * @param flags of `open`, read or read and write
 * @returns in words why there is none, when there is none
 */
export const findJournal = async (
  files: FileOperations,
  path: string,
  flags: number,
): Promise<FoundJournal | string> => {
  let file: OpenFile;
  try {
    file = await files.open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'it has no journal of points';
    throw error;
  }
  try {
    const { size, mtimeNs } = await file.stat();
    const start = Buffer.alloc(Math.min(size, MAX_HEADER));
    const header = decodeHeader(start.subarray(0, await readFully(file, [start], 0, start.length)));
    if (typeof header !== 'string') {
      const records = Math.max(0, Math.floor((size - header.size) / RECORD_SIZE));
      return { path, file, header, records, mtimeNs };
    }
    await file.close();
    return header;
  } catch (error) {
    await file.close();
    throw error;
  }
};

/** A record that is intact, and which one it is. */
export interface FoundPoint {
  readonly index: number;
  readonly point: JournalPoint;
}

/** The intact records in order. */
export async function* intactPoints(journal: FoundJournal): AsyncGenerator<FoundPoint> {
  for (let from = 0; from < journal.records; from += PIECE) yield* await readPiece(journal, from);
}

/** The newest intact record for which `accepts` holds. */
export const newestPoint = async (
  journal: FoundJournal,
  accepts: (point: JournalPoint) => boolean,
): Promise<FoundPoint | undefined> => {
  for (let end = journal.records; end > 0; end -= PIECE) {
    const from = Math.max(0, end - PIECE);
    const piece = await readPiece(journal, from, end - from);
    const found = piece.reverse().find(({ point }) => accepts(point));
    if (found !== undefined) return found;
  }
  return undefined;
};

const readPiece = async (
  { file, header, records }: FoundJournal,
  from: number,
  count = PIECE,
): Promise<FoundPoint[]> => {
  const bytes = Buffer.alloc(Math.min(count, records - from) * RECORD_SIZE);
  const read = await readFully(file, [bytes], header.size + from * RECORD_SIZE, bytes.length);
  const found: FoundPoint[] = [];
  for (let at = 0; at + RECORD_SIZE <= read; at += RECORD_SIZE) {
    const point = decodeRecord(bytes.subarray(at, at + RECORD_SIZE), header.nonce);
    if (point !== undefined) found.push({ index: from + at / RECORD_SIZE, point });
  }
  return found;
};
