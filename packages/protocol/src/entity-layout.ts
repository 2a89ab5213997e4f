/**
 * Where FPDUs with data stand in a buffer: entities, headers, and the places of the articles between them (§4.4.20, §4.5).
 *
 * Articles that fit together travel as one multi-article DTF (ID.SRC = N ≥ 2); one alone as a plain DTF (ID.SRC = 0, never 1);
 * one longer than the entity as DTFDA, DTFMA…, DTFFA. FPDUs that fit together share an entity: short DTFs, SYN, DTF.END; with
 * CRC each has its own.
 */
import { compressedBound } from './compression.js';
import { CRC_LENGTH, checksum } from './crc.js';
import { FPDU_HEADER_LENGTH, FPDUS } from './fpdus.js';
import { writeHeader } from './headers.js';

export interface EntityLayoutOptions {
  /** PI 25 as negotiated. */
  readonly entitySize: number;
  /** Bytes before each entity (`ENTITY_PREFIX_LENGTH`). */
  readonly prefix: number;
  readonly crc: boolean;
  /** Default true: articles that fit together share a DTF. */
  readonly multiArticle?: boolean;
  /** Default true: FPDUs that fit together share an entity. */
  readonly concatenation?: boolean;
  /** ID.DST: the peer's identifier. */
  readonly destination: number;
}

/** PI 32 has two bytes. */
export const MAX_ARTICLE = 65_535;
/** Articles in one DTF: ID.SRC is one byte. */
const MAX_ARTICLES_PER_DTF = 255;
/** A SYN with a point of three bytes. */
const SYN_LENGTH = FPDU_HEADER_LENGTH + 5;
/** DTF.END with PI 2; its place is always kept. */
const END_LENGTH = FPDU_HEADER_LENGTH + 5;

/** Bytes that a burst buffer needs to take any article: the longest one, cut into entities of `entitySize`. */
export const burstBufferSize = (entitySize: number, wanted: number): number => {
  const perEntity = entitySize - FPDU_HEADER_LENGTH - CRC_LENGTH;
  const longest = compressedBound(MAX_ARTICLE);
  const overhead = (Math.ceil(longest / perEntity) + 2) * (FPDU_HEADER_LENGTH + 2 + CRC_LENGTH + SYN_LENGTH);
  return Math.max(wanted, longest + overhead + 2 + END_LENGTH + CRC_LENGTH);
};

export class EntityLayout {
  /** Longest article that travels unsegmented. */
  readonly maxUnsegmentedArticle: number;
  readonly #options: EntityLayoutOptions;
  readonly #trailer: number;
  #buffer: Buffer = Buffer.alloc(0);
  #used = 0;
  #slots: Buffer[] = [];
  /** Where the FPDUs of the open entity begin, behind its prefix; -1 when none is open. */
  #entity = -1;
  /** Offset of the open multi-article DTF's header, and its articles; -1 when none is open. */
  #open = -1;
  #count = 0;

  constructor(options: EntityLayoutOptions) {
    this.#options = options;
    this.#trailer = options.crc ? CRC_LENGTH : 0;
    this.maxUnsegmentedArticle = options.entitySize - FPDU_HEADER_LENGTH - this.#trailer;
  }

  /** Places of the articles, in order: several for one that is segmented. */
  get slots(): readonly Buffer[] {
    return this.#slots;
  }

  get isEmpty(): boolean {
    return this.#used === 0;
  }

  begin(buffer: Buffer): void {
    this.#buffer = buffer;
    this.#used = 0;
    this.#slots = [];
    this.#entity = -1;
    this.#open = -1;
  }

  /** @returns false when the buffer is full */
  placeArticle(length: number): boolean {
    if (this.#open >= 0 && this.#fitsOpen(length)) {
      this.#append(length);
      return true;
    }
    if (this.room < this.roomFor(length)) return false;
    this.#closeDtf();
    if (length > this.maxUnsegmentedArticle) this.#placeSegments(length);
    else this.#placeFirst(length);
    return true;
  }

  /** Whether a SYN and an article of `length` bytes behind it find room. */
  takesPoint(length: number): boolean {
    return this.room >= this.#entityLength(SYN_LENGTH) + this.roomFor(length);
  }

