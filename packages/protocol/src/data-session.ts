/**
 * The data of a file in a session: bursts of articles out, batches of articles in, sync points and their acknowledgements, and
 * what is counted of them. `session.ts` adds what interrupts them and what goes back.
 */
import { START } from './articles.js';
import type { Burst, SyncPoint } from './articles.js';
import { transitionOf } from './automaton.js';
import { CompressingBurst } from './compressing.js';
import type { CompressionMode } from './compression.js';
import { checkCounts } from './counts.js';
import { SUCCESS } from './diagnostics.js';
import { PesitError } from './errors.js';
import type { FpduName } from './fpdus.js';
import { ENTITY_PREFIX_LENGTH } from './framing.js';
import type { RawFpdu } from './framing.js';
import type { ConnectionTerms, FileTerms } from './negotiation.js';
import type { Parameters } from './parameters.js';
import { ReceivedPoints } from './received-points.js';
import { ArticleReceiver } from './receiving.js';
import { ArticleSender } from './sending.js';
import { SessionCore } from './session-core.js';
import type { SessionOptions } from './session-events.js';
import type { Role } from './states.js';

/** Article bytes after which a batch goes out before more is taken apart. */
const MAX_BATCH = 512 * 1024;

export abstract class DataSession extends SessionCore {
  /** Terms of the connection; undefined before it is established. */
  terms: ConnectionTerms | undefined;

  protected readonly receiver: ArticleReceiver;
  protected sender: ArticleSender | undefined;
  /** Compression agreed on in PI 21 for the open file; 0 none. */
  protected agreedCompression: CompressionMode | 0 = 0;
  /** Direction of the selected file. */
  protected direction: 'writing' | 'reading' | undefined;
  /** Where this attempt started, with its totals: TRANS.END may count from here. */
  protected startPoint: SyncPoint = START;
  /** Window that the peer may use towards us; a server may answer more than was asked and then use it. */
  protected receiveWindow = 0;
  /** ACK(TRANS.END) was sent for the open file. */
  protected transferEnded = false;
  /** Whether several articles go in one DTF, and several FPDUs of data in one entity. */
  protected layout: { readonly multiArticle: boolean; readonly concatenation: boolean };
  /** Whether the peer waits for ACK(SYN). */
  protected acknowledges = false;
  /** The sync points of the peer. */
  protected readonly points = new ReceivedPoints();

  #compressing: CompressingBurst | undefined;
  /** Whether a burst is filled, and whether DTF.END goes with it. */
  #burst: 'none' | 'open' | 'last' = 'none';
  /** A notice about something that a peer does with every FPDU of a kind is given once. */
  readonly #noted = new Set<'large entity' | 'unwanted ACK(SYN)'>();

  protected constructor(role: Role, options: SessionOptions, crc: boolean | undefined) {
    super(role, options, crc);
    this.receiver = new ArticleReceiver(options.singleArticle ?? 'unknown');
    this.layout = { multiArticle: options.multiArticle ?? true, concatenation: options.concatenation ?? true };
  }

  /** The articles and bytes of the transfer so far, as PI 27 and PI 28 count them. */
  get totals(): { readonly dataBytes: number; readonly articles: number } {
    const { dataBytes, articles } = this.sender ?? this.receiver;
    return { dataBytes, articles };
  }

  /** Compression of the open file: 1 horizontal, 2 vertical, 3 both, 0 none. `totals` count compressed bytes. */
  get compression(): CompressionMode | 0 {
    return this.agreedCompression;
  }

  /** PI 25 as negotiated for the selected file; 0 before the first. */
  abstract get entitySize(): number;

  /** Terms of the file that is selected, or was last; undefined before the first. */
  get fileTerms(): FileTerms | undefined {
    if (this.entitySize === 0) return undefined;
    return { maxEntitySize: this.entitySize, compression: this.agreedCompression };
  }

  /** True while article data may be sent: not ended, not interrupted. */
  get sending(): boolean {
    return this.phase === 'open' && this.situation.data === 'sends';
  }

  /** True when the burst that is filled begins where the window is full: `endBurst` after the next ACK(SYN) event. */
  get windowFull(): boolean {
    return this.sender?.blocked === true;
  }

  /** Starts a burst in `buffer` (at least `burstBufferSize` bytes). Only while `sending`. */
  beginBurst(buffer: Buffer): Burst {
    if (this.sender === undefined || !this.sending) throw new Error(`no data may be sent (${this.describeState()})`);
    const burst = this.#compressing ?? this.sender;
    burst.begin(buffer);
    this.#burst = 'open';
    return burst;
  }

  /** True when a resynchronisation has overtaken the burst that is filled: `endBurst` gives nothing, begin another. */
  get burstIsVoid(): boolean {
    return this.sender?.stale === true;
  }

