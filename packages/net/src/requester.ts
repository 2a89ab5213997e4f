import { randomInt } from 'node:crypto';
import { connect as connectSocket } from 'node:net';
import type { Socket } from 'node:net';
import { END_CODES, PesitError, RequesterSession, SUCCESS, refuses } from '@pesit-node/protocol';
import type {
  ArticleSink,
  ArticleSource,
  ConnectRequest,
  ConnectionTerms,
  CreateRequest,
  DiagnosticCode,
  Dialect,
  FileTerms,
  FpduName,
  MessageRequest,
  Parameters,
  SelectRequest,
  SingleArticleStyle,
  SyncPoint,
  Timers,
} from '@pesit-node/protocol';
import { Connection, now } from './connection.js';
import type { WireObserver } from './connection.js';
import { asPesitError, cancellation } from './errors.js';
import { FileData } from './file-data.js';
import type { SessionListener } from './file-data.js';
import { openSocket, preconnect } from './opening.js';
import { ownBuffers } from './receive-buffers.js';

export interface RequesterOptions {
  readonly host: string;
  readonly port: number;
  readonly dialect: Dialect;
  /** Milliseconds for TCP and, each, for the answers to pre-connection and CONNECT. */
  readonly connectTimeout: number;
  readonly timers?: Partial<Timers>;
  readonly connect: ConnectRequest;
  /** Sent before CONNECT. */
  readonly preconnection?: { readonly identifier: string; readonly password: string } | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What earlier connections have learned of this partner's single articles. */
  readonly singleArticle?: SingleArticleStyle | undefined;
  /** Whether we send several articles in one DTF; default true. */
  readonly multiArticle?: boolean | undefined;
  /** Whether FPDUs of data share an entity (§4.5); default true. */
  readonly concatenation?: boolean | undefined;
  /** How the partner writes single articles; worth remembering. */
  readonly learned?: (style: SingleArticleStyle) => void;
  /** See `observe`: from CONNECT on. */
  readonly observer?: WireObserver | undefined;
  /** What was tolerated of the partner: for the log. */
  readonly notice?: (text: string) => void;
}

export interface SendFile {
  readonly request: CreateRequest;
  readonly source: ArticleSource;
  /**
   * Our record of the point in ACK(WRITE), with the source brought there; default: point 0 only. Undefined: the point is
   * unknown, IDT 2-214.
   */
  readonly pointOf?: (number: number) => Promise<SyncPoint | undefined>;
  readonly signal?: AbortSignal | undefined;
}

export interface ReceiveFile {
  readonly request: SelectRequest;
  /** ACK(SELECT) came: prepare the place. Rejection: the file is deselected and the rejection passed on. */
  readonly open: (attributes: Parameters) => Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink }>;
  /** All data came: resolve when they are on stable storage; then TRANS.END leaves. Called again when a RESYN brings more. */
  readonly stored: () => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

export interface SendMessage {
  readonly request: MessageRequest;
  /** Aborted before the answer came, it ends the session: nobody can tell whether the partner has the message. */
  readonly signal?: AbortSignal | undefined;
}

/** A positive ACK(MSG). */
export interface MessageReply {
  /** PI 91; undefined when the partner gave none, or none was asked for. */
  readonly reply: Buffer | undefined;
  /** PI 16 of the reply. */
  readonly dataCode: number | undefined;
}

export interface TransferTotals {
  readonly dataBytes: number;
  readonly articles: number;
}

interface Waiting {
  readonly name: FpduName;
  readonly resolve: (parameters: Parameters) => void;
  readonly reject: (error: PesitError) => void;
}

/** Answers that say that a file or a message has arrived: a warning is not good enough. */
const FINAL: ReadonlySet<FpduName> = new Set(['ACK(TRANS.END)', 'ACK(MSG)']);

const START: SyncPoint = { number: 0, dataBytes: 0, articles: 0 };

/**
 * A session that this side opened. One operation at a time. Every method rejects with a `PesitError`: `refused` with the
 * diagnostic of the partner, `transport`, `timeout`, `remote` or `local`. After a refused or interrupted file the session
 * stays usable (`usable`) for the next one.
 */
