/**
 * Applications that answer every event of a session as the protocol allows, whatever came before: what a fuzzed session
 * needs to get further than its first FPDU. They keep to the rules for programs (session.ts), so that whatever a session
 * throws is its own fault.
 */
import {
  burstBufferSize,
  PesitError,
  SUCCESS,
  transitionOf,
  type AutomatonEvent,
  type CompressionMode,
  type FpduName,
  type Parameters,
  type RequesterSession,
  type ServerSession,
  type Session,
  type SessionEvent,
  type SyncPoint,
} from '@pesit-node/protocol';
import type { Chance } from '@pesit-node/protocol/testing';

export const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/** How both applications behave. */
export interface Manners {
  readonly chance: Chance;
  /** One in so many answers is not the usual one: a refusal, an interruption, a resynchronisation; 0 = none. */
  readonly mood: number;
  readonly entitySize: number;
  readonly intervalKb: number;
  readonly window: number;
  readonly resynchronisation: boolean;
  readonly compression: CompressionMode | 0;
  /** Lengths of the articles that are sent. */
  readonly articles: readonly number[];
}

const REFUSED = (): PesitError => new PesitError('not today', { fault: 'local', diagnostic: '2-226' });

/** The part that both have in common: data in, data out, points. */
abstract class Autopilot<S extends Session> {
  readonly session: S;
  /** Article bytes that came. */
  received = 0;
  #output: Buffer[] = [];
  protected readonly manners: Manners;
  #next = 0;
  /** A burst is filled and was not sent yet. */
  #laidOut = false;

  constructor(session: S, manners: Manners) {
    this.session = session;
    this.manners = manners;
  }

  /** Handles all events, then sends what may be sent. @throws whatever the session throws, and what it says of itself wrongly */
  run(): void {
    for (let event = this.session.nextEvent(); event !== undefined; event = this.session.nextEvent()) {
      this.#handle(event);
    }
    this.#pump();
    this.#output.push(...this.session.takeOutput());
  }

  /** Everything that is to be sent since the last call, in order. */
  takeOutput(): Buffer[] {
    const output = this.#output;
    this.#output = [];
    return output;
  }

  protected get moody(): boolean {
    return this.manners.mood > 0 && this.manners.chance.below(this.manners.mood) === 0;
  }

  /** Whether a verb that sends this may be called now. */
  protected may(event: AutomatonEvent): boolean {
    if (this.session.phase !== 'open') return false;
    const transition = transitionOf(this.session.role, this.session.state, event);
    return transition !== undefined && transition.to !== 'DROP';
  }

  protected abstract answer(name: FpduName, parameters: Parameters): void;
  protected abstract interrupted(): void;

  /** The articles begin anew. */
  protected rewind(to = 0): void {
    this.#next = to;
    this.#laidOut = false;
  }

