import { codePageTables, translate } from '@pesit-node/protocol';
import type { Burst, CodePage } from '@pesit-node/protocol';
import { StorageError } from './errors.js';
import type { StoredPoint } from './group-commit.js';
import { Recount } from './pacing.js';
import type { Pacing } from './pacing.js';
import type { SourceReader } from './source-reader.js';

const BLANK = 0x20;
const EBCDIC_BLANK = 0x40;
const CR = 0x0d;
const LF = 0x0a;
const BLOCK = 256 * 1024;

/**
 * TV, TF: one article a line, LF or CRLF removed, an empty TV line one blank, a TF line padded with blanks
 * (pesit-e.md §6). Memory: one block and one record, whatever the file holds.
 */
export class LineCutter {
  readonly #source: SourceReader;
  readonly #recordLength: number;
  readonly #padded: boolean;
  readonly #toEbcdic: Buffer | undefined;
  readonly #buffer: Buffer;
  readonly #readSize: number;
  /** Data read and not cut yet: `#data` from `#start` on; it ends where `#readUpTo` is in the file. */
  #data: Buffer = Buffer.alloc(0);
  #start = 0;
  #readUpTo = 0;
  #line = 1;

  /**
   * @param codePage articles are translated to it after cutting (PI 16); undefined: they stay as they are
   * @param readSize most bytes of one read
   */
  constructor(source: SourceReader, recordLength: number, padded: boolean, codePage?: CodePage, readSize = BLOCK) {
    this.#readSize = readSize;
    this.#source = source;
    this.#recordLength = recordLength;
    this.#padded = padded;
    this.#toEbcdic = codePage === undefined ? undefined : codePageTables(codePage).fromLatin1;
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(BLOCK, readSize, source.size) + recordLength + 1);
  }

  async fill(burst: Burst): Promise<boolean> {
    const { size, points } = this.#source;
    let slot = 0;
    let point = burst.lastPoint;
    for (;;) {
      const atEnd = this.#readUpTo === size;
      if (atEnd && this.#start === this.#data.length) return false;
      const data = this.#data;
      const start = this.#start;
      const lineEnd = data.indexOf(LF, start);
      if (lineEnd === -1 && !atEnd) {
        this.#refuseUnending();
        await this.#refill();
        continue;
      }
      const next = lineEnd === -1 ? data.length : lineEnd + 1;
      const end = lineEnd === -1 ? data.length : lineEnd > start && data[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd;
      const length = end - start;
      if (length > this.#recordLength) throw this.#tooLong(length);
      const reserved = burst.reserve(this.#padded ? this.#recordLength : Math.max(length, 1));
      if (burst.lastPoint !== point) {
        point = burst.lastPoint;
        points.set(point, this.#readUpTo - data.length + start);
      }
      if (!reserved) return true;
      slot = place(data, start, end, burst.slots, slot, this.#toEbcdic);
      this.#start = next;
      this.#line += 1;
    }
  }

  /** Cuts the lines before the point once more, by the very code that cut them then; they are hashed on the way. */
  async startAt(number: number, attempts: readonly Pacing[], signal?: AbortSignal): Promise<StoredPoint | undefined> {
    const recount = new Recount(number, attempts, signal);
    if (!(await this.fill(recount))) return undefined;
    const { dataBytes, articles } = recount;
    return { number, dataBytes, articles, fileOffset: this.#readUpTo - this.#data.length + this.#start };
  }

  /** @param articles lines before it */
  goTo(fileOffset: number, articles: number): void {
    this.#data = Buffer.alloc(0);
    this.#start = 0;
    this.#readUpTo = fileOffset;
    this.#line = articles + 1;
  }

  async #refill(): Promise<void> {
    const { file, size, hash } = this.#source;
    const kept = this.#data.length - this.#start;
    if (kept > 0) this.#buffer.copyWithin(0, this.#start, this.#data.length);
    const room = this.#buffer.subarray(
      kept,
      Math.min(this.#buffer.length, kept + Math.min(this.#readSize, size - this.#readUpTo)),
    );
    const read = await file.readv([room], this.#readUpTo);
    if (read === 0) throw this.#source.changed(`${size} bytes expected, ${this.#readUpTo} found`);
    hash?.update(room.subarray(0, read));
    this.#data = this.#buffer.subarray(0, kept + read);
    this.#start = 0;
    this.#readUpTo += read;
  }

  /** A line without an end so far: what is there is already too much, unless its last byte is the CR of a CRLF. */
  #refuseUnending(): void {
    const length = this.#data.length - this.#start;
    if (length <= this.#recordLength) return;
    if (length === this.#recordLength + 1 && this.#data[this.#data.length - 1] === CR) return;
    throw this.#tooLong(length);
  }

  #tooLong(length: number): StorageError {
    return new StorageError(
      `line ${this.#line} of ${this.#source.path} has ${length} bytes or more, the record length is ${this.#recordLength}: raise recordLength, or send it as binary`,
      {
        fault: 'local',
        diagnostic: '2-220',
        peerText: `line ${this.#line} is longer than the record length ${this.#recordLength}`,
        expected: `<= ${this.#recordLength}`,
        got: String(length),
      },
    );
  }
}

/**
 * Copies a line into its places, from `slots[index]` on, and blanks what it does not fill; with `toEbcdic` both as EBCDIC.
 * @returns the next index
 */
const place = (
  data: Buffer,
  start: number,
  end: number,
  slots: readonly Buffer[],
  index: number,
  toEbcdic: Buffer | undefined,
): number => {
  let from = start;
  for (; index < slots.length; index++) {
    const slot = slots[index];
    if (slot === undefined) break;
    const copied = data.copy(slot, 0, from, Math.min(end, from + slot.length));
    if (toEbcdic !== undefined) translate(slot.subarray(0, copied), toEbcdic);
    if (copied < slot.length) slot.fill(toEbcdic === undefined ? BLANK : EBCDIC_BLANK, copied);
    from += copied;
  }
  return index;
};
