/**
 * Articles to data FPDUs (§4.4.20, §4.4.22): a burst of them laid out in one buffer, with sync points where the interval asks for
 * them and the window allows it; and which points the receiver has acknowledged.
 */
import type { Burst, SyncPoint } from './articles.js';
import { encodeFpdu } from './encoding.js';
import { SUCCESS } from './diagnostics.js';
import { EntityLayout, MAX_ARTICLE } from './entity-layout.js';
import type { EntityLayoutOptions } from './entity-layout.js';
import { MAX_SYNC_POINT, spacedInterval } from './spacing.js';

export interface ArticleSenderOptions extends EntityLayoutOptions {
  /** Negotiated interval in bytes; 0 = no points. */
  readonly interval: number;
  /** Negotiated window; 0 = points are not acknowledged. */
  readonly window: number;
  /** Where the transfer starts: the restart point with its totals. */
  readonly from: SyncPoint;
}

/** Points to which a receiver that acknowledges none may go back without starting over. */
const MAX_POINTS_KEPT = 1024;
export class ArticleSender implements Burst {
  dataBytes: number;
  articles: number;
  lastPoint: number;
  readonly maxUnsegmentedArticle: number;

  readonly #options: ArticleSenderOptions;
  readonly #layout: EntityLayout;
  #acknowledged: number;
  #sincePoint = 0;
  /** Bytes that may lie between the last point and the next. */
  #interval: number;
  /** The last point of a burst that was ended: what the receiver can know of. */
  sentPoint: number;
  /** Points placed and not yet acknowledged, oldest first; before them the last that was. With window 0 the last ones placed. */
  #points: SyncPoint[];
  #stale = false;
  /** The point at which the window was at its bound as the burst was begun; -1 when it was not. */
  #waitsBehind = -1;

  constructor(options: ArticleSenderOptions) {
    this.#options = options;
    this.#layout = new EntityLayout(options);
    this.maxUnsegmentedArticle = this.#layout.maxUnsegmentedArticle;
    this.dataBytes = options.from.dataBytes;
    this.articles = options.from.articles;
    this.lastPoint = options.from.number;
    this.#acknowledged = options.from.number;
    this.sentPoint = options.from.number;
    this.#interval = spacedInterval(options.interval, this.lastPoint);
    this.#points = [options.from];
  }

  get slots(): readonly Buffer[] {
    return this.#layout.slots;
  }

  /** Points on the wire that the receiver has not acknowledged. */
  get unacknowledged(): number {
    return this.#options.window === 0 ? 0 : this.lastPoint - this.#acknowledged;
  }

  /**
   * True when the window was at its bound as the burst was begun, and still is: `end` and write it after the next ACK(SYN). So
   * the file is read while the receiver flushes.
   */
  get blocked(): boolean {
    return this.#options.window > 0 && this.#waitsBehind - this.#acknowledged >= this.#options.window;
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
    this.#waitsBehind = -1;
    this.#stale = true;
  }

  /** Starts a burst in `buffer`, of at least `burstBufferSize` bytes. */
  begin(buffer: Buffer): void {
    this.#layout.begin(buffer);
    this.#waitsBehind = -1;
    this.#stale = false;
  }

  reserve(length: number): boolean {
    checkLength(length);
    if (this.#stale) return false;
    if (this.#pointDue(length) && !this.#pass(length)) return false;
    return this.#opens() && this.place(length);
  }

  /**
   * For a burst that compresses: places the point before its first article, when the article may not fit before it or little
   * is left of the interval.
   * @param bound the most that the article becomes
   * @returns false when the article has to wait for the window: the point goes alone
   */
  passPoint(length: number, bound: number): boolean {
    checkLength(length);
    const interval = this.#interval;
    const nearlyDue = this.#pointDue(bound) || this.#pointDue(Math.ceil(interval / 8));
    return (!nearlyDue || this.#pass(bound)) && this.#opens();
  }

  /** Bytes that may be sent before a point is due; Infinity when none is. */
  get beforePoint(): number {
    const interval = this.#interval;
    return interval === 0 || this.lastPoint >= MAX_SYNC_POINT ? Infinity : interval - this.#sincePoint;
  }

  /** Takes an article of `length` bytes on the wire, without regard to points. @returns false when the burst is full */
  place(length: number): boolean {
    if (!this.#layout.placeArticle(length)) return false;
    this.dataBytes += length;
    this.articles += 1;
    this.#sincePoint += length;
    return true;
  }

  /**
   * Ends the burst.
   * @param last DTF.END follows the last article
   * @returns the bytes to write, a view of the buffer given to `begin`; empty when nothing was reserved
   */
  end(last = false): Buffer {
    if (this.#stale) return Buffer.alloc(0);
    this.sentPoint = this.lastPoint;
    if (last) this.#layout.placeControl(encodeFpdu('DTF.END', this.#options.destination, 0, { diagnostic: SUCCESS }));
    return this.#layout.end();
  }

  #pointDue(length: number): boolean {
    const interval = this.#interval;
    return (
      interval > 0 && this.#sincePoint > 0 && this.#sincePoint + length > interval && this.lastPoint < MAX_SYNC_POINT
    );
  }

  /**
   * At its bound the window suspends the data, not the point that has reached it (§3.7 f). A burst may begin there and wait, laid
   * out (`blocked`), up to and with the next point; none continues behind it.
   */
  #opens(): boolean {
    const { window } = this.#options;
    if (window === 0 || this.unacknowledged < window || this.#waitsBehind === this.lastPoint) return true;
    if (!this.#layout.isEmpty) return false;
    this.#waitsBehind = this.lastPoint;
    return true;
  }

  /** Places the point that is due before an article of `length` bytes. @returns false when the buffer is full */
  #pass(length: number): boolean {
    if (!this.#layout.takesPoint(length)) return false;
    this.#placePoint();
    return true;
  }

  /** Bytes of the buffer that are left for articles, and the most that one takes of them. */
  get room(): number {
    return this.#layout.room;
  }

  roomFor(length: number): number {
    return this.#layout.roomFor(length);
  }

  #placePoint(): void {
    this.lastPoint += 1;
    this.#sincePoint = 0;
    this.#interval = spacedInterval(this.#options.interval, this.lastPoint);
    this.#points.push({ number: this.lastPoint, dataBytes: this.dataBytes, articles: this.articles });
    if (this.#options.window === 0 && this.#points.length > MAX_POINTS_KEPT) this.#points.shift();
    this.#layout.placeControl(encodeFpdu('SYN', this.#options.destination, 0, { syncPoint: this.lastPoint }));
  }
}

const checkLength = (length: number): void => {
  if (length <= 0) throw new RangeError('there is no empty DTF (§4.4.20): an empty record is sent as one blank');
  if (length > MAX_ARTICLE) throw new RangeError(`an article has at most ${MAX_ARTICLE} bytes (PI 32), not ${length}`);
};
