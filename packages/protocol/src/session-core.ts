/**
 * One end of a connection: bytes to FPDUs, FPDUs through the automaton, timers, output, events, and how it ends. The data of its
 * file are an object of their own, `DataTransfer`; `session.ts` says what the FPDUs mean for it.
 */
import { transitionOf } from './automaton.js';
import type { AutomatonEvent, Condition, Transition } from './automaton.js';
import { DataTransfer } from './data-transfer.js';
import { decodeBody } from './decoding.js';
import type { Fpdu } from './decoding.js';
import { SUCCESS, describeDiagnostic, diagnosticOf, refuses } from './diagnostics.js';
import { encodeFpdu } from './encoding.js';
import { PesitError } from './errors.js';
import type { PeerDiagnostic } from './diagnostics.js';
import { isDataFpdu } from './fpdus.js';
import type { FpduName } from './fpdus.js';
import { FpduReader } from './framing.js';
import type { RawFpdu } from './framing.js';
import { OutgoingEntities } from './outgoing-entities.js';
import type { Parameters } from './parameters.js';
import type { SessionEvent, SessionOptions } from './session-events.js';
import { STATES } from './states.js';
import type { Role, State, StateRow, Wait } from './states.js';
import { printable, textForPeer } from './texts.js';
import { timersOf } from './timers.js';
import type { Timers } from './timers.js';
import { quoteDiagnostic } from './wording.js';

const MAX_NOTICES_A_SESSION = 64;

/** Events of which the answer's sign is part of the name. */
const SIGNED: ReadonlySet<FpduName> = new Set(['ACK(CREATE)', 'ACK(SELECT)', 'ACK(ORF)', 'ACK(READ)', 'ACK(WRITE)']);

const DATA_EVENTS = { DTF: '<DTF', DTFDA: '<DTFDA', DTFMA: '<DTFMA', DTFFA: '<DTFFA' } as const;

export abstract class SessionCore {
  readonly role: Role;
  readonly timers: Timers;

  protected readonly options: SessionOptions;
  protected readonly reader: FpduReader;
  protected readonly data: DataTransfer;
  protected peerId = 0;
  protected now: number;

  #state: State = 'CN01';
  #phase: 'open' | 'closing' | 'closed' = 'open';
  #armedAt: number;
  #outputBlocked = false;
  #held = false;
  /** A batch went out before all that was received was taken apart. */
  #unread = false;
  readonly #output: OutgoingEntities;
  #events: SessionEvent[] = [];
  #notices = 0;
  #wrongDestinationNoted = false;

  protected constructor(role: Role, options: SessionOptions, crc: boolean | undefined) {
    this.role = role;
    this.options = options;
    this.timers = timersOf(options.timers);
    this.reader = new FpduReader(options.dialect, crc);
    this.data = new DataTransfer(options.singleArticle ?? 'unknown', {
      multiArticle: options.multiArticle ?? true,
      concatenation: options.concatenation ?? true,
    });
    this.#output = new OutgoingEntities(options.dialect);
    this.now = options.now;
    this.#armedAt = options.now;
  }

  get state(): State {
    return this.#state;
  }

