/**
 * The data of a file: bursts of articles out, batches of articles in, sync points and their acknowledgements, and what is counted
 * of them. It knows no states and sends nothing by itself: `session.ts` asks it, and says to the peer what follows.
 */
import { START } from './articles.js';
import type { Burst, SyncPoint } from './articles.js';
import { CompressingBurst } from './compressing.js';
import type { CompressionMode } from './compression.js';
import { checkCounts } from './counts.js';
import { PesitError } from './errors.js';
import type { FpduName } from './fpdus.js';
import type { Parameters } from './parameters.js';
import { ReceivedPoints } from './received-points.js';
import { ArticleReceiver } from './receiving.js';
import type { SingleArticleStyle } from './receiving.js';
import { Resynchronisation } from './resynchronisation.js';
import { ArticleSender } from './sending.js';
import type { ArticleSenderOptions } from './sending.js';

/** Article bytes after which a batch goes out before more is taken apart. */
const MAX_BATCH = 512 * 1024;

/** Whether several articles go in one DTF, and several FPDUs of data in one entity. */
export interface ArticleLayout {
  readonly multiArticle: boolean;
  readonly concatenation: boolean;
}

export class DataTransfer {
  layout: ArticleLayout;
  /** Compression agreed on in PI 21 for the open file; 0 none. */
  compression: CompressionMode | 0 = 0;
  /** ACK(TRANS.END) was sent for the open file. */
  ended = false;
  /** Articles of the peer. */
  readonly receiver: ArticleReceiver;
  /** Going back to a point, by either side. */
  readonly resynchronisation: Resynchronisation;

  /** Sync points of the peer. */
  readonly #points = new ReceivedPoints();
  /** Present while the data are ours. */
  #sender: ArticleSender | undefined;
  #compressing: CompressingBurst | undefined;
  /** Whether a burst is filled, and whether DTF.END goes with it. */
  #burst: 'none' | 'open' | 'last' = 'none';
  /** Where this attempt started, with its totals: TRANS.END may count from here. */
  #startPoint: SyncPoint = START;