  /** @returns the bytes of the burst to write; empty when the transfer was interrupted in between */
  endBurst(): Buffer {
    const last = this.#burst === 'last';
    this.#burst = 'none';
    const goes = last ? this.situation.data === 'ended' : this.sending;
    if (this.sender === undefined || !goes) return Buffer.alloc(0);
    return (this.#compressing ?? this.sender).end(last);
  }

  /** DTF.END: all data are sent (§4.4.21). Between `beginBurst` and `endBurst` it goes behind the articles of the burst. */
  endData(): void {
    if (this.#burst === 'none' || this.burstIsVoid) {
      this.send('DTF.END', { diagnostic: SUCCESS });
    } else {
      this.sends('DTF.END');
      this.#burst = 'last';
    }
  }

  /**
   * ACK(SYN): everything up to `number` is on stable storage. Late calls, when the transfer has ended or was interrupted
   * meanwhile, do nothing: ACK(TRANS.END) says the same of the whole file.
   */
  acknowledgeSyn(number: number): void {
    if (this.phase !== 'open') return;
    if (!this.points.store(number) || !this.acknowledges) return;
    if (transitionOf(this.role, this.state, '>ACK(SYN)') === undefined || !this.points.acknowledge(number)) return;
    this.send('ACK(SYN)', { syncPoint: number });
  }

  /** A file was selected, or its transfer begins; `sender` is there when the data are ours. */
  protected abstract transferBegins(): void;

  protected override get waitsForWindow(): boolean {
    return this.windowFull;
  }

  protected override get batchIsFull(): boolean {
    return this.receiver.bytes >= MAX_BATCH;
  }

  protected override flush(): void {
    const batch = this.receiver.take();
    if (batch !== undefined) this.emit({ kind: 'ARTICLES', batch });
  }

  protected override discard(): void {
    this.receiver.discard();
  }

  /** One data FPDU. @throws PesitError see `ArticleReceiver.receive` */
  protected receiveData(raw: RawFpdu): void {
    if (this.reader.entityLength > this.entitySize) this.#noteLargeEntity();
    this.receiver.receive(raw);
  }

  protected receiveSyn(number: number): void {
    if ((this.terms?.syncInterval ?? 0) === 0) throw unexpected('SYN', 'no sync points, as PI 7 says');
    if (this.receiver.insideArticle) throw unexpected('SYN', 'DTFFA, as an article is open');
    this.points.receive(number, this.receiveWindow);
    this.receiver.passPoint();
    const point = { number, dataBytes: this.receiver.dataBytes, articles: this.receiver.articles };
    this.points.keep(point);
    this.emit({ kind: 'SYN', point });
  }

  protected receiveAckSyn(number: number): void {
    const point = this.sender?.acknowledge(number);
    if (point === undefined) throw unexpected(`ACK(SYN) ${number}`, `at most ACK(SYN) ${this.sender?.sentPoint ?? 0}`);
    if (point !== 'known') this.emit({ kind: 'ACK(SYN)', point });
    else if (this.terms?.syncWindow === 0)
      this.#noticeOnce('unwanted ACK(SYN)', 'ACK(SYN): not asked for, as the window is 0 (PI 7): passed over');
    else this.notice(`ACK(SYN) ${number}: nothing waits for it`);
  }

  /** The transfer stands at `point` again. */
  protected goBack(point: SyncPoint): void {
    if (point.number < this.startPoint.number) this.startPoint = point;
    if (this.sender === undefined) {
      this.receiver.goBack(point.dataBytes, point.articles);
      this.points.start(point);
    } else {
      this.sender.goBack(point);
      this.#compress(this.sender);
    }
  }

  /** A file was selected: what is counted from here on is its own. */
  protected forgetTotals(): void {
    this.sender = undefined;
    this.transferEnded = false;
    this.points.start(START);
    this.agreedCompression = 0;
    this.receiver.start(0xffff, 0, 0);
    this.transferBegins();
  }

  protected startReceiving(from: SyncPoint, recordLength: number): void {
    this.startPoint = from;
    this.transferEnded = false;
    this.sender = undefined;
    this.points.start(from);
    this.receiver.start(recordLength, from.dataBytes, from.articles, this.agreedCompression);
    this.transferBegins();
  }

  protected startSender(from: SyncPoint, entitySize: number): void {
    this.startPoint = from;
    this.transferEnded = false;
    this.sender = new ArticleSender({
      entitySize,
      prefix: ENTITY_PREFIX_LENGTH[this.options.dialect],
      crc: this.reader.crc,
      ...this.layout,
      destination: this.peerId,
      interval: this.terms?.syncInterval ?? 0,
      window: this.terms?.syncWindow ?? 0,
      from,
    });
    this.#burst = 'none';
    this.#compress(this.sender);
    this.transferBegins();
  }

  /** @throws PesitError 3-319 see `checkCounts` */
  protected checkCounts(name: FpduName, parameters: Parameters, articlesMayDiffer: boolean): void {
    const counts = { ours: this.totals, start: this.startPoint, articlesMayDiffer };
    checkCounts(name, parameters, counts, (text) => {
      this.notice(text);
    });
  }

  /** Some peers do not keep to the PI 25 that was answered (pesit-e.md §3): said once. */
  #noteLargeEntity(): void {
    this.#noticeOnce(
      'large entity',
      `data in an entity of ${this.reader.entityLength} bytes, PI 25 allows ${this.entitySize}: taken`,
    );
  }

  #noticeOnce(habit: 'large entity' | 'unwanted ACK(SYN)', text: string): void {
    if (this.#noted.has(habit)) return;
    this.#noted.add(habit);
    this.notice(text);
  }

  #compress(sender: ArticleSender): void {
    const mode = this.agreedCompression;
    this.#compressing = mode === 0 ? undefined : new CompressingBurst(sender, mode);
  }
}

/** Data or a point that cannot come here. */
export const unexpected = (got: string, expected: string): PesitError =>
  new PesitError(`expected ${expected}, got ${got}`, { fault: 'remote', diagnostic: '3-311', expected, got });