  /** Meaning of the present state: the columns of `states.ts`. After the end those of CN01. */
  get situation(): StateRow {
    return STATES[this.#state];
  }

  /** `closing`: nothing more is sent; end our side and wait for the peer's. `closed`: destroy the connection. */
  get phase(): 'open' | 'closing' | 'closed' {
    return this.#phase;
  }

  /** When to call `handleTimeout`, in the clock of `now`; undefined when no timer runs. */
  get deadline(): number | undefined {
    if (this.#phase === 'closed') return undefined;
    if (this.#phase === 'closing') return this.#armedAt + this.timers.close;
    const wait = this.#wait;
    if (wait === undefined) return undefined;
    // The request it has to answer has not reached it yet.
    if (this.#outputBlocked) return this.#armedAt + this.timers.write;
    if (wait !== 'blocked') return this.#armedAt + this.timers[wait];
    return this.data.windowFull ? this.#armedAt + this.timers.response : undefined;
  }

  /** Bytes received that wait for the rest of their FPDU: views of them go out later. */
  get pending(): number {
    return this.reader.pending;
  }

  /** Bytes to write, in order, since the last call. */
  takeOutput(): Buffer[] {
    return this.#output.take();
  }

  /** The next event. Goes on with what was received while there is some left and the session is not held. */
  nextEvent(): SessionEvent | undefined {
    if (this.#events.length === 0 && this.#unread && !this.#held) this.#read();
    return this.#events.shift();
  }

  /**
   * While held, bytes that came and were not taken apart yet stay as they are: the disk is behind. No plain data are left
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
    if (this.situation.data === 'receives') this.#armedAt = now;
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
        this.#unread = this.data.batchIsFull;
        if (this.#unread) break;
      }
      this.#flush();
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
    const wait = this.#wait;
    const idle = wait === 'idle' && !this.#outputBlocked;
    const seconds = Math.round((deadline - this.#armedAt) / 1000);
    const text = this.reader.lacksCrc
      ? 'the partner answers without the CRC that PI 1 asked for: it does not support it, switch CRC off'
      : idle
        ? `no new file for ${seconds} s: the connection is closed`
        : `the partner ${this.#outputBlocked ? 'took' : 'sent'} nothing for ${seconds} s (${this.describeState()}): check it and the line`;
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
      // A requester that has sent RELEASE may not wait for our RELCONF: it is still done.
      this.end(this.situation.releaseReceived ? undefined : error, 'closed');
    }
    this.#phase = 'closed';
  }

  /** Tells whether the transport takes no more bytes for now, so that a peer that does not read is noticed. */
  setOutputBlocked(blocked: boolean, now: number): void {
    this.now = now;
    this.#outputBlocked = blocked;
    // A session that is closing has Tr, whatever the peer takes.
    if (this.#phase === 'open') this.#armedAt = now;
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
    if (this.situation.notConnected && this.role === 'requester') {
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

  /** In words, e.g. `writing, sending data; state TDE02A`. */
  describeState(): string {
    return `${this.situation.meaning}; state ${this.#state}`;
  }

  /** The refusal of the peer, as an error of the `refused` kind. */
  refusal(what: string, diagnostic: PeerDiagnostic, parameters: Parameters): PesitError {
    const text = printable(parameters.diagnosticComplement ?? parameters.freeMessage);
    return new PesitError(`the partner ${what}: ${quoteDiagnostic(diagnostic, text)}`, {
      fault: 'refused',
      diagnostic,
      endCode: parameters.endCode,
    });
  }

  /** A data FPDU that the automaton has admitted. */
  protected abstract takeData(raw: RawFpdu): void;

  /** A control FPDU that the automaton has admitted. */
  protected abstract take(fpdu: Fpdu): void;

  /** Whether a condition of the automaton holds (§4.8.1.3). */
  protected abstract holds(condition: Condition): boolean;

  /** Whether the session continues behind bytes that cannot be read. */
  protected abstract survives(error: unknown): boolean;

  /** The articles received so far go out, before what follows them. */
  #flush(): void {
    const batch = this.data.receiver.take();
    if (batch !== undefined) this.emit({ kind: 'ARTICLES', batch });
  }

  /** The next FPDU; what is damaged and can be sent again is passed over. */
  #next(): RawFpdu | undefined {
    for (;;) {
      try {
        return this.reader.next();
      } catch (error) {
        if (!this.survives(error)) throw error;
        if (this.#phase !== 'open') return undefined;
      }
    }
  }

  get #wait(): Wait | undefined {
    return this.situation.waits[this.role];
  }

  #admit(raw: RawFpdu): void {
    this.#checkDestination(raw);
    if (isDataFpdu(raw.name)) {
      if (this.#step(DATA_EVENTS[raw.name], raw.name)) this.takeData(raw);
      return;
    }
    // An ABORT names who has sent it, whatever else is wrong with it (§4.7.1).
    if (this.peerId === 0 && (raw.name === 'CONNECT' || raw.name === 'ACONNECT')) this.peerId = raw.source;
    // Copied: opaque parameters outlive the buffers that the transport reads into.
    const body = Buffer.concat(raw.body);
    if (raw.name === 'ABORT') {
      this.#receiveAbort(raw, body);
      return;
    }
    const fpdu = decodeBody(raw.name, raw.destination, raw.source, body);
    for (const notice of fpdu.notices) this.notice(notice);
    if (!this.#step(this.#eventOf(fpdu), fpdu.name)) return;
    this.#flush();
    this.take(fpdu);
  }

  #eventOf({ name, parameters: { diagnostic = SUCCESS } }: Fpdu): AutomatonEvent {
    if (!SIGNED.has(name)) return `<${name}` as AutomatonEvent;
    if (refuses(diagnostic)) return `<${name}-` as AutomatonEvent;
    if (diagnostic !== SUCCESS)
      this.notice(`${name} with the warning ${describeDiagnostic(diagnostic)}: taken as a yes`);
    return `<${name}+` as AutomatonEvent;
  }

  /** @returns false when the FPDU is to be dropped (it was overtaken by a RESYN or an IDT) */
  #step(event: AutomatonEvent, name: FpduName): boolean {
    const transition = transitionOf(this.role, this.#state, event);
    if (transition === undefined || !this.#allows(transition)) {
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

  #allows({ when }: Transition): boolean {
    return when === undefined || this.holds(when);
  }

  #receiveAbort(raw: RawFpdu, body: Buffer): void {
    let parameters: Parameters = {};
    try {
      parameters = decodeBody('ABORT', raw.destination, raw.source, body).parameters;
    } catch {
      // The specification itself has an ABORT without PI codes (§4.7.4, remark): the three bytes are the diagnostic.
      if (body.length >= 3)
        parameters = {
          diagnostic: diagnosticOf(body.readUInt8(0) & 3, body.readUInt16BE(1)),
        };
    }
    this.end(this.refusal('aborted the connection', parameters.diagnostic ?? '3-399', parameters), 'closing');
  }

  /** Ends the session on any error of the peer; errors that are not `PesitError` are bugs and are thrown on. */
  protected fail(error: unknown): void {
    if (!(error instanceof PesitError)) throw error;
    this.data.receiver.discard();
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
    const next = this.#stateAfter(name, sign);
    const source =
      name === 'CONNECT' || name === 'ACONNECT' || name === 'RELEASE' || name === 'RELCONF'
        ? this.options.connectionId
        : 0;
    this.output(name, parameters, this.peerId, source);
    this.#state = next;
    this.#armedAt = this.now;
  }

  /** An FPDU that leaves among data: the automaton has to know it. */
  protected sends(name: FpduName): void {
    this.#state = this.#stateAfter(name);
    this.#armedAt = this.now;
  }

  #stateAfter(name: FpduName, sign?: '+' | '-'): State {
    const transition = transitionOf(this.role, this.#state, `>${name}${sign ?? ''}` as AutomatonEvent);
    if (this.#phase !== 'open' || transition === undefined || transition.to === 'DROP' || !this.#allows(transition)) {
      throw new Error(`${name} cannot be sent (${this.describeState()}, ${this.#phase})`);
    }
    return transition.to;
  }

  protected output(name: FpduName, parameters: Parameters, destination: number, source: number): void {
    const crc = name === 'CONNECT' ? parameters.crc === 1 : this.reader.crc;
    this.#output.add(encodeFpdu(name, destination, source, parameters, this.#output.prefix), crc);
  }

  protected emit(event: SessionEvent): void {
    this.#events.push(event);
  }

  protected notice(text: string): void {
    if (this.#notices++ < MAX_NOTICES_A_SESSION) this.emit({ kind: 'NOTICE', text });
  }
}