  /** SYN, or DTF.END as the last, for which there is always room. */
  placeControl(fpdu: Buffer): void {
    this.#closeDtf();
    const at = this.#beginFpdu(fpdu.length);
    fpdu.copy(this.#buffer, at);
    this.#used = at + fpdu.length + this.#trailer;
  }

  /** @returns what is to be written, once the slots are filled: a view of the buffer */
  end(): Buffer {
    this.#closeDtf();
    this.#closeEntity();
    if (this.#trailer > 0) this.#writeChecksums();
    return this.#buffer.subarray(0, this.#used);
  }

  /** Room left in the buffer, beside DTF.END and the CRC that the open DTF still needs. */
  get room(): number {
    const kept = this.#entityLength(END_LENGTH) + (this.#open >= 0 ? this.#trailer : 0);
    return this.#buffer.length - this.#used - kept;
  }

  #entityLength(fpdu: number): number {
    return this.#options.prefix + fpdu + this.#trailer;
  }

  /** The most that an article of `length` can take in the buffer. */
  roomFor(length: number): number {
    const segments = Math.max(1, Math.ceil(length / this.maxUnsegmentedArticle));
    return length + 2 + segments * this.#entityLength(FPDU_HEADER_LENGTH);
  }

  #fitsOpen(length: number): boolean {
    return this.#count < MAX_ARTICLES_PER_DTF && this.#fitsEntity(2 + length) && this.room >= 2 + length;
  }

  /** Whether the open entity takes `length` bytes more. */
  #fitsEntity(length: number): boolean {
    return this.#used - this.#entity + length + this.#trailer <= this.#options.entitySize;
  }

  /** Opens a place for an FPDU of `length` bytes, in the open entity where it fits. @returns where it begins */
  #beginFpdu(length: number): number {
    const shares = this.#entity >= 0 && this.#trailer === 0 && this.#options.concatenation !== false;
    if (!shares || !this.#fitsEntity(length)) {
      this.#closeEntity();
      this.#used += this.#options.prefix;
      this.#entity = this.#used;
    }
    return this.#used;
  }

  #closeEntity(): void {
    const start = this.#entity;
    if (start < 0) return;
    this.#entity = -1;
    if (this.#options.prefix > 0) this.#buffer.writeUInt16BE(this.#used - start, start - this.#options.prefix);
  }

  #slot(length: number): void {
    this.#slots.push(this.#buffer.subarray(this.#used, this.#used + length));
    this.#used += length;
  }

  #append(length: number): void {
    this.#writeArticleLength(length);
    this.#slot(length);
    this.#count += 1;
  }

  #writeArticleLength(length: number): void {
    this.#buffer[this.#used] = length >>> 8;
    this.#buffer[this.#used + 1] = length & 0xff;
    this.#used += 2;
  }

  /** A first article leaves room for its length prefix only when a second one of its size would fit. */
  #placeFirst(length: number): void {
    const header = this.#beginFpdu(FPDU_HEADER_LENGTH + length);
    const hasRoomForTwo = this.#fitsEntity(FPDU_HEADER_LENGTH + 2 * (2 + length));
    this.#used += FPDU_HEADER_LENGTH;
    if (hasRoomForTwo && this.#options.multiArticle !== false) {
      this.#open = header;
      this.#count = 1;
      this.#writeArticleLength(length);
      this.#slot(length);
    } else {
      this.#slot(length);
      this.#seal(header, 'DTF', 0);
    }
  }

  #placeSegments(length: number): void {
    let left = length;
    while (left > 0) {
      const piece = Math.min(left, this.maxUnsegmentedArticle);
      const name = left === length ? 'DTFDA' : piece === left ? 'DTFFA' : 'DTFMA';
      const header = this.#beginFpdu(FPDU_HEADER_LENGTH + piece);
      this.#used += FPDU_HEADER_LENGTH;
      this.#slot(piece);
      this.#seal(header, name, 0);
      left -= piece;
    }
  }

  /** Writes the header of the FPDU that began at `header` and ends here, and leaves room for its CRC. */
  #seal(header: number, name: 'DTF' | 'DTFDA' | 'DTFMA' | 'DTFFA', source: number): void {
    const length = this.#used - header;
    writeHeader(this.#buffer, header, length, FPDUS[name].phase, FPDUS[name].type, this.#options.destination, source);
    this.#used += this.#trailer;
  }

  #closeDtf(): void {
    if (this.#open < 0) return;
    const header = this.#open;
    this.#open = -1;
    if (this.#count === 1) this.#dropPrefix(header);
    this.#seal(header, 'DTF', this.#count === 1 ? 0 : this.#count);
  }

  /** An article that stayed alone becomes a plain DTF: its slot, filled or not, moves two bytes forward. */
  #dropPrefix(header: number): void {
    const start = header + FPDU_HEADER_LENGTH;
    this.#buffer.copyWithin(start, start + 2, this.#used);
    this.#used -= 2;
    this.#slots[this.#slots.length - 1] = this.#buffer.subarray(start, this.#used);
  }

  /** The CRC covers the article bytes, so it is written when the slots are filled. */
  #writeChecksums(): void {
    let offset = 0;
    while (offset < this.#used) {
      const header = offset + this.#options.prefix;
      const end = header + this.#buffer.readUInt16BE(header);
      this.#buffer.writeUInt16BE(checksum([this.#buffer.subarray(header, end)]), end);
      offset = end + this.#trailer;
    }
  }
}
