/**
 * The dialogue of a requester and its partner, one thing at a time: which answer is waited for, and what ends the
 * waiting before it comes: an IDT, a RESYN that overtakes it, the end of the connection, a signal of the program.
 */
import { END_CODES, PesitError, SUCCESS, refuses } from '@pesit-node/protocol';
import type { FpduName, Parameters, RequesterSession, SyncPoint } from '@pesit-node/protocol';
import { Connection } from './connection.js';
import type { WireObserver } from './connection.js';
import { asPesitError, cancellation } from './errors.js';
import { FileData } from './file-data.js';
import type { SessionListener } from './file-data.js';
import type { PartnerTexts, RequesterOptions, TransferTotals } from './requester-types.js';
import type { Transport } from './transport.js';

interface Waiting {
  readonly name: FpduName;
  readonly resolve: (parameters: Parameters) => void;
  readonly reject: (error: PesitError) => void;
}

/** Answers that say that a file or a message has arrived: a warning is not good enough. */
const FINAL: ReadonlySet<FpduName> = new Set(['ACK(TRANS.END)', 'ACK(MSG)']);

export class Conversation {
  /** Shown every byte of the session. */
  observer: WireObserver | undefined;
  readonly data: FileData;
  readonly #session: RequesterSession;
  readonly #connection: Connection;
  readonly #options: Pick<RequesterOptions, 'notice' | 'learned'>;
  #waiting: Waiting | undefined;
  /** A DTF.END that came with the ACK(READ) before it, while nobody waited yet. */
  #early: Parameters | undefined;
  #texts: PartnerTexts = {};
  #acknowledged: ((point: SyncPoint, waitedMs?: number) => void) | undefined;
  #wentBack = 0;
  /** Why the running transfer, or the session, is over: `#cancelled` by us where no IDT can say so. */
  #interruption: PesitError | undefined;
  #cancelled: PesitError | undefined;
  /** The session is over; without an error it was released. */
  #end: { error: PesitError | undefined } | undefined;
  #totals: TransferTotals = { dataBytes: 0, articles: 0 };

