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
import type { ArticleBatch, Burst, SyncPoint } from './articles.js';
import { STATES, transitionOf } from './automaton.js';
import type { AutomatonEvent, Condition, Role, State } from './automaton.js';
import { decodeBody, encodeFpdu } from './codec.js';
import type { Fpdu } from './codec.js';
import { CompressingBurst } from './compressing.js';
import type { CompressionMode } from './compression.js';
import { checkCounts } from './counts.js';
import { checksum } from './crc.js';
import { SUCCESS, describeDiagnostic } from './diagnostics.js';
import { PesitError } from './errors.js';
import type { DiagnosticCode } from './errors.js';
import { isDataFpdu } from './fpdus.js';
import type { FpduName } from './fpdus.js';
import { ENTITY_PREFIX_LENGTH, FpduReader } from './framing.js';
import type { Dialect, RawFpdu } from './framing.js';
import type { ConnectionTerms, FileTerms } from './negotiation.js';
import type { Parameters } from './parameters.js';
import { ReceivedPoints, START } from './received-points.js';
import { ArticleReceiver } from './receiving.js';
import type { SingleArticleStyle } from './receiving.js';
import { RESYNCHRONISABLE, Resynchronisation } from './resynchronisation.js';
import { ArticleSender } from './sending.js';
import { printable, textForPeer } from './texts.js';
import { DEFAULT_TIMERS, waitOf } from './timers.js';
import type { Timers } from './timers.js';

export type SessionEvent =
  /** An FPDU that the application has to know of or to answer. */
  | { readonly kind: 'FPDU'; readonly name: FpduName; readonly parameters: Parameters }
  | { readonly kind: 'ARTICLES'; readonly batch: ArticleBatch }
  /** The peer placed a point: store, then `acknowledgeSyn`. */
  | { readonly kind: 'SYN'; readonly point: SyncPoint }
  /** The peer has stored everything up to this point. */
  | { readonly kind: 'ACK(SYN)'; readonly point: SyncPoint }
  /** The peer asks to go back to `point`: bring the file there, then `acceptResyn`. Data that were not stored are void. */
  | { readonly kind: 'RESYN'; readonly point: SyncPoint; readonly error: PesitError }
  /** The peer has answered our RESYN: bring the file to `point`, which may be the start; data follow from there. */
  | { readonly kind: 'ACK(RESYN)'; readonly point: SyncPoint }
  /** The transfer was interrupted (IDT); the file has to be closed and deselected, the connection goes on. */
  | { readonly kind: 'INTERRUPTED'; readonly by: 'us' | 'peer'; readonly endCode: number; readonly error: PesitError }
  /** How the peer writes a single article; worth remembering for the partner. */
  | { readonly kind: 'STYLE'; readonly style: SingleArticleStyle }
  /** Something was tolerated: for the log. */
  | { readonly kind: 'NOTICE'; readonly text: string }
  /** The connection is over for the application; `error` says why when it was not released. */
  | { readonly kind: 'ENDED'; readonly error: PesitError | undefined };

export interface SessionOptions {
  readonly dialect: Dialect;
  /** Milliseconds of any monotonic clock. */
  readonly now: number;
  /** Our half of the identifiers: 1 to 255 (X of a requester, Y of a server). */
  readonly connectionId: number;
  readonly timers?: Partial<Timers>;
  /** What is known of the peer's single articles. */
  readonly singleArticle?: SingleArticleStyle;
}

/** PI 19 (§3.7). */
export const END_CODES = { error: 4, suspended: 8, cancelledByServer: 12, cancelledByRequester: 16 } as const;

const MAX_NOTICES_A_SESSION = 64;
/** Article bytes after which a batch goes out before more is taken apart. */
const MAX_BATCH = 512 * 1024;

/** Events of which the answer's sign is part of the name. */
const SIGNED: ReadonlySet<FpduName> = new Set(['ACK(CREATE)', 'ACK(SELECT)', 'ACK(ORF)', 'ACK(READ)', 'ACK(WRITE)']);

export abstract class Session {
  readonly role: Role;
  readonly timers: Timers;
  /** Terms of the connection; undefined before it is established. */
  terms: ConnectionTerms | undefined;

