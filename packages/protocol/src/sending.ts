/**
 * Articles to data FPDUs (§4.4.20, §4.4.22): lays out a burst of entities in one buffer, headers written and room left for
 * the article bytes, with sync points where the interval asks for them.
 *
 * One FPDU an entity. Articles that fit together travel as one multi-article DTF (ID.SRC = N ≥ 2); one alone as a plain
 * DTF (ID.SRC = 0, never 1); one longer than the entity as DTFDA, DTFMA…, DTFFA.
 */
import type { Burst, SyncPoint } from './articles.js';
import { encodeFpdu } from './codec.js';
import { compressedBound } from './compression.js';
import { checksum } from './crc.js';
import { FPDU_HEADER_LENGTH, FPDUS } from './fpdus.js';
import { MAX_SYNC_POINT, spacedInterval } from './spacing.js';
import { writeHeader } from './headers.js';

export interface ArticleSenderOptions {
  /** PI 25 as negotiated. */
  readonly entitySize: number;
  /** Bytes before each entity (`ENTITY_PREFIX_LENGTH`). */
  readonly prefix: number;
  readonly crc: boolean;
  /** Default true: articles that fit together share a DTF. */
  readonly multiArticle?: boolean;
  /** ID.DST: the peer's identifier. */
  readonly destination: number;
  /** Negotiated interval in bytes; 0 = no points. */
  readonly interval: number;
  /** Negotiated window; 0 = points are not acknowledged. */
  readonly window: number;
  /** Where the transfer starts: the restart point with its totals. */
  readonly from: SyncPoint;
}

/** Articles in one DTF: ID.SRC is one byte. */
const MAX_ARTICLES_PER_DTF = 255;
/** Points to which a receiver that acknowledges none may go back without starting over. */
const MAX_POINTS_KEPT = 1024;
const CRC_LENGTH = 2;
/** PI 32 has two bytes. */
const MAX_ARTICLE = 65_535;
/** A SYN with a point of three bytes. */
const SYN_LENGTH = FPDU_HEADER_LENGTH + 5;

/** Bytes that a burst buffer needs to take any article: the longest one, cut into entities of `entitySize`. */
export function burstBufferSize(entitySize: number, wanted: number): number {
  const perEntity = entitySize - FPDU_HEADER_LENGTH - CRC_LENGTH;
  const longest = compressedBound(MAX_ARTICLE);
  const overhead = (Math.ceil(longest / perEntity) + 2) * (FPDU_HEADER_LENGTH + 2 + CRC_LENGTH + SYN_LENGTH);
  return Math.max(wanted, longest + overhead);
}

export class ArticleSender implements Burst {
  dataBytes: number;
  articles: number;
  lastPoint: number;
  readonly maxUnsegmentedArticle: number;

  readonly #options: ArticleSenderOptions;
  readonly #trailer: number;
  #acknowledged: number;
  #sincePoint = 0;
  /** Bytes that may lie between the last point and the next. */
  #interval: number;
  /** The last point of a burst that was ended: what the receiver can know of. */
  sentPoint: number;
  /** Points placed and not yet acknowledged, oldest first; before them the last that was. With window 0 the last ones placed. */
  #points: SyncPoint[];
  #stale = false;

  #buffer: Buffer = Buffer.alloc(0);
  #used = 0;
  #slots: Buffer[] = [];
  /** Offset of the open multi-article DTF's header, and its articles; -1 when none is open. */
  #open = -1;
  #count = 0;

  constructor(options: ArticleSenderOptions) {
    this.#options = options;
    this.#trailer = options.crc ? CRC_LENGTH : 0;
    this.maxUnsegmentedArticle = options.entitySize - FPDU_HEADER_LENGTH - this.#trailer;
    this.dataBytes = options.from.dataBytes;
    this.articles = options.from.articles;
    this.lastPoint = options.from.number;
    this.#acknowledged = options.from.number;
    this.sentPoint = options.from.number;
    this.#interval = spacedInterval(options.interval, this.lastPoint);
    this.#points = [options.from];
  }

  get slots(): readonly Buffer[] {
    return this.#slots;
  }

  /** Points on the wire that the receiver has not acknowledged. */
  get unacknowledged(): number {
    return this.#options.window === 0 ? 0 : this.lastPoint - this.#acknowledged;
  }

  /**
   * True when the burst that was laid out begins with a point for which the window is not open yet: `end` and write it
   * after the next ACK(SYN). So the file is read while the receiver flushes.
   */
  get blocked(): boolean {
    return this.unacknowledged > this.#options.window;
  }

  /**
   * ACK(SYN): everything up to `number` is stored.
   * @returns the point; `known` when it says nothing new, or no acknowledgement was asked for (window 0); `undefined` when
   *   the point was never sent
   */
  acknowledge(number: number): SyncPoint | 'known' | undefined {
    if (number > this.sentPoint || number <= 0) return undefined;
    if (this.#options.window === 0 || number <= this.#acknowledged) return 'known';
    this.#acknowledged = number;
    this.#points.splice(
      0,
      this.#points.findIndex((point) => point.number === number),
    );
    return this.#points[0];
  }

