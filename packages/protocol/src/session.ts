/**
 * The part that both ends of a PeSIT connection share: bytes and `now` in; bytes, events and a deadline out. No I/O, no clock.
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
import type { Condition } from './automaton.js';
import type { CompressionMode } from './compression.js';
import { unexpected } from './data-transfer.js';
import type { Fpdu } from './decoding.js';
import { PesitError } from './errors.js';
import { SUCCESS, endOf, endsForGood } from './diagnostics.js';
import type { PeerDiagnostic } from './diagnostics.js';
import type { FpduName } from './fpdus.js';
import { ENTITY_PREFIX_LENGTH } from './framing.js';
import type { RawFpdu } from './framing.js';
import type { ConnectionTerms, FileTerms } from './negotiation.js';
import type { Parameters } from './parameters.js';
import { SessionCore } from './session-core.js';
import { textForPeer } from './texts.js';

/** PI 19 (§3.7). */
export const END_CODES = { error: 4, suspended: 8, cancelledByServer: 12, cancelledByRequester: 16 } as const;

export abstract class Session extends SessionCore {
  /** Terms of the connection; undefined before it is established. */
  terms: ConnectionTerms | undefined;

  /** Direction of the selected file. */
  protected direction: 'writing' | 'reading' | undefined;
  /** Window that the peer may use towards us; a server may answer more than was asked and then use it. */
  protected receiveWindow = 0;
  /** Whether the peer waits for ACK(SYN). */
  protected acknowledges = false;

  #interruption: { endCode: number; error: PesitError } | undefined;
  /** A notice about something that a peer does with every FPDU of a kind is given once. */
  readonly #noted = new Set<'large entity' | 'unwanted ACK(SYN)'>();

  /** The articles and bytes of the transfer so far, as PI 27 and PI 28 count them. */
  get totals(): { readonly dataBytes: number; readonly articles: number } {
    return this.data.totals;
  }

  /** Compression of the open file: 1 horizontal, 2 vertical, 3 both, 0 none. `totals` count compressed bytes. */
  get compression(): CompressionMode | 0 {
    return this.data.compression;
  }

  /** PI 25 as negotiated for the selected file; 0 before the first. */
  abstract get entitySize(): number;

  /** Terms of the file that is selected, or was last; undefined before the first. */
  get fileTerms(): FileTerms | undefined {
    if (this.entitySize === 0) return undefined;
    return { maxEntitySize: this.entitySize, compression: this.data.compression };
  }

  /** True while article data may be sent: not ended, not interrupted. */
  get sending(): boolean {
    return this.phase === 'open' && this.situation.data === 'sends';
  }

  /** True when the burst that is filled begins where the window is full: `endBurst` after the next ACK(SYN) event. */
  get windowFull(): boolean {
    return this.data.windowFull;
  }

  /** Starts a burst in `buffer` (at least `burstBufferSize` bytes). Only while `sending`. */
  beginBurst(buffer: Buffer): Burst {
    const burst = this.sending ? this.data.beginBurst(buffer) : undefined;
    if (burst === undefined) throw new Error(`no data may be sent (${this.describeState()})`);
    return burst;
  }

  /** True when a resynchronisation has overtaken the burst that is filled: `endBurst` gives nothing, begin another. */
  get burstIsVoid(): boolean {
    return this.data.burstIsVoid;
  }

  /** @returns the bytes of the burst to write; empty when the transfer was interrupted in between */
  endBurst(): Buffer {
    return this.data.endBurst(this.data.endsWithBurst ? this.situation.data === 'ended' : this.sending);
  }

  /** DTF.END: all data are sent (§4.4.21). Between `beginBurst` and `endBurst` it goes behind the articles of the burst. */
  endData(): void {
    if (this.data.isFilling) {
      this.sends('DTF.END');
      this.data.endWithBurst();
    } else {
      this.send('DTF.END', { diagnostic: SUCCESS });
    }
  }

  /**
   * ACK(SYN): everything up to `number` is on stable storage. Late calls, when the transfer has ended or was interrupted
   * meanwhile, do nothing: ACK(TRANS.END) says the same of the whole file.
   */
  acknowledgeSyn(number: number): void {
    if (this.phase !== 'open') return;
    if (!this.data.store(number) || !this.acknowledges) return;
    if (transitionOf(this.role, this.state, '>ACK(SYN)') === undefined || !this.data.acknowledge(number)) return;
    this.send('ACK(SYN)', { syncPoint: number });
  }