  constructor(style: SingleArticleStyle, layout: ArticleLayout) {
    this.layout = layout;
    this.receiver = new ArticleReceiver(style);
    this.resynchronisation = new Resynchronisation(this.#points);
  }

  /** A file was selected: what is counted from here on is its own. */
  select(): void {
    this.#sender = undefined;
    this.ended = false;
    this.#points.start(START);
    this.compression = 0;
    this.receiver.start(0xffff, 0, 0);
    this.resynchronisation.start(undefined);
  }

  /** @param recordLength PI 32: a longer article is refused */
  startReceiving(from: SyncPoint, recordLength: number): void {
    this.#startPoint = from;
    this.ended = false;
    this.#sender = undefined;
    this.#points.start(from);
    this.receiver.start(recordLength, from.dataBytes, from.articles, this.compression);
    this.resynchronisation.start(undefined);
  }

  startSending(options: Omit<ArticleSenderOptions, keyof ArticleLayout>): void {
    this.#startPoint = options.from;
    this.ended = false;
    this.#sender = new ArticleSender({ ...options, ...this.layout });
    this.#burst = 'none';
    this.#compress(this.#sender);
    this.resynchronisation.start(this.#sender);
  }

  /** The transfer stands at `point` again. */
  goBack(point: SyncPoint): void {
    if (point.number < this.#startPoint.number) this.#startPoint = point;
    if (this.#sender === undefined) {
      this.receiver.goBack(point.dataBytes, point.articles);
      this.#points.start(point);
    } else {
      this.#sender.goBack(point);
      this.#compress(this.#sender);
    }
  }

  /** Articles and bytes of the transfer so far, as PI 27 and PI 28 count them. */
  get totals(): { readonly dataBytes: number; readonly articles: number } {
    const { dataBytes, articles } = this.#sender ?? this.receiver;
    return { dataBytes, articles };
  }

  /** @throws PesitError 3-319 see `checkCounts` */
  checkCounts(
    name: FpduName,
    parameters: Parameters,
    articlesMayDiffer: boolean,
    notice: (text: string) => void,
  ): void {
    checkCounts(name, parameters, { ours: this.totals, start: this.#startPoint, articlesMayDiffer }, notice);
  }

  /** Whether this side sends the data, and has begun to. */
  get isOurs(): boolean {
    return this.#sender !== undefined;
  }

  /** True when the burst that is filled begins where the window is full. */
  get windowFull(): boolean {
    return this.#sender?.blocked === true;
  }

  /** True when `goBack` has overtaken the burst that is filled. */
  get burstIsVoid(): boolean {
    return this.#sender?.stale === true;
  }

  /** True while a burst is filled that will be written. */
  get isFilling(): boolean {
    return this.#burst !== 'none' && !this.burstIsVoid;
  }

  /** True when DTF.END goes with the burst that is filled. */
  get endsWithBurst(): boolean {
    return this.#burst === 'last';
  }

  /** Starts a burst in `buffer`; undefined while the data are not ours. */
  beginBurst(buffer: Buffer): Burst | undefined {
    if (this.#sender === undefined) return undefined;
    const burst = this.#compressing ?? this.#sender;
    burst.begin(buffer);
    this.#burst = 'open';
    return burst;
  }

  /** DTF.END goes behind the articles of the burst that is filled. */
  endWithBurst(): void {
    this.#burst = 'last';
  }

  /** @returns the bytes of the burst; empty when it `goes` no more, as the transfer was interrupted in between */
  endBurst(goes: boolean): Buffer {
    const last = this.endsWithBurst;
    this.#burst = 'none';
    if (this.#sender === undefined || !goes) return Buffer.alloc(0);
    return (this.#compressing ?? this.#sender).end(last);
  }

  /** ACK(SYN) of the peer. @returns see `ArticleSender.acknowledge` */
  acknowledged(number: number): SyncPoint | 'known' | undefined {
    return this.#sender?.acknowledge(number);
  }

  /** The last point that was sent; 0 when none was. */
  get sentPoint(): number {
    return this.#sender?.sentPoint ?? 0;
  }

  /**
   * SYN of the peer.
   * @param window points that the peer may place without an acknowledgement; 0 any number
   * @throws PesitError 3-311 inside an article; see `ReceivedPoints.receive`
   */
  receivePoint(number: number, window: number): SyncPoint {
    this.expectNoArticle('SYN');
    this.#points.receive(number, window);
    this.receiver.passPoint();
    const point = { number, dataBytes: this.receiver.dataBytes, articles: this.receiver.articles };
    this.#points.keep(point);
    return point;
  }

  /** @throws PesitError 3-311 when `name` comes inside an article */
  expectNoArticle(name: FpduName): void {
    if (this.receiver.insideArticle) throw unexpected(name, 'DTFFA, as an article is open');
  }

  /** Whether so many articles have come that they have to go out before more is taken apart. */
  get batchIsFull(): boolean {
    return this.receiver.bytes >= MAX_BATCH;
  }

  /** Everything up to `number` is on stable storage. @returns false for a point of an earlier transfer */
  store(number: number): boolean {
    return this.#points.store(number);
  }

  /** @returns false when an acknowledgement of `number` says nothing new to the peer */
  acknowledge(number: number): boolean {
    return this.#points.acknowledge(number);
  }

  #compress(sender: ArticleSender): void {
    this.#compressing = this.compression === 0 ? undefined : new CompressingBurst(sender, this.compression);
  }
}

/** Data or a point that cannot come here. */
export const unexpected = (got: string, expected: string): PesitError =>
  new PesitError(`expected ${expected}, got ${got}`, { fault: 'remote', diagnostic: '3-311', expected, got });