  protected readonly options: SessionOptions;
  protected readonly reader: FpduReader;
  protected readonly receiver: ArticleReceiver;
  protected sender: ArticleSender | undefined;
  /** What PI 21 agreed on for the open file; 0 none. */
  protected agreedCompression: CompressionMode | 0 = 0;
  protected peerId = 0;
  protected now: number;
  /** Direction of the selected file. */
  protected direction: 'writing' | 'reading' | undefined;
  /** Where this attempt started, with its totals: TRANS.END may count from here. */
  protected startPoint: SyncPoint = START;

  #compressing: CompressingBurst | undefined;
  #state: State = 'CN01';
  #phase: 'open' | 'closing' | 'closed' = 'open';
  #armedAt: number;
  #outputBlocked = false;
  #held = false;
  /** A batch went out before all that was received was taken apart. */
  #unread = false;
  #output: Buffer[] = [];
  #events: SessionEvent[] = [];
  #notices = 0;
  #wrongDestinationNoted = false;
  readonly #points = new ReceivedPoints();
  readonly #resynchronisation = new Resynchronisation(this.#points);
  /** Window that the peer may use towards us; a server may answer more than was asked and then use it. */
  protected receiveWindow = 0;
  /** ACK(TRANS.END) was sent for the open file. */
  protected transferEnded = false;
  /** Whether the peer waits for ACK(SYN). */
  protected acknowledges = false;
  #interruption: { endCode: number; error: PesitError } | undefined;

  protected constructor(role: Role, options: SessionOptions, crc: boolean | undefined) {
    this.role = role;
    this.options = options;
    this.timers = { ...DEFAULT_TIMERS, ...options.timers };
    this.reader = new FpduReader(options.dialect, crc);
    this.receiver = new ArticleReceiver(options.singleArticle ?? 'unknown');
    this.now = options.now;
    this.#armedAt = options.now;
  }

  get state(): State {
    return this.#state;
  }

  /** `closing`: nothing more is sent; end our side and wait for the peer's. `closed`: destroy the connection. */
  get phase(): 'open' | 'closing' | 'closed' {
    return this.#phase;
  }