export class PesitRequester {
  /** Milliseconds that the TCP connection took: there and back once. */
  readonly roundTripMs: number;
  readonly #session: RequesterSession;
  readonly #connection: Connection;
  readonly #notice: ((text: string) => void) | undefined;
  readonly #learned: ((style: SingleArticleStyle) => void) | undefined;
  #waiting: Waiting | undefined;
  /** A DTF.END that came with the ACK(READ) before it, while nobody waited yet. */
  #early: Parameters | undefined;
  readonly #data: FileData;
  #observer: WireObserver | undefined;
  /** Resynchronisations so far: what was waited for before one is void. */
  #wentBack = 0;
  /** Why the running transfer, or the session, is over: `#cancelled` by us where no IDT can say so. */
  #interruption: PesitError | undefined;
  #cancelled: PesitError | undefined;
  #ended: PesitError | undefined;
  #totals: TransferTotals = START;
  #answer: Parameters = {};

  /** TCP connection, pre-connection when asked for, CONNECT and its answer. */
  static async open(options: RequesterOptions): Promise<PesitRequester> {
    const { onread, attach } = ownBuffers();
    let began = now();
    const socket = await openSocket(() => {
      const opened = attach(connectSocket({ host: options.host, port: options.port, noDelay: true, onread }));
      opened.once('connectionAttempt', () => (began = now()));
      return opened;
    }, options);
    const roundTripMs = now() - began;
    if (options.preconnection !== undefined) await preconnect(socket, options.preconnection, options);
    const requester = new PesitRequester(socket, options, roundTripMs);
    await requester.#connect(options);
    return requester;
  }