  /** The last point that the receiver has acknowledged; with window 0 the last one sent. */
  get firmPoint(): SyncPoint {
    return (this.#options.window === 0 ? this.pointOf(this.sentPoint) : this.#points[0]) as SyncPoint;
  }

  /** A point to which both sides can go back (§3.6.3 p): the last acknowledged, or a later one. */
  pointOf(number: number): SyncPoint | undefined {
    return number > this.sentPoint ? undefined : this.#points.find((point) => point.number === number);
  }

  /** True when the open burst was overtaken by `goBack`. */
  get stale(): boolean {
    return this.#stale;
  }

  /** RESYN: sends again from `point`, which counts as acknowledged. An open burst is void. */
  goBack(point: SyncPoint): void {
    this.dataBytes = point.dataBytes;
    this.articles = point.articles;
    this.lastPoint = point.number;
    this.#acknowledged = point.number;
    this.#points = [point];
    this.#sincePoint = 0;
    this.#interval = spacedInterval(this.#options.interval, this.lastPoint);
    this.sentPoint = point.number;
    this.#stale = true;
  }

  /** Starts a burst in `buffer`, of at least `burstBufferSize` bytes. */
  begin(buffer: Buffer): void {
    this.#buffer = buffer;
    this.#used = 0;
    this.#slots = [];
    this.#open = -1;
    this.#stale = false;
  }

  reserve(length: number): boolean {
    checkLength(length);
    if (this.#stale) return false;
    if (this.#pointDue(length) && !this.#pass(length)) return false;
    return this.place(length);
  }

  /**
   * For a burst that compresses: places the point before its first article, when the article may not fit before it or little
   * is left of the interval.
   * @param bound the most that the article becomes
   * @returns false when the window is closed
   */
  passPoint(length: number, bound: number): boolean {
    checkLength(length);
    const interval = this.#interval;
    const nearlyDue = this.#pointDue(bound) || this.#pointDue(Math.ceil(interval / 8));
    return !nearlyDue || this.#pass(bound);
  }

  /** Bytes that may be sent before a point is due; Infinity when none is. */
  get beforePoint(): number {
    const interval = this.#interval;
    return interval === 0 || this.lastPoint >= MAX_SYNC_POINT ? Infinity : interval - this.#sincePoint;
  }

  /** Takes an article of `length` bytes on the wire, without regard to points. @returns false when the burst is full */
  place(length: number): boolean {
    if (this.#open >= 0 && this.#fitsOpen(length)) {
      this.#append(length);
    } else {
      if (this.room < this.roomFor(length)) return false;
      this.#close();
      if (length > this.maxUnsegmentedArticle) this.#placeSegments(length);
      else this.#placeFirst(length);
    }
    this.dataBytes += length;
    this.articles += 1;
    this.#sincePoint += length;
    return true;
  }

  /** Ends the burst. @returns the bytes to write, a view of the buffer given to `begin`; empty when nothing was reserved */
  end(): Buffer {
    if (this.#stale) return Buffer.alloc(0);
    this.sentPoint = this.lastPoint;
    this.#close();
    if (this.#trailer > 0) this.#writeChecksums();
    return this.#buffer.subarray(0, this.#used);
  }

  #pointDue(length: number): boolean {
    const interval = this.#interval;
    return (
      interval > 0 && this.#sincePoint > 0 && this.#sincePoint + length > interval && this.lastPoint < MAX_SYNC_POINT
    );
  }

  /** A burst may begin with one point more than the window allows: it waits, laid out (`blocked`). */
  #windowFull(): boolean {
    const { window } = this.#options;
    return window > 0 && this.unacknowledged >= (this.#used === 0 ? window + 1 : window);
  }

  /** Places the point that is due before an article of `length` bytes. @returns false when it must wait */
  #pass(length: number): boolean {
    if (this.#windowFull()) return false;
    if (this.room < this.#entityLength(SYN_LENGTH) + this.roomFor(length)) return false;
    this.#placePoint();
    return true;
  }

  /** What is left in the buffer, beside the CRC that the open DTF still needs. */
  get room(): number {
    return this.#buffer.length - this.#used - (this.#open >= 0 ? this.#trailer : 0);
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
    const start = this.#open;
    const size = this.#used - start;
    return (
      this.#count < MAX_ARTICLES_PER_DTF &&
      size + 2 + length + this.#trailer <= this.#options.entitySize &&
      this.room >= 2 + length
    );
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
    this.#used += this.#options.prefix;
    const header = this.#used;
    this.#used += FPDU_HEADER_LENGTH;
    const hasRoomForTwo = FPDU_HEADER_LENGTH + 2 * (2 + length) + this.#trailer <= this.#options.entitySize;
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
      this.#used += this.#options.prefix;
      const header = this.#used;
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
    this.#writePrefix(header, length + this.#trailer);
  }

  #writePrefix(header: number, length: number): void {
    if (this.#options.prefix === 0) return;
    this.#buffer[header - 2] = length >>> 8;
    this.#buffer[header - 1] = length & 0xff;
  }

  #close(): void {
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

  #placePoint(): void {
    this.#close();
    this.lastPoint += 1;
    this.#sincePoint = 0;
    this.#interval = spacedInterval(this.#options.interval, this.lastPoint);
    this.#points.push({ number: this.lastPoint, dataBytes: this.dataBytes, articles: this.articles });
    if (this.#options.window === 0 && this.#points.length > MAX_POINTS_KEPT) this.#points.shift();
    const header = this.#used + this.#options.prefix;
    const syn = encodeFpdu('SYN', this.#options.destination, 0, { syncPoint: this.lastPoint });
    this.#used = header + syn.copy(this.#buffer, header) + this.#trailer;
    this.#writePrefix(header, syn.length + this.#trailer);
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

function checkLength(length: number): void {
  if (length <= 0) throw new RangeError('there is no empty DTF (§4.4.20): an empty record is sent as one blank');
  if (length > MAX_ARTICLE) throw new RangeError(`an article has at most ${MAX_ARTICLE} bytes (PI 32), not ${length}`);
}