  /** When to call `handleTimeout`, in the clock of `now`; undefined when no timer runs. */
  get deadline(): number | undefined {
    if (this.#phase === 'closed') return undefined;
    if (this.#phase === 'closing') return this.#armedAt + this.timers.close;
    const wait = waitOf(this.role, this.#state);
    if (wait === undefined) return undefined;
    if (wait !== 'blocked') return this.#armedAt + this.timers[wait];
    return this.#outputBlocked || this.sender?.blocked === true ? this.#armedAt + this.timers.response : undefined;
  }

  /** Bytes received that wait for the rest of their FPDU: views of them go out later. */
  get pending(): number {
    return this.reader.pending;
  }

  /** Bytes to write, in order, since the last call. */
  takeOutput(): Buffer[] {
    const output = this.#output;
    if (output.length > 0) this.#output = [];
    return output;
  }

  /** The next event. Goes on with what was received while there is some left and the session is not held. */
  nextEvent(): SessionEvent | undefined {
    if (this.#events.length === 0 && this.#unread && !this.#held) this.#read();
    return this.#events.shift();
  }

  /**
   * While held, what came and was not taken apart yet stays as it is: the disk is behind. Of plain data there is nothing left
   * after `receive`; compressed data may become sixty times as long.
   */
  setHeld(held: boolean): void {
    this.#held = held;
  }

  /** Takes bytes from the peer; they may hold any part of any number of FPDUs. Views of them go out in events. */
  receive(bytes: Buffer, now: number): void {
    this.now = now;
    if (this.#phase !== 'open') return;
    this.reader.push(bytes);
    if (this.#receivesData()) this.#armedAt = now;
    this.#read();
  }

  #read(): void {
    this.#unread = false;
    if (this.#phase !== 'open') return;
    try {
      for (;;) {
        const raw = this.#next();
        if (raw === undefined) break;
        this.#armedAt = this.now;
        this.#admit(raw);
        // Re-read through the getter: admitting an FPDU may have closed the session.
        if (this.phase !== 'open') return;
        this.#unread = this.receiver.bytes >= MAX_BATCH;
        if (this.#unread) break;
      }
      this.#flushArticles();
    } catch (error) {
      this.fail(error);
    }
  }

  /** To be called at `deadline`; harmless earlier. */
  handleTimeout(now: number): void {
    this.now = now;
    const deadline = this.deadline;
    if (deadline === undefined || now < deadline) return;
    if (this.#phase === 'closing') {
      this.#phase = 'closed';
      return;
    }
    const wait = waitOf(this.role, this.#state);
    const idle = wait === 'idle';
    const seconds = Math.round((deadline - this.#armedAt) / 1000);
    const text = this.reader.lacksCrc
      ? 'the partner answers without the CRC that PI 1 asked for: it does not support it, switch CRC off'
      : idle
        ? `no new file for ${seconds} s: the connection is closed`
        : `the partner sent nothing for ${seconds} s (${this.describeState()}): check it and the line`;
    const error = new PesitError(text, { fault: 'timeout', diagnostic: idle ? '3-313' : '3-317' });
    // Nothing was ever received: there is no one to send an ABORT to.
    if (wait === 'connect') this.end(error, 'closed');
    else this.abort(error);
  }

  /** The transport is gone: reset, or closed by the peer. */
  connectionLost(now: number, cause?: unknown): void {
    this.now = now;
    if (this.#phase === 'open') {
      const [what, advice] =
        cause instanceof Error
          ? [`was lost, ${cause.message}`, 'check the line, and firewalls on the way']
          : ['was closed by the partner', 'see its log, and check firewalls on the way'];
      const text = `the connection ${what} (${this.describeState()}): ${advice}`;
      const error = new PesitError(text, { fault: 'transport', diagnostic: '3-310', cause });
      // A requester that has sent RELEASE may not wait for our RELCONF: it is done all the same.
      this.end(this.#state === 'CN04B' ? undefined : error, 'closed');
    }
    this.#phase = 'closed';
  }

  /** Tells whether the transport takes no more bytes for now, so that a peer that does not read is noticed. */
  setOutputBlocked(blocked: boolean, now: number): void {
    this.now = now;
    this.#outputBlocked = blocked;
    this.#armedAt = now;
  }

  /** Time in which this side did not read does not count against the peer. */
  touch(now: number): void {
    this.now = now;
    this.#armedAt = now;
  }

  /**
   * Ends the connection at once, in any state: ABORT with the diagnostic and, as PI 29, the text.
   * @param reason goes to the ENDED event as it is
   */
  abort(reason: PesitError): void {
    if (this.#phase !== 'open') return;
    if (this.#state === 'CN01' && this.role === 'requester') {
      this.end(reason, 'closed');
      return;
    }
    this.output(
      'ABORT',
      { diagnostic: reason.diagnostic, ...textForPeer(reason) },
      this.peerId,
      this.options.connectionId,
    );
    this.end(reason, 'closing');
  }

  /**
   * Interrupts the transfer (IDT, §4.4.29). The file has then to be closed and deselected.
   * @returns false when no transfer is under way: refuse or abort instead
   */
  interrupt(endCode: number, reason: PesitError): boolean {
    if (this.#phase !== 'open' || transitionOf(this.role, this.#state, '>IDT') === undefined) return false;
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
    if (this.#phase !== 'open' || this.terms?.resynchronisation !== true) return false;
    if (!RESYNCHRONISABLE.has(this.#state) || (this.#sendsData() && this.sender === undefined)) return false;
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
    if (this.#phase !== 'open' || (this.#state !== 'TDE04' && this.#state !== 'TDL04')) return false;
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
    return this.#phase === 'open' && (this.#state === 'TDE02A' || this.#state === 'TDL02B');
  }

  /** True between a RESYN, by either side, and its ACK(RESYN): data will flow again. */
  get resynchronising(): boolean {
    return this.#phase === 'open' && /^TD[EL]0[34]$/.test(this.#state);
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
    return burst;
  }

  /** True when a resynchronisation has overtaken the burst that is filled: `endBurst` gives nothing, begin another. */
  get burstIsVoid(): boolean {
    return this.sender?.stale === true;
  }

  /** @returns the bytes of the burst to write; empty when the transfer was interrupted in between */
  endBurst(): Buffer {
    if (this.sender === undefined || !this.sending) return Buffer.alloc(0);
    return (this.#compressing ?? this.sender).end();
  }

  /** DTF.END: all data are sent (§4.4.21). */
  endData(): void {
    this.send('DTF.END', { diagnostic: SUCCESS });
  }

  /**
   * ACK(SYN): everything up to `number` is on stable storage. Late calls, when the transfer has ended or was interrupted
   * meanwhile, do nothing: ACK(TRANS.END) says the same of the whole file.
   */
  acknowledgeSyn(number: number): void {
    if (this.#phase !== 'open') return;
    if (!this.#points.store(number) || !this.acknowledges) return;
    if (transitionOf(this.role, this.#state, '>ACK(SYN)') === undefined || !this.#points.acknowledge(number)) return;
    this.send('ACK(SYN)', { syncPoint: number });
  }

  /** In words, e.g. `writing, sending data; state TDE02A`. */
  describeState(): string {
    return `${STATES[this.#state]}; state ${this.#state}`;
  }

  /** Applies a received control FPDU that the automaton has admitted; emits what the application must know. */
  protected abstract apply(fpdu: Fpdu): void;

  /** A transfer was interrupted: a request that still waits for an answer gets none. */
  protected forgetRequest(): void {
    // A requester has no requests of the peer to answer.
  }

  /** Conditions of the automaton (§4.8.1.3). */
  #holds(condition: Condition | undefined): boolean {
    if (condition === undefined) return true;
    if (condition === 'ended') return this.transferEnded;
    return condition === 'ck' ? this.terms?.resynchronisation === true : this.direction === condition;
  }

  #receivesData(): boolean {
    return this.#state === 'TDE02B' || this.#state === 'TDL02A';
  }

  /** The next FPDU; what is damaged and can be sent again is passed over. */
  #next(): RawFpdu | undefined {
    for (;;) {
      try {
        return this.reader.next();
      } catch (error) {
        if (!this.#survives(error)) throw error;
        if (this.#phase !== 'open') return undefined;
      }
    }
  }

  /** A wrong CRC in the data is worth a RESYN (pesit-e.md §6); until it is answered all that comes is dropped anyway. */
  #survives(error: unknown): boolean {
    if (!(error instanceof PesitError) || error.diagnostic !== '3-310') return false;
    if (this.#state === 'TDE03' || this.#state === 'TDL03') return true;
    const damage = new PesitError(error.message, { fault: 'remote', diagnostic: '1-100', cause: error });
    if (!this.resynchronise(damage)) return false;
    this.notice(`${error.message}: asked to send again`);
    return true;
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

  #admit(raw: RawFpdu): void {
    this.#checkDestination(raw);
    if (isDataFpdu(raw.name)) {
      if (!this.#step(`<${raw.name}`, raw.name)) return;
      const style = this.receiver.style;
      this.#interruptOn(() => this.receiver.receive(raw));
      if (this.receiver.style !== style) this.emit({ kind: 'STYLE', style: this.receiver.style });
      return;
    }
    // Copied: opaque parameters outlive the buffers that the transport reads into.
    const body = Buffer.concat(raw.body);
    if (raw.name === 'ABORT') {
      this.#receiveAbort(raw, body);
      return;
    }
    const fpdu = decodeBody(raw.name, raw.destination, raw.source, body);
    for (const notice of fpdu.notices) this.notice(notice);
    const negative = (fpdu.parameters.diagnostic ?? SUCCESS) !== SUCCESS;
    const event = (SIGNED.has(fpdu.name) ? `<${fpdu.name}${negative ? '-' : '+'}` : `<${fpdu.name}`) as AutomatonEvent;
    if (!this.#step(event, fpdu.name)) return;
    this.#flushArticles();
    switch (fpdu.name) {
      case 'SYN':
        this.#interruptOn(() => this.#receiveSyn(fpdu.parameters.syncPoint as number));
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

  #flushArticles(): void {
    const batch = this.receiver.take();
    if (batch !== undefined) this.emit({ kind: 'ARTICLES', batch });
  }

  /** @returns false when the FPDU is to be dropped (it was overtaken by a RESYN or an IDT) */
  #step(event: AutomatonEvent, name: FpduName): boolean {
    const transition = transitionOf(this.role, this.#state, event);
    if (transition === undefined || !this.#holds(transition.when)) {
      throw new PesitError(`${name} was not expected here (${this.describeState()})`, {
        fault: 'remote',
        diagnostic: '3-311',
        expected: `an FPDU that fits ${this.describeState()}`,
        got: name,
      });
    }
    if (transition.to === 'DROP') return false;
    this.#state = transition.to;
    return true;
  }

  #checkDestination(raw: RawFpdu): void {
    const expected = raw.name === 'CONNECT' ? 0 : this.options.connectionId;
    if (raw.destination === expected || raw.name === 'ABORT' || this.#wrongDestinationNoted) return;
    this.#wrongDestinationNoted = true;
    this.notice(`${raw.name}: ID.DST is ${raw.destination}, expected ${expected}: tolerated`);
  }

  /** Errors of the data of this transfer interrupt it; all others end the connection. */
  #interruptOn(action: () => void): void {
    try {
      action();
    } catch (error) {
      if (!(error instanceof PesitError) || !(error.diagnostic.startsWith('2-') || error.diagnostic === '1-100'))
        throw error;
      const cancel = this.role === 'server' ? END_CODES.cancelledByServer : END_CODES.cancelledByRequester;
      const endCode = error.diagnostic === '2-220' ? cancel : END_CODES.error;
      this.interrupt(endCode, error);
    }
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
    if (this.#state === 'OF02') {
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

  #receiveAbort(raw: RawFpdu, body: Buffer): void {
    let parameters: Parameters = {};
    try {
      parameters = decodeBody('ABORT', raw.destination, raw.source, body).parameters;
    } catch {
      // The specification itself has an ABORT without PI codes (§4.7.4, remark): the three bytes are the diagnostic.
      if (body.length >= 3)
        parameters = {
          diagnostic: `${body.readUInt8(0) & 3}-${String(body.readUInt16BE(1)).padStart(3, '0')}` as DiagnosticCode,
        };
    }
    this.end(this.refusal('aborted the connection', parameters.diagnostic ?? '3-399', parameters), 'closing');
  }

  /** What the peer said, as an error of the `refused` kind. */
  refusal(what: string, diagnostic: DiagnosticCode, parameters: Parameters): PesitError {
    const text = printable(parameters.diagnosticComplement ?? parameters.freeMessage);
    return new PesitError(`the partner ${what}: ${describeDiagnostic(diagnostic)}${text === '' ? '' : ` (${text})`}`, {
      fault: 'refused',
      diagnostic,
    });
  }

  /** Ends the session on any error of the peer; errors that are not `PesitError` are bugs and go on. */
  protected fail(error: unknown): void {
    if (!(error instanceof PesitError)) throw error;
    this.receiver.discard();
    this.abort(error);
  }

  /** Ends the session for the application and starts closing the transport. */
  protected end(error: PesitError | undefined, phase: 'closing' | 'closed'): void {
    if (this.#phase !== 'open') return;
    this.#state = 'CN01';
    this.#phase = phase;
    this.#armedAt = this.now;
    this.emit({ kind: 'ENDED', error });
  }

  /** Sends a control FPDU: the automaton has to know it. */
  protected send(name: FpduName, parameters: Parameters, sign?: '+' | '-'): void {
    const event = `>${name}${sign ?? ''}` as AutomatonEvent;
    const transition = transitionOf(this.role, this.#state, event);
    if (
      this.#phase !== 'open' ||
      transition === undefined ||
      transition.to === 'DROP' ||
      !this.#holds(transition.when)
    ) {
      throw new Error(`${name} cannot be sent (${this.describeState()}, ${this.#phase})`);
    }
    const source =
      name === 'CONNECT' || name === 'ACONNECT' || name === 'RELEASE' || name === 'RELCONF'
        ? this.options.connectionId
        : 0;
    this.output(name, parameters, this.peerId, source);
    this.#state = transition.to;
    this.#armedAt = this.now;
  }

  protected output(name: FpduName, parameters: Parameters, destination: number, source: number): void {
    const prefix = ENTITY_PREFIX_LENGTH[this.options.dialect];
    const entity = encodeFpdu(name, destination, source, parameters, prefix);
    const crc = name === 'CONNECT' ? parameters.crc === 1 : this.reader.crc;
    if (prefix > 0) entity.writeUInt16BE(entity.length - prefix + (crc ? 2 : 0), 0);
    this.#output.push(entity);
    if (crc) {
      const trailer = Buffer.allocUnsafe(2);
      trailer.writeUInt16BE(checksum([entity.subarray(prefix)]), 0);
      this.#output.push(trailer);
    }
  }

  protected emit(event: SessionEvent): void {
    this.#events.push(event);
  }

  protected notice(text: string): void {
    if (this.#notices++ < MAX_NOTICES_A_SESSION) this.emit({ kind: 'NOTICE', text });
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
      destination: this.peerId,
      interval: this.terms?.syncInterval ?? 0,
      window: this.terms?.syncWindow ?? 0,
      from,
    });
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