  private constructor(socket: Socket, options: RequesterOptions, roundTripMs: number) {
    this.roundTripMs = roundTripMs;
    this.#notice = options.notice;
    this.#learned = options.learned;
    this.#observer = options.observer;
    this.#session = new RequesterSession(
      {
        dialect: options.dialect,
        now: now(),
        connectionId: randomInt(1, 256),
        timers: options.timers ?? {},
        ...(options.singleArticle === undefined ? {} : { singleArticle: options.singleArticle }),
        multiArticle: options.multiArticle ?? true,
        concatenation: options.concatenation ?? true,
      },
      options.connect.crc === true,
    );
    this.#connection = new Connection(socket, this.#session, {
      onEvent: (event) => {
        this.#data.handle(event);
      },
      onBytes: (direction, bytes) => {
        this.#observer?.(direction, bytes);
      },
      // The session is aborted with it, and that is what the running operation rejects with.
      onBug: () => undefined,
    });
    this.#data = new FileData(this.#connection, this.#listener());
  }

  async #connect({ connect, connectTimeout, signal }: RequesterOptions): Promise<void> {
    const timer = setTimeout(() => {
      const text = `no answer to CONNECT within ${connectTimeout} ms: check the dialect of the remote server`;
      this.abort(new PesitError(text, { fault: 'timeout', diagnostic: '3-317' }));
    }, connectTimeout);
    try {
      await this.#guarded(signal, async () => {
        this.#session.connect(connect);
        this.#answer = await this.#answerTo('ACONNECT');
      });
    } catch (error) {
      // What cannot be sent, or was cancelled, leaves nothing behind.
      const reason = asPesitError(error, '3-399');
      this.abort(reason);
      throw reason;
    } finally {
      clearTimeout(timer);
    }
  }

  get terms(): ConnectionTerms {
    if (this.#session.terms === undefined) throw new Error('the connection is not established');
    return this.#session.terms;
  }

  /** ACONNECT as it came: what it asked for, not what was agreed. */
  get answer(): Parameters {
    return this.#answer;
  }

  /** Of the running or last file: PI 25, and PI 21 once the file is open. */
  get fileTerms(): FileTerms | undefined {
    return this.#session.fileTerms;
  }

  /** True while no file is selected and the connection is up. */
  get usable(): boolean {
    return this.#session.phase === 'open' && this.#session.state === 'CN03';
  }

  /** Totals of the running or last transfer. */
  get totals(): TransferTotals {
    return this.#session.phase === 'open' ? this.#session.totals : this.#totals;
  }

  /** CREATE … DESELECT. Resolves after a positive ACK(TRANS.END). An aborted `signal` interrupts with IDT 16. */
  sendFile(file: SendFile): Promise<TransferTotals> {
    return this.#transfer(file.signal, async () => {
      this.#session.create(file.request);
      await this.#answerTo('ACK(CREATE)');
      this.#session.open();
      await this.#answerTo('ACK(ORF)');
      this.#session.write();
      const { restartPoint = 0 } = await this.#answerTo('ACK(WRITE)');
      const from = restartPoint === 0 ? START : await file.pointOf?.(restartPoint);
      await this.#goOn();
      if (from === undefined) throw unknownPoint(restartPoint);
      this.#session.startSending(from);
      const outflow = this.#data.send(file.source, from);
      for (;;) {
        const sent = await outflow.run(this.#session.entitySize);
        if (!sent) await this.#interrupted();
        await this.#goOn();
        const totals = await this.#endTransfer();
        if (totals !== undefined) return totals;
      }
    });
  }

  /** SELECT … DESELECT. Resolves after a positive ACK(TRANS.END): deliver then. */
  receiveFile(file: ReceiveFile): Promise<TransferTotals> {
    return this.#transfer(file.signal, async () => {
      this.#session.select(file.request);
      const attributes = await this.#answerTo('ACK(SELECT)');
      const { from, sink } = await file.open(attributes);
      await this.#goOn();
      this.#session.open();
      await this.#answerTo('ACK(ORF)');
      this.#data.receive(sink);
      this.#session.read(from);
      await this.#answerTo('ACK(READ)');
      for (;;) {
        const end = await this.#answerTo('DTF.END');
        const wentBack = this.#wentBack;
        this.#data.received();
        if ((end.diagnostic ?? SUCCESS) !== SUCCESS) {
          throw this.#session.refusal('ended the data with an error', end.diagnostic ?? '2-299', end);
        }
        await file.stored();
        await this.#goOn();
        if (this.#session.resynchronising || this.#wentBack !== wentBack) continue;
        const totals = await this.#endTransfer();
        if (totals !== undefined) return totals;
      }
    });
  }

  /**
   * MSG, or MSGDM, MSGMM…, MSGFM when the text is longer than one entity, and ACK(MSG). A message that the partner refuses
   * (`refused`) leaves the session usable.
   */
  async sendMessage({ request, signal }: SendMessage): Promise<MessageReply> {
    if (this.#ended !== undefined) throw this.#ended;
    if (!this.usable)
      throw new Error(`no message can be sent (${this.#session.describeState()}): one operation at a time`);
    this.#interruption = undefined;
    return this.#guarded(signal, async () => {
      this.#session.sendMessage(request);
      try {
        const { message, dataCode } = await this.#answerTo('ACK(MSG)');
        return { reply: message, dataCode };
      } catch (error) {
        const reason = asPesitError(error, '3-399');
        if (!this.usable) this.abort(reason);
        throw reason;
      }
    });
  }

  /** RELEASE; resolves when the partner has confirmed, or the connection is gone. Never rejects. */
  async release(): Promise<void> {
    if (this.usable) {
      try {
        this.#session.release();
        this.#connection.settle();
      } catch (error) {
        this.abort(asPesitError(error, '3-399'));
      }
    } else if (this.#session.phase === 'open') {
      this.abort(new PesitError('released by the program', { fault: 'local', diagnostic: '3-312' }));
    }
    await this.#connection.closed();
  }

  /** Shows every byte of the session to `observer` from now on, e.g. to a `SessionTrace`; undefined: to nobody. */
  observe(observer: WireObserver | undefined): void {
    this.#observer = observer;
  }

  abort(reason: PesitError): void {
    this.#session.abort(reason);
    this.#connection.settle();
  }

  /** After waiting for something else than the partner: the transfer may be over meanwhile. */
  async #goOn(): Promise<void> {
    if (this.#interrupting) await this.#interrupted();
    const over = this.#over;
    if (over !== undefined) throw over;
  }

  get #over(): PesitError | undefined {
    return this.#ended ?? this.#interruption ?? this.#cancelled;
  }

  /** IDT was sent and ACK(IDT) has not come. */
  get #interrupting(): boolean {
    return this.#session.state === 'TDE05' || this.#session.state === 'TDL05';
  }

  /** TRANS.END and its answer, with the totals of both sides compared. @returns undefined when a RESYN has overtaken it */
  async #endTransfer(): Promise<TransferTotals | undefined> {
    const { totals } = this.#session;
    const wentBack = this.#wentBack;
    this.#session.endTransfer();
    await this.#answerTo('ACK(TRANS.END)');
    return this.#wentBack === wentBack ? totals : undefined;
  }

  /** Runs one file and brings the session back to where the next can begin, however it ended. */
  async #transfer(signal: AbortSignal | undefined, run: () => Promise<TransferTotals>): Promise<TransferTotals> {
    if (this.#ended !== undefined) throw this.#ended;
    if (!this.usable) throw new Error(`no file can begin (${this.#session.describeState()}): one operation at a time`);
    this.#interruption = undefined;
    this.#early = undefined;
    try {
      const totals = await this.#guarded(signal, run);
      // The partner has the file, and has said so: what becomes of the session afterwards does not change that.
      await this.#deselect(SUCCESS).catch((error: unknown) => {
        this.abort(asPesitError(error, '3-399'));
      });
      return totals;
    } catch (error) {
      const reason = asPesitError(error, '2-215');
      await this.#giveUp(reason);
      throw reason;
    } finally {
      this.#totals = this.#session.totals;
      this.#data.stop();
    }
  }

  /** Closes and deselects the file after a failure. Never rejects: the failure itself is what counts. */
  async #giveUp(reason: PesitError): Promise<void> {
    try {
      if (this.#interrupt(reason) || this.#interrupting) await this.#interrupted().catch(() => undefined);
      await this.#deselect(reason.fault === 'refused' ? SUCCESS : reason.diagnostic);
    } catch (error) {
      this.abort(asPesitError(error, '3-399'));
    }
  }

  /** CRF and DESELECT, as far as the file was opened and selected. */
  async #deselect(diagnostic: DiagnosticCode): Promise<void> {
    const session = this.#session;
    if (session.state === 'OF02' || session.state === 'OF02ab') {
      session.close(diagnostic);
      await this.#answerTo('ACK(CRF)');
    }
    if (session.state === 'SF03' || session.state === 'SF03ab') {
      session.deselect(diagnostic);
      await this.#answerTo('ACK(DESELECT)');
    }
    if (session.phase === 'open' && session.state !== 'CN03') {
      // A request was given up while its answer was on the way: nothing else brings both sides together again.
      this.abort(new PesitError(`given up (${session.describeState()})`, { fault: 'local', diagnostic: '3-312' }));
    }
  }

  /** Runs `work` until it ends or `signal` aborts it. */
  async #guarded<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    this.#cancelled = undefined;
    if (signal === undefined) return work();
    const cancel = (): void => {
      const reason = cancellation(signal);
      if (this.#interrupt(reason)) return;
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
  #interrupt(reason: PesitError): boolean {
    const endCode =
      reason.fault === 'local' && reason.diagnostic !== '2-216' ? END_CODES.error : END_CODES.cancelledByRequester;
    const sent = this.#session.interrupt(endCode, reason);
    if (sent) this.#data.stop();
    this.#connection.settle();
    return sent;
  }

  /** Waits for the end of an interruption that has begun, and rejects with its reason. */
  async #interrupted(): Promise<never> {
    if (this.#over === undefined) await this.#answerTo('ACK(IDT)');
    throw (
      this.#interruption ??
      this.#over ??
      new PesitError('the transfer was interrupted', { fault: 'local', diagnostic: '2-216' })
    );
  }

  /** Waits for an FPDU of the partner; a negative one rejects. */
  async #answerTo(name: FpduName): Promise<Parameters> {
    // A file that was given up is still closed and deselected.
    const closes = name === 'ACK(CRF)' || name === 'ACK(DESELECT)';
    const answer = new Promise<Parameters>((resolve, reject) => {
      const over = closes ? this.#ended : this.#over;
      if (over !== undefined) reject(over);
      else if (name === 'DTF.END' && this.#early !== undefined) resolve(this.#early);
      else this.#waiting = { name, resolve, reject };
    });
    this.#connection.settle();
    const parameters = await answer;
    const { diagnostic = SUCCESS } = parameters;
    const refused = FINAL.has(name) ? diagnostic !== SUCCESS : refuses(diagnostic);
    if (refused && name !== 'DTF.END' && !closes)
      throw this.#session.refusal(`refused ${requestOf(name)}`, diagnostic, parameters);
    // An ABORT or IDT may have come behind the answer; but a file that the partner has acknowledged is through.
    if (!closes && name !== 'ACK(TRANS.END)') await this.#goOn();
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
      interrupted: (error) => {
        this.#interruption = error;
        this.#fail(error);
      },
      learned: (style) => this.#learned?.(style),
      notice: (text) => this.#notice?.(text),
      ended: (error) => {
        this.#totals = this.#session.totals;
        this.#ended = error ?? new PesitError('the session was released', { fault: 'local', diagnostic: '3-312' });
        this.#fail(this.#ended);
      },
      failed: (error) => {
        this.#interrupt(asPesitError(error, '2-213'));
      },
    };
  }

  #resolve(parameters: Parameters): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve(parameters);
  }

  #fail(error: PesitError): void {
    this.#data.stop();
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.reject(error);
  }
}

/** `ACK(CREATE)` → `CREATE`. */
const requestOf = (answer: FpduName): string => /^ACK\((.*)\)$/.exec(answer)?.[1] ?? answer;

const unknownPoint = (point: number): PesitError =>
  new PesitError(
    `the partner asks to restart at sync point ${point}, which was never placed: the file has to be sent again`,
    {
      fault: 'local',
      diagnostic: '2-214',
      peerText: `sync point ${point} is unknown here`,
    },
  );