  constructor(
    transport: Transport,
    session: RequesterSession,
    options: Pick<RequesterOptions, 'notice' | 'learned' | 'observer' | 'limits'>,
  ) {
    this.observer = options.observer;
    this.#session = session;
    this.#options = options;
    this.#connection = new Connection(transport, session, {
      onEvent: (event) => {
        this.data.handle(event);
      },
      onBytes: (direction, bytes) => {
        this.observer?.(direction, bytes);
      },
      // The session is aborted with it, and that is what the running operation rejects with.
      onBug: () => undefined,
    });
    this.data = new FileData(this.#connection, this.#listener(), options.limits);
  }

  /** Why the session is over; undefined while it is not. */
  get ended(): PesitError | undefined {
    // Few ask why a session was released: the error, with its stack, is not made for the others.
    return this.#end && (this.#end.error ??= released());
  }

  /** Texts of the answers to the running or last operation. */
  get texts(): PartnerTexts {
    return this.#texts;
  }

  /** Resynchronisations so far: what was waited for before one is void. */
  get wentBack(): number {
    return this.#wentBack;
  }

  /** Totals of the running or last transfer. */
  get totals(): TransferTotals {
    return this.#session.phase === 'open' ? this.#session.totals : this.#totals;
  }

  /** IDT was sent and ACK(IDT) has not come. */
  get interrupting(): boolean {
    return this.#session.situation.interrupting;
  }

  /**
   * An operation begins: what ended the last one is of no account.
   * @param acknowledged a sync point of it is safe
   */
  begin(acknowledged?: (point: SyncPoint, waitedMs?: number) => void): void {
    this.#acknowledged = acknowledged;
    this.#interruption = undefined;
    this.#early = undefined;
    this.#texts = {};
  }

  /** The data of a file are over, well or not. */
  stop(): void {
    this.#totals = this.#session.totals;
    this.data.stop();
  }

  abort(reason: PesitError): void {
    this.#session.abort(reason);
    this.#connection.attend();
  }

  /** Writes what the session has to say. */
  attend(): void {
    this.#connection.attend();
  }

  /** Resolves when the connection is gone. */
  closed(): Promise<void> {
    return this.#connection.closed();
  }

  /** After waiting for something else than the partner: the transfer may be over meanwhile. */
  async goOn(): Promise<void> {
    if (this.interrupting) await this.interrupted();
    const over = this.#over;
    if (over !== undefined) throw over;
  }

  get #over(): PesitError | undefined {
    return this.ended ?? this.#interruption ?? this.#cancelled;
  }

  /** Runs `work` until it ends or `signal` aborts it. */
  async guarded<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    this.#cancelled = undefined;
    if (signal === undefined) return work();
    const cancel = (): void => {
      const reason = cancellation(signal);
      if (this.interrupt(reason)) return;
      this.#cancelled = reason;
      this.#fail(reason);
    };
    if (signal.aborted) throw cancellation(signal);
    signal.addEventListener('abort', cancel, { once: true });
    try {
      return await work();
    } finally {
      signal.removeEventListener('abort', cancel);
      this.#cancelled = undefined;
    }
  }

  /** Sends IDT when a transfer runs. @returns whether it was sent */
  interrupt(reason: PesitError): boolean {
    const endCode =
      reason.fault === 'local' && reason.condition !== 'cancelled' ? END_CODES.error : END_CODES.cancelledByRequester;
    const sent = this.#session.interrupt(endCode, reason);
    if (sent) this.data.stop();
    this.#connection.attend();
    return sent;
  }

  /** Waits for the end of an interruption that has begun, and rejects with its reason. */
  async interrupted(): Promise<never> {
    if (this.#over === undefined) await this.answerTo('ACK(IDT)');
    throw (
      this.#interruption ??
      this.#over ??
      new PesitError('the transfer was interrupted', { fault: 'local', diagnostic: '2-216', condition: 'cancelled' })
    );
  }

  /** Waits for an FPDU of the partner; a negative one rejects. */
  async answerTo(name: FpduName): Promise<Parameters> {
    // A file that was given up is still closed and deselected.
    const closes = name === 'ACK(CRF)' || name === 'ACK(DESELECT)';
    const answer = new Promise<Parameters>((resolve, reject) => {
      const over = closes ? this.ended : this.#over;
      if (over !== undefined) reject(over);
      else if (name === 'DTF.END' && this.#early !== undefined) resolve(this.#early);
      else this.#waiting = { name, resolve, reject };
    });
    this.#connection.attend();
    const parameters = await answer;
    this.#texts = { ...this.#texts, ...textsIn(parameters) };
    const { diagnostic = SUCCESS } = parameters;
    const refused = FINAL.has(name) ? diagnostic !== SUCCESS : refuses(diagnostic);
    if (refused && name !== 'DTF.END' && !closes)
      throw this.#session.refusal(`refused ${requestOf(name)}`, diagnostic, parameters);
    // An ABORT or IDT may have come behind the answer; but a file that the partner has acknowledged is through.
    if (!closes && name !== 'ACK(TRANS.END)') await this.goOn();
    return parameters;
  }

  #listener(): SessionListener {
    return {
      fpdu: (name, parameters) => {
        if (this.#waiting?.name === name) this.#resolve(parameters);
        else if (name === 'DTF.END') this.#early = parameters;
      },
      goesBack: () => {
        this.#wentBack += 1;
        this.#early = undefined;
        // The answer is void; whoever waits for it sees that the transfer went back.
        if (this.#waiting?.name === 'ACK(TRANS.END)') this.#resolve({});
      },
      acknowledged: (point, waitedMs) => this.#acknowledged?.(point, waitedMs),
      interrupted: (error) => {
        this.#interruption = error;
        this.#fail(error);
      },
      learned: (style) => this.#options.learned?.(style),
      notice: (text) => this.#options.notice?.(text),
      ended: (error) => {
        this.#totals = this.#session.totals;
        this.#end = { error };
        this.#fail(error);
      },
      failed: (error) => {
        this.interrupt(asPesitError(error, '2-213'));
      },
    };
  }

  #resolve(parameters: Parameters): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(parameters);
  }

  /** @param error undefined: the session was released */
  #fail(error: PesitError | undefined): void {
    this.data.stop();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error ?? released());
  }
}

const released = (): PesitError => new PesitError('the session was released', { fault: 'local', diagnostic: '3-312' });

/** `ACK(CREATE)` → `CREATE`. */
const requestOf = (answer: FpduName): string => /^ACK\((.*)\)$/.exec(answer)?.[1] ?? answer;

/** The parameters are views of the received bytes: copied. */
const textsIn = ({ diagnosticComplement, freeMessage }: Parameters): PartnerTexts => ({
  ...(diagnosticComplement === undefined ? {} : { diagnosticComplement: Buffer.from(diagnosticComplement) }),
  ...(freeMessage === undefined ? {} : { freeMessage: Buffer.from(freeMessage) }),
});
