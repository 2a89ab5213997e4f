/**
 * What both ends of a PeSIT connection share: bytes and `now` in; bytes, events and a deadline out. No I/O, no clock.
 *
 * Use, in any order: `receive(bytes, now)`, the verbs of the role, `handleTimeout(now)`, `connectionLost(now)`. After each,
 * write what `takeOutput()` gives, handle `nextEvent()` until it is undefined, and call `handleTimeout` at `deadline`.
 * A verb has no clock: when time has passed since the last call that has one, call `touch(now)` with it, or its timer starts
 * in the past.
 *
 * A peer never makes a method throw: whatever it does wrong ends in ABORT or IDT with a diagnostic and an event. A verb that
 * the state does not allow throws: that is a mistake of the calling program.
 */
import type { Burst, SyncPoint } from './articles.js';
import { transitionOf } from './automaton.js';
import type { Condition, Role } from './automaton.js';
import type { Fpdu } from './codec.js';
import { CompressingBurst } from './compressing.js';
import type { CompressionMode } from './compression.js';
import { checkCounts } from './counts.js';
import { SUCCESS } from './diagnostics.js';
import { PesitError } from './errors.js';
import type { DiagnosticCode } from './errors.js';
import type { FpduName } from './fpdus.js';
import { ENTITY_PREFIX_LENGTH } from './framing.js';
import type { RawFpdu } from './framing.js';
import type { ConnectionTerms, FileTerms } from './negotiation.js';
import type { Parameters } from './parameters.js';
import { ReceivedPoints, START } from './received-points.js';
import { ArticleReceiver } from './receiving.js';
import { RESYNCHRONISABLE, Resynchronisation } from './resynchronisation.js';
import { ArticleSender } from './sending.js';
import { SessionCore } from './session-core.js';
import type { SessionOptions } from './session-events.js';
import { textForPeer } from './texts.js';

/** PI 19 (§3.7). */
export const END_CODES = { error: 4, suspended: 8, cancelledByServer: 12, cancelledByRequester: 16 } as const;

/** Article bytes after which a batch goes out before more is taken apart. */
const MAX_BATCH = 512 * 1024;

export abstract class Session extends SessionCore {
  /** Terms of the connection; undefined before it is established. */
  terms: ConnectionTerms | undefined;

  protected readonly receiver: ArticleReceiver;
  protected sender: ArticleSender | undefined;
  /** What PI 21 agreed on for the open file; 0 none. */
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
  #largeEntityNoted = false;

  #compressing: CompressingBurst | undefined;
  /** Whether a burst is filled, and whether DTF.END goes with it. */
  #burst: 'none' | 'open' | 'last' = 'none';
  readonly #points = new ReceivedPoints();
  readonly #resynchronisation = new Resynchronisation(this.#points);
  #interruption: { endCode: number; error: PesitError } | undefined;

  protected constructor(role: Role, options: SessionOptions, crc: boolean | undefined) {
    super(role, options, crc);
    this.receiver = new ArticleReceiver(options.singleArticle ?? 'unknown');
    this.layout = { multiArticle: options.multiArticle ?? true, concatenation: options.concatenation ?? true };
  }

  /**
   * Interrupts the transfer (IDT, §4.4.29). The file has then to be closed and deselected.
   * @returns false when no transfer is under way: refuse or abort instead
   */
  interrupt(endCode: number, reason: PesitError): boolean {
    if (this.phase !== 'open' || transitionOf(this.role, this.state, '>IDT') === undefined) return false;
    this.receiver.discard();
    this.forgetRequest();
    this.#interruption = { endCode, error: reason };
    this.send('IDT', { diagnostic: reason.diagnostic, endCode, ...textForPeer(reason) });
    return true;
  }