  #handle(event: SessionEvent): void {
    switch (event.kind) {
      case 'FPDU':
        this.answer(event.name, event.parameters);
        break;
      case 'ARTICLES': {
        const { parts, ends, bytes } = event.batch;
        const sum = parts.reduce((total, part) => total + part.length, 0);
        if (sum !== bytes || ends.some((end) => end > parts.length)) throw new Error('a batch that contradicts itself');
        this.received += bytes;
        break;
      }
      case 'SYN':
        if (this.moody) this.session.resynchronise(REFUSED());
        else this.session.acknowledgeSyn(event.point.number);
        break;
      case 'RESYN':
        this.rewind(event.point.articles);
        this.session.acceptResyn();
        break;
      case 'ACK(RESYN)':
        this.rewind(event.point.articles);
        break;
      case 'INTERRUPTED':
        if (!(event.error instanceof PesitError)) throw new Error('an interruption without a PesitError');
        this.interrupted();
        break;
      case 'ENDED':
        if (event.error !== undefined && !(event.error instanceof PesitError))
          throw new Error('the end of a session without a PesitError');
        break;
      default:
        break;
    }
  }

  #pump(): void {
    const session: S = this.session;
    const { articles } = this.manners;
    if (!this.#canSend() || !this.startedSending) return;
    if (this.moody && session.interrupt(4, REFUSED())) return;
    while (this.#canSend() && (this.#laidOut || this.#next < articles.length)) {
      if (!this.#laidOut) this.#layOut(articles);
      // It waits for an acknowledgement.
      if (this.#isFull()) return;
      this.#laidOut = false;
      // DTF.END in the entity of the last articles, or behind it.
      const last = this.#next >= articles.length && this.manners.chance.below(2) === 0;
      if (last) session.endData();
      this.#output.push(...session.takeOutput(), Buffer.from(session.endBurst()));
      if (last) {
        this.dataEnded();
        return;
      }
    }
    if (this.#canSend() && this.#next >= articles.length) {
      session.endData();
      this.dataEnded();
    }
  }

  /** Fills a burst with the next articles. */
  #layOut(articles: readonly number[]): void {
    const burst = this.session.beginBurst(Buffer.alloc(burstBufferSize(this.session.entitySize, 0)));
    while (this.#next < articles.length && burst.reserve(articles[this.#next] as number)) this.#next++;
    for (const slot of burst.slots) slot.fill(0x40 + (this.#next % 7));
    this.#laidOut = true;
  }

  /** Asked anew each time: what is done in between changes it. */
  #canSend(): boolean {
    return this.session.sending;
  }

  #isFull(): boolean {
    return this.session.windowFull;
  }

  /** DTF.END was sent. */
  protected abstract dataEnded(): void;

  protected abstract get startedSending(): boolean;
}

export class ServerAutopilot extends Autopilot<ServerSession> {
  #serving = false;

  protected override get startedSending(): boolean {
    return this.#serving;
  }

  protected override interrupted(): void {
    // The requester closes the file.
  }

  protected override dataEnded(): void {
    this.#serving = false;
  }

  protected override answer(name: FpduName, parameters: Parameters): void {
    const { session, manners } = this;
    if (!session.awaits(name)) return;
    const { entitySize: maxEntitySize, compression, resynchronisation, intervalKb, window } = manners;
    switch (name) {
      case 'CONNECT':
        if (this.moody) session.refuseConnection(REFUSED());
        else
          session.acceptConnection({
            resynchronisation,
            ...(intervalKb > 0 ? { syncPoints: { intervalKb, window } } : {}),
          });
        break;
      case 'CREATE':
      case 'SELECT':
      case 'ORF':
      case 'WRITE':
      case 'READ':
        if (this.moody || (name === 'READ' && parameters.restartPoint !== 0)) session.refuse(REFUSED());
        else if (name === 'CREATE') session.acceptCreate({ maxEntitySize, compression });
        else if (name === 'SELECT') {
          session.acceptSelect({
            ...{ maxEntitySize, compression, fileName: 'FILE', transferId: 77 },
            ...{ recordFormat: 0x80, recordLength: 65_535, maxReservationKb: 1 },
          });
        } else if (name === 'ORF') session.acceptOpen();
        else if (name === 'WRITE') session.acceptWrite(START);
        else {
          this.rewind();
          this.#serving = true;
          session.acceptRead(START);
        }
        break;
      case 'TRANS.END':
        this.#serving = false;
        if (this.moody) session.refuseEnd(REFUSED());
        else session.acceptEnd();
        break;
      case 'CRF':
        session.acceptClose();
        break;
      case 'DESELECT':
        session.acceptDeselect();
        break;
      case 'RELEASE':
        session.acceptRelease();
        break;
      case 'MSG':
        if (this.moody) session.refuseMessage(REFUSED());
        else session.acceptMessage(parameters.attributesWanted === 1 ? { reply: Buffer.from('received') } : {});
        break;
      default:
        break;
    }
  }
}

/** Steps of a requester after CONNECT, one after the other. */
export type Task = 'write' | 'read' | 'message';

export class RequesterAutopilot extends Autopilot<RequesterSession> {
  readonly #tasks: Task[];
  #started = false;
  #task: Task | undefined;

  constructor(session: RequesterSession, manners: Manners, tasks: readonly Task[]) {
    super(session, manners);
    this.#tasks = [...tasks];
  }

  protected override get startedSending(): boolean {
    return this.#started;
  }

  connect(): void {
    const { intervalKb, window, resynchronisation } = this.manners;
    this.session.connect({
      ...{ requester: 'FUZZ', server: 'TARGET', password: 'secret', accessType: 2, resynchronisation },
      ...(intervalKb > 0 ? { syncPoints: { intervalKb, window } } : {}),
      freeMessage: Buffer.from('fuzz'),
    });
  }

  protected override interrupted(): void {
    this.#started = false;
    if (this.may('>CRF')) this.session.close();
  }

  protected override answer(name: FpduName, parameters: Parameters): void {
    const { session } = this;
    const isPositive = (parameters.diagnostic ?? SUCCESS) === SUCCESS;
    switch (name) {
      case 'ACONNECT':
      case 'ACK(DESELECT)':
      case 'ACK(MSG)':
        this.#begin();
        break;
      case 'ACK(CREATE)':
      case 'ACK(SELECT)':
        if (!isPositive) this.#begin();
        else if (this.may('>ORF')) session.open();
        break;
      case 'ACK(ORF)':
        if (!isPositive) this.#leave();
        else if (this.#task === 'write' && this.may('>WRITE')) session.write();
        else if (this.#task === 'read' && this.may('>READ')) session.read(START);
        break;
      case 'ACK(WRITE)':
        if (!isPositive) this.#closeFile();
        else if (session.sending) {
          // Data sent before are nowhere on record here: the file begins at its start.
          this.rewind();
          this.#started = true;
          session.startSending({ ...START, number: Math.min(parameters.restartPoint ?? 0, 1) });
        }
        break;
      case 'ACK(READ)':
        if (!isPositive) this.#closeFile();
        break;
      case 'DTF.END':
        if (this.may('>TRANS.END')) session.endTransfer();
        break;
      case 'ACK(TRANS.END)':
        this.#closeFile();
        break;
      case 'ACK(CRF)':
        this.#leave();
        break;
      default:
        break;
    }
  }

  /** TRANS.END follows our own DTF.END at once. */
  protected override dataEnded(): void {
    this.#started = false;
    this.session.endTransfer();
  }

  #closeFile(): void {
    this.#started = false;
    if (this.may('>CRF')) this.session.close();
  }

  #leave(): void {
    if (this.may('>DESELECT')) this.session.deselect();
  }

  #begin(): void {
    const { session, manners } = this;
    this.#started = false;
    this.#task = this.#tasks.shift();
    const { entitySize: maxEntitySize, compression } = manners;
    const request = { fileIdentifier: { fileType: 0, fileName: 'FILE' }, transferId: 1, maxEntitySize, compression };
    if (this.#task === undefined) {
      if (this.may('>RELEASE')) session.release();
    } else if (this.#task === 'write') {
      if (this.may('>CREATE'))
        session.create({
          ...request,
          recordFormat: 0x80,
          recordLength: 65_535,
          maxReservationKb: 1,
          fileLabel: 'label',
        });
    } else if (this.#task === 'read') {
      if (this.may('>SELECT')) session.select(request);
    } else if (this.may('>MSG')) {
      const length = manners.chance.pick([0, 20, 5000]);
      session.sendMessage({
        ...{ fileIdentifier: { fileType: 0xffff, fileName: 'MSG' }, transferId: 1, replyExpected: true },
        ...{ message: Buffer.alloc(length, 0x4d), maxEntitySize: 1024 },
      });
    }
  }
}