  /**
   * Interrupts the transfer (IDT, §4.4.29). The file has then to be closed and deselected.
   * @returns false when no transfer is under way: refuse or abort instead
   */
  interrupt(endCode: number, reason: PesitError): boolean {
    if (this.phase !== 'open' || transitionOf(this.role, this.state, '>IDT') === undefined) return false;
    this.data.receiver.discard();
    this.forgetRequest();
    this.#interruption = { endCode, error: reason };
    this.send('IDT', { diagnostic: reason.diagnostic, endCode, ...textForPeer(reason) });
    return true;
  }

  /**
   * Asks the peer to go back to a sync point and continue from there (RESYN, §4.4.24). Its answer is an ACK(RESYN) event.
   * @param from number of the point, 0 the start; default: the last one that is stored here, or that the peer has acknowledged
   * @returns false when it was not negotiated (PI 23) or no transfer is under way: interrupt instead. After
   *   `MAX_RESYNCHRONISATIONS` of a transfer the session is aborted with 3-320.
   */
  resynchronise(reason: PesitError, from?: number): boolean {
    if (this.phase !== 'open' || this.terms?.resynchronisation !== true) return false;
    if (!this.situation.mayResynchronise || (this.#sendsData() && !this.data.isOurs)) return false;
    const point = this.data.resynchronisation.choose(from);
    this.data.receiver.discard();
    this.forgetRequest();
    const excess = this.data.resynchronisation.excess();
    if (excess !== undefined) {
      this.abort(excess);
      return true;
    }
    this.data.resynchronisation.ask(point);
    this.send('RESYN', { diagnostic: reason.diagnostic, restartPoint: point.number, ...textForPeer(reason) });
    return true;
  }

  /**
   * ACK(RESYN) (§4.4.25): answers a RESYN event, once the file stands where it said.
   * @param fromStart instead of there, go back to the start of the file
   * @returns false when there is nothing left to answer: the transfer was interrupted, or the connection is over
   */
  acceptResyn(fromStart = false): boolean {
    if (this.phase !== 'open' || this.situation.resynchronising !== 'to answer') return false;
    const point = this.data.resynchronisation.answer(fromStart);
    if (point === undefined) return false;
    this.data.goBack(point);
    this.send('ACK(RESYN)', { restartPoint: point.number });
    return true;
  }

  /** True between a RESYN, by either side, and its ACK(RESYN): data will flow again. */
  get resynchronising(): boolean {
    return this.situation.resynchronising !== 'no';
  }

  /** Applies a received control FPDU that the automaton has admitted; emits what the application must know. */
  protected abstract apply(fpdu: Fpdu): void;

  /** A transfer was interrupted: a request that still waits for an answer gets none. */
  protected forgetRequest(): void {
    // A requester has no requests of the peer to answer.
  }

  /** The data of the file are ours to send, from `from` on. */
  protected startSender(from: SyncPoint): void {
    this.data.startSending({
      entitySize: this.entitySize,
      prefix: ENTITY_PREFIX_LENGTH[this.options.dialect],
      crc: this.reader.crc,
      destination: this.peerId,
      interval: this.terms?.syncInterval ?? 0,
      window: this.terms?.syncWindow ?? 0,
      from,
    });
  }

  /** @throws PesitError 3-319 see `checkCounts` */
  protected checkCounts(name: FpduName, parameters: Parameters, articlesMayDiffer: boolean): void {
    this.data.checkCounts(name, parameters, articlesMayDiffer, (text) => {
      this.notice(text);
    });
  }

  protected override holds(condition: Condition): boolean {
    switch (condition) {
      case 'ck':
        return this.terms?.resynchronisation === true;
      case 'ended':
        return this.data.ended;
      case 'served':
        return this.holds('ended') && this.holds('reading') && this.holds('ck');
      default:
        return this.direction === condition;
    }
  }

  /** A wrong CRC in the data is worth a RESYN (pesit-e.md §6); until it is answered all that comes is dropped anyway. */
  protected override survives(error: unknown): boolean {
    if (!(error instanceof PesitError) || error.condition !== 'damaged FPDU') return false;
    if (this.situation.resynchronising === 'asked') return true;
    const damage = new PesitError(error.message, { fault: 'remote', diagnostic: '1-100', cause: error });
    if (!this.resynchronise(damage)) return false;
    this.notice(`${error.message}: asked to send again`);
    return true;
  }

  protected override takeData(raw: RawFpdu): void {
    const { style } = this.data.receiver;
    try {
      this.#receiveData(raw);
    } catch (error) {
      this.#interruptOn(error);
    }
    if (this.data.receiver.style !== style) this.emit({ kind: 'STYLE', style: this.data.receiver.style });
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
        if (fpdu.name === 'DTF.END') this.data.expectNoArticle('DTF.END');
        this.apply(fpdu);
    }
  }

  #receiveData(raw: RawFpdu): void {
    // Some peers do not keep to the PI 25 that was answered (pesit-e.md §3).
    const { entityLength } = this.reader;
    if (entityLength > this.entitySize)
      this.#noticeOnce(
        'large entity',
        `data in an entity of ${entityLength} bytes, PI 25 allows ${this.entitySize}: taken`,
      );
    this.data.receiver.receive(raw);
  }

  #receiveSyn(number: number): void {
    if ((this.terms?.syncInterval ?? 0) === 0) throw unexpected('SYN', 'no sync points, as PI 7 says');
    this.emit({ kind: 'SYN', point: this.data.receivePoint(number, this.receiveWindow) });
  }

  #receiveAckSyn(number: number): void {
    const point = this.data.acknowledged(number);
    if (point === undefined) throw unexpected(`ACK(SYN) ${number}`, `at most ACK(SYN) ${this.data.sentPoint}`);
    if (point !== 'known') this.emit({ kind: 'ACK(SYN)', point });
    else if (this.terms?.syncWindow === 0)
      this.#noticeOnce('unwanted ACK(SYN)', 'ACK(SYN): not asked for, as the window is 0 (PI 7): passed over');
    else this.notice(`ACK(SYN) ${number}: nothing waits for it`);
  }

  #noticeOnce(habit: 'large entity' | 'unwanted ACK(SYN)', text: string): void {
    if (this.#noted.has(habit)) return;
    this.#noted.add(habit);
    this.notice(text);
  }

  #sendsData(): boolean {
    return (this.direction === 'writing') === (this.role === 'requester');
  }

  #receiveResyn({ parameters }: Fpdu): void {
    const excess = this.data.resynchronisation.excess();
    if (excess !== undefined) throw excess;
    this.data.receiver.discard();
    this.forgetRequest();
    const point = this.data.resynchronisation.receive(parameters.restartPoint as number);
    const error = this.refusal('asked to go back', parameters.diagnostic as PeerDiagnostic, parameters);
    this.emit({ kind: 'RESYN', point, error });
  }

  #receiveAckResyn(number: number): void {
    const point = this.data.resynchronisation.answered(number);
    this.data.goBack(point);
    this.emit({ kind: 'ACK(RESYN)', point });
  }

  /** Errors of the data of this transfer interrupt it; all others end the connection. */
  #interruptOn(error: unknown): void {
    if (!(error instanceof PesitError) || endOf(error.diagnostic) === 'connection') throw error;
    const cancel = this.role === 'server' ? END_CODES.cancelledByServer : END_CODES.cancelledByRequester;
    const endCode = endsForGood(error.diagnostic) ? cancel : END_CODES.error;
    this.interrupt(endCode, error);
  }

  #receiveIdt(fpdu: Fpdu): void {
    if (this.situation.fileIsOpen) {
      this.notice('IDT crossed our ACK(TRANS.END): acknowledged, what was answered stays');
      this.send('ACK(IDT)', {});
      return;
    }
    const diagnostic = fpdu.parameters.diagnostic as PeerDiagnostic;
    const endCode = fpdu.parameters.endCode as number;
    this.data.receiver.discard();
    this.#interruption = { endCode, error: this.refusal('interrupted the transfer', diagnostic, fpdu.parameters) };
    this.send('ACK(IDT)', {});
    this.#interrupted('peer');
  }

  /** A peer may leave instead of acknowledging our IDT: the transfer ends by the reason of that, the connection by its loss. */
  protected override end(error: PesitError | undefined, phase: 'closing' | 'closed'): void {
    if (this.phase === 'open') this.#interrupted('us');
    super.end(error, phase);
  }

  #interrupted(by: 'us' | 'peer'): void {
    const interruption = this.#interruption;
    if (interruption === undefined) return;
    this.#interruption = undefined;
    this.forgetRequest();
    this.emit({ kind: 'INTERRUPTED', by, ...interruption });
  }
}
