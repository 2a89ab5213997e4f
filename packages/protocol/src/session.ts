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
import { transitionOf } from './automaton.js';
import type { Condition } from './automaton.js';
import type { Fpdu } from './decoding.js';
import { DataSession, unexpected } from './data-session.js';
import { PesitError } from './errors.js';
import { endOf, endsForGood } from './diagnostics.js';
import type { PeerDiagnostic } from './diagnostics.js';
import type { RawFpdu } from './framing.js';
import { Resynchronisation } from './resynchronisation.js';
import { textForPeer } from './texts.js';

/** PI 19 (§3.7). */
export const END_CODES = { error: 4, suspended: 8, cancelledByServer: 12, cancelledByRequester: 16 } as const;

export abstract class Session extends DataSession {
  readonly #resynchronisation = new Resynchronisation(this.points);
  #interruption: { endCode: number; error: PesitError } | undefined;

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
   * Asks the peer to go back to a sync point and continue from there (RESYN, §4.4.24). Its answer is an ACK(RESYN) event.
   * @param from number of the point, 0 the start; default: the last one that is stored here, or that the peer has acknowledged
   * @returns false when it was not negotiated (PI 23) or no transfer is under way: interrupt instead. After
   *   `MAX_RESYNCHRONISATIONS` of a transfer the session is aborted with 3-320.
   */
  resynchronise(reason: PesitError, from?: number): boolean {
    if (this.phase !== 'open' || this.terms?.resynchronisation !== true) return false;
    if (!this.situation.mayResynchronise || (this.#sendsData() && this.sender === undefined)) return false;
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
   * @returns false when there is nothing left to answer: the transfer was interrupted, or the connection is over
   */
  acceptResyn(fromStart = false): boolean {
    if (this.phase !== 'open' || this.situation.resynchronising !== 'to answer') return false;
    const point = this.#resynchronisation.answer(fromStart);
    if (point === undefined) return false;
    this.goBack(point);
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

  protected override transferBegins(): void {
    this.#resynchronisation.start(this.sender);
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
    if (!(error instanceof PesitError) || error.condition !== 'damaged FPDU') return false;
    if (this.situation.resynchronising === 'asked') return true;
    const damage = new PesitError(error.message, { fault: 'remote', diagnostic: '1-100', cause: error });
    if (!this.resynchronise(damage)) return false;
    this.notice(`${error.message}: asked to send again`);
    return true;
  }

  protected override takeData(raw: RawFpdu): void {
    const style = this.receiver.style;
    try {
      this.receiveData(raw);
    } catch (error) {
      this.#interruptOn(error);
    }
    if (this.receiver.style !== style) this.emit({ kind: 'STYLE', style: this.receiver.style });
  }

  protected override take(fpdu: Fpdu): void {
    switch (fpdu.name) {
      case 'SYN':
        try {
          this.receiveSyn(fpdu.parameters.syncPoint as number);
        } catch (error) {
          this.#interruptOn(error);
        }
        break;
      case 'ACK(SYN)':
        this.receiveAckSyn(fpdu.parameters.syncPoint as number);
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

  #sendsData(): boolean {
    return (this.direction === 'writing') === (this.role === 'requester');
  }

  #receiveResyn({ parameters }: Fpdu): void {
    const excess = this.#resynchronisation.excess();
    if (excess !== undefined) throw excess;
    this.receiver.discard();
    this.forgetRequest();
    const point = this.#resynchronisation.receive(parameters.restartPoint as number);
    const error = this.refusal('asked to go back', parameters.diagnostic as PeerDiagnostic, parameters);
    this.emit({ kind: 'RESYN', point, error });
  }

  #receiveAckResyn(number: number): void {
    const point = this.#resynchronisation.answered(number);
    this.goBack(point);
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
    this.receiver.discard();
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