  /**
   * Asks the peer to go back to a sync point and go on from there (RESYN, §4.4.24). Its answer is an ACK(RESYN) event.
   * @param from number of the point, 0 the start; default: the last one that is stored here, or that the peer has acknowledged
   * @returns false when it was not negotiated (PI 23) or no transfer is under way: interrupt instead. After
   *   `MAX_RESYNCHRONISATIONS` of a transfer the session is aborted with 3-320.
   */
  resynchronise(reason: PesitError, from?: number): boolean {
    if (this.phase !== 'open' || this.terms?.resynchronisation !== true) return false;
    if (!RESYNCHRONISABLE.has(this.state) || (this.#sendsData() && this.sender === undefined)) return false;
    const point = this.#resynchronisation.choose(from);
    this.receiver.discard();
    this.forgetRequest();
    const excess = this.#resynchronisation.excess();
    if (excess !== undefined) {
      this.abort(excess);
      return true;
    }
    this.#resynchronisation.ask(point);
    this.send('RESYN', { diagnostic: reason.diagnostic, restartPoint: point.number, ...textForPeer(reason) });
    return true;
  }

  /**
   * ACK(RESYN) (§4.4.25): answers a RESYN event, once the file stands where it said.
   * @param fromStart instead of there, go back to the start of the file
   * @returns false when there is nothing to answer any more: the transfer was interrupted, or the connection is over
   */
  acceptResyn(fromStart = false): boolean {
    if (this.phase !== 'open' || (this.state !== 'TDE04' && this.state !== 'TDL04')) return false;
    const point = this.#resynchronisation.answer(fromStart);
    if (point === undefined) return false;
    this.#goBack(point);
    this.send('ACK(RESYN)', { restartPoint: point.number });
    return true;
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

  /** What was agreed for the file that is selected, or was last; undefined before the first. */
  get fileTerms(): FileTerms | undefined {
    if (this.entitySize === 0) return undefined;
    return { maxEntitySize: this.entitySize, compression: this.agreedCompression };
  }

  /** True while article data may be sent: not ended, not interrupted. */
  get sending(): boolean {
    return this.phase === 'open' && (this.state === 'TDE02A' || this.state === 'TDL02B');
  }

  /** True between a RESYN, by either side, and its ACK(RESYN): data will flow again. */
  get resynchronising(): boolean {
    return this.phase === 'open' && /^TD[EL]0[34]$/.test(this.state);
  }

  /** True when the burst that is filled begins with a point beyond the window: `endBurst` after the next ACK(SYN) event. */
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
    const goes = last ? this.state === 'TDE07' || this.state === 'TDL07' : this.sending;
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
    if (!this.#points.store(number) || !this.acknowledges) return;
    if (transitionOf(this.role, this.state, '>ACK(SYN)') === undefined || !this.#points.acknowledge(number)) return;
    this.send('ACK(SYN)', { syncPoint: number });
  }

  /** Applies a received control FPDU that the automaton has admitted; emits what the application must know. */
  protected abstract apply(fpdu: Fpdu): void;

  /** A transfer was interrupted: a request that still waits for an answer gets none. */
  protected forgetRequest(): void {
    // A requester has no requests of the peer to answer.
  }

  protected override get waitsForWindow(): boolean {
    return this.windowFull;
  }

  protected override get batchIsFull(): boolean {
    return this.receiver.bytes >= MAX_BATCH;
  }

  protected override holds(condition: Condition): boolean {
    switch (condition) {
      case 'ck':
        return this.terms?.resynchronisation === true;
      case 'ended':
        return this.transferEnded;
      case 'served':
        return this.holds('ended') && this.holds('reading') && this.holds('ck');
      default:
        return this.direction === condition;
    }
  }

  /** A wrong CRC in the data is worth a RESYN (pesit-e.md §6); until it is answered all that comes is dropped anyway. */
  protected override survives(error: unknown): boolean {
    if (!(error instanceof PesitError) || error.diagnostic !== '3-310') return false;
    if (this.state === 'TDE03' || this.state === 'TDL03') return true;
    const damage = new PesitError(error.message, { fault: 'remote', diagnostic: '1-100', cause: error });
    if (!this.resynchronise(damage)) return false;
    this.notice(`${error.message}: asked to send again`);
    return true;
  }

  protected override flush(): void {
    const batch = this.receiver.take();
    if (batch !== undefined) this.emit({ kind: 'ARTICLES', batch });
  }

  protected override discard(): void {
    this.receiver.discard();
  }

  protected override takeData(raw: RawFpdu): void {
    const style = this.receiver.style;
    try {
      this.receiver.receive(raw);
    } catch (error) {
      this.#interruptOn(error);
    }
    if (this.receiver.style !== style) this.emit({ kind: 'STYLE', style: this.receiver.style });
    if (this.reader.entityLength > this.entitySize) this.#noteLargeEntity();
  }

  protected override take(fpdu: Fpdu): void {
    switch (fpdu.name) {
      case 'SYN':
        try {
          this.#receiveSyn(fpdu.parameters.syncPoint as number);
        } catch (error) {
          this.#interruptOn(error);
        }
        break;
      case 'ACK(SYN)':
        this.#receiveAckSyn(fpdu.parameters.syncPoint as number);
        break;
      case 'IDT':
        this.#receiveIdt(fpdu);
        break;
      case 'ACK(IDT)':
        this.#interrupted('us');
        break;
      case 'RESYN':
        this.#receiveResyn(fpdu);
        break;
      case 'ACK(RESYN)':
        this.#receiveAckResyn(fpdu.parameters.restartPoint as number);
        break;
      default:
        if (fpdu.name === 'DTF.END' && this.receiver.insideArticle)
          throw unexpected('DTF.END', 'DTFFA, as an article is open');
        this.apply(fpdu);
    }
  }

  /** Some peers do not keep to the PI 25 that was answered (pesit-e.md §3): said once. */
  #noteLargeEntity(): void {
    if (this.#largeEntityNoted) return;
    this.#largeEntityNoted = true;
    this.notice(`data in an entity of ${this.reader.entityLength} bytes, PI 25 allows ${this.entitySize}: taken`);
  }

  #sendsData(): boolean {
    return (this.direction === 'writing') === (this.role === 'requester');
  }

  #goBack(point: SyncPoint): void {
    if (point.number < this.startPoint.number) this.startPoint = point;
    if (this.sender === undefined) {
      this.receiver.goBack(point.dataBytes, point.articles);
      this.#points.start(point);
    } else {
      this.sender.goBack(point);
      this.#compress(this.sender);
    }
  }

  #receiveResyn({ parameters }: Fpdu): void {
    const excess = this.#resynchronisation.excess();
    if (excess !== undefined) throw excess;
    this.receiver.discard();
    this.forgetRequest();
    const point = this.#resynchronisation.receive(parameters.restartPoint as number);
    const error = this.refusal('asked to go back', parameters.diagnostic as DiagnosticCode, parameters);
    this.emit({ kind: 'RESYN', point, error });
  }

  #receiveAckResyn(number: number): void {
    const point = this.#resynchronisation.answered(number);
    this.#goBack(point);
    this.emit({ kind: 'ACK(RESYN)', point });
  }

  #compress(sender: ArticleSender): void {
    const mode = this.agreedCompression;
    this.#compressing = mode === 0 ? undefined : new CompressingBurst(sender, mode);
  }

  /** Errors of the data of this transfer interrupt it; all others end the connection. */
  #interruptOn(error: unknown): void {
    if (!(error instanceof PesitError) || !(error.diagnostic.startsWith('2-') || error.diagnostic === '1-100'))
      throw error;
    const cancel = this.role === 'server' ? END_CODES.cancelledByServer : END_CODES.cancelledByRequester;
    const endCode = error.diagnostic === '2-220' ? cancel : END_CODES.error;
    this.interrupt(endCode, error);
  }

  #receiveSyn(number: number): void {
    if ((this.terms?.syncInterval ?? 0) === 0) throw unexpected('SYN', 'no sync points, as PI 7 says');
    if (this.receiver.insideArticle) throw unexpected('SYN', 'DTFFA, as an article is open');
    this.#points.receive(number, this.receiveWindow);
    this.receiver.passPoint();
    const point = { number, dataBytes: this.receiver.dataBytes, articles: this.receiver.articles };
    this.#points.keep(point);
    this.emit({ kind: 'SYN', point });
  }

  #receiveAckSyn(number: number): void {
    const point = this.sender?.acknowledge(number);
    if (point === undefined) throw unexpected(`ACK(SYN) ${number}`, `at most ACK(SYN) ${this.sender?.sentPoint ?? 0}`);
    if (point === 'known') this.notice(`ACK(SYN) ${number}: nothing waits for it`);
    else this.emit({ kind: 'ACK(SYN)', point });
  }

  #receiveIdt(fpdu: Fpdu): void {
    if (this.state === 'OF02') {
      this.notice('IDT crossed our ACK(TRANS.END): acknowledged, what was answered stays');
      this.send('ACK(IDT)', {});
      return;
    }
    const diagnostic = fpdu.parameters.diagnostic as DiagnosticCode;
    const endCode = fpdu.parameters.endCode as number;
    this.receiver.discard();
    this.#interruption = { endCode, error: this.refusal('interrupted the transfer', diagnostic, fpdu.parameters) };
    this.send('ACK(IDT)', {});
    this.#interrupted('peer');
  }

  #interrupted(by: 'us' | 'peer'): void {
    const interruption = this.#interruption;
    if (interruption === undefined) return;
    this.#interruption = undefined;
    this.forgetRequest();
    this.emit({ kind: 'INTERRUPTED', by, ...interruption });
  }

  /** A file was selected: what is counted from here on is its own. */
  protected forgetTotals(): void {
    this.sender = undefined;
    this.transferEnded = false;
    this.#points.start(START);
    this.#resynchronisation.start(undefined);
    this.agreedCompression = 0;
    this.receiver.start(0xffff, 0, 0);
  }

  protected startReceiving(from: SyncPoint, recordLength: number): void {
    this.startPoint = from;
    this.transferEnded = false;
    this.sender = undefined;
    this.#points.start(from);
    this.#resynchronisation.start(undefined);
    this.receiver.start(recordLength, from.dataBytes, from.articles, this.agreedCompression);
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
    this.#resynchronisation.start(this.sender);
    this.#compress(this.sender);
  }

  /** @throws PesitError 3-319 see `checkCounts` */
  protected checkCounts(name: FpduName, parameters: Parameters, articlesMayDiffer: boolean): void {
    const counts = { ours: this.totals, start: this.startPoint, articlesMayDiffer };
    checkCounts(name, parameters, counts, (text) => {
      this.notice(text);
    });
  }
}

function unexpected(got: string, expected: string): PesitError {
  return new PesitError(`expected ${expected}, got ${got}`, { fault: 'remote', diagnostic: '3-311', expected, got });
}
