import { randomInt } from 'node:crypto';
import { breaksProtocol, PesitError, RequesterSession, START, SUCCESS } from '@pesit-node/protocol';
import type { ConnectionTerms, FileTerms, Parameters, PeerDiagnostic, SyncPointOptions } from '@pesit-node/protocol';
import { now } from './connection.js';
import type { WireObserver } from './connection.js';
import { Conversation } from './conversation.js';
import { asFinalError, asPesitError, tlsFailure } from './errors.js';
import { openTransport, preconnect } from './opening.js';
import type {
  MessageReply,
  PartnerTexts,
  ReceiveFile,
  RequesterOptions,
  SendFile,
  SendMessage,
  TransferTotals,
} from './requester-types.js';
import { connectTcp } from './tcp-transport.js';
import { TlsError } from './tls-failures.js';
import type { Connected, TransportSecurity } from './transport.js';
import { windowAdvice } from './window-advice.js';

/**
 * A session that this side opened. One operation at a time. Every method rejects with a `PesitError`: `refused` with the
 * diagnostic of the partner, `transport`, `timeout`, `remote` or `local`. After a refused or interrupted file the session
 * stays usable (`usable`) for the next one.
 */
export class PesitRequester {
  /** Milliseconds that the TCP connection took: there and back once. */
  readonly roundTripMs: number;
  /** Facts that TLS has found out; undefined: the connection is plain. */
  readonly security: TransportSecurity | undefined;
  readonly #syncPoints: SyncPointOptions | undefined;
  readonly #session: RequesterSession;
  readonly #talk: Conversation;
  #answer: Parameters = {};

  /** The connection, pre-connection when asked for, CONNECT and its answer. */
  static async open(options: RequesterOptions): Promise<PesitRequester> {
    const connected = await openTransport(options.transport ?? connectTcp, options);
    if (options.preconnection !== undefined) await preconnect(connected.transport, options.preconnection, options);
    const requester = new PesitRequester(connected, options);
    await requester.#connect(options);
    return requester;
  }

  private constructor({ transport, roundTripMs }: Connected, options: RequesterOptions) {
    this.roundTripMs = roundTripMs;
    this.security = transport.security;
    this.#syncPoints = options.connect.syncPoints;
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
    this.#talk = new Conversation(transport, this.#session, options);
  }

  async #connect({ connect, connectTimeout, signal }: RequesterOptions): Promise<void> {
    const timer = setTimeout(() => {
      const text = `no answer to CONNECT within ${connectTimeout} ms: check the dialect of the remote server`;
      this.abort(new PesitError(text, { fault: 'timeout', diagnostic: '3-317' }));
    }, connectTimeout);
    try {
      await this.#talk.guarded(signal, async () => {
        this.#session.connect(connect);
        this.#answer = await this.#talk.answerTo('ACONNECT');
      });
    } catch (error) {
      // A message that cannot be sent, or was cancelled, leaves nothing behind.
      const reason = this.#withAdvice(asPesitError(error, '3-399'));
      this.abort(reason);
      throw reason;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Another service on the port, or the other dialect, shows as a protocol error before ACONNECT; a certificate refused as an end. */
  #withAdvice(error: PesitError): PesitError {
    const { message, fault, diagnostic, cause } = error;
    if (this.#session.terms !== undefined) return error;
    if (cause instanceof TlsError) return tlsFailure('no session', cause);
    if (fault === 'transport' && this.security !== undefined) {
      const hint = 'over TLS a partner that does not accept our certificate (keystoreName) closes without a word';
      return new PesitError(`${message}; ${hint}`, { fault, diagnostic, cause });
    }
    if (fault !== 'remote' || !breaksProtocol(diagnostic)) return error;
    const advice =
      'perhaps what answers is no PeSIT server, or speaks the other dialect: check host, port and dialect of the remote server';
    return new PesitError(`${message}: ${advice}`, { fault, diagnostic, peerText: message, cause: error });
  }

  /** Which sync points would let more through, as a sentence; undefined where those negotiated are enough. */
  get advice(): string | undefined {
    return windowAdvice(this.roundTripMs, this.terms, this.#syncPoints)?.text;
  }

  get terms(): ConnectionTerms {
    if (this.#session.terms === undefined) throw new Error('the connection is not established');
    return this.#session.terms;
  }

  /** ACONNECT as it came: what it asked for, not what was agreed. */
  get answer(): Parameters {
    return this.#answer;
  }

  /** Terms of the running or last file: PI 25, and PI 21 once the file is open. */
  get fileTerms(): FileTerms | undefined {
    return this.#session.fileTerms;
  }

  /** Why the session is over, `local` 3-312 when it was released; undefined while it is not. */
  get ended(): PesitError | undefined {
    return this.#talk.ended;
  }

  /** True while no file is selected and the connection is up. */
  get usable(): boolean {
    return this.#session.phase === 'open' && this.#session.situation.betweenFiles;
  }

  /** Totals of the running or last transfer. */
  get totals(): TransferTotals {
    return this.#talk.totals;
  }

  /** Free text in the answers to the running or last file or message, refusals too. */
  get texts(): PartnerTexts {
    return this.#talk.texts;
  }

  /** CREATE … DESELECT. Resolves after a positive ACK(TRANS.END). An aborted `signal` interrupts with IDT 16. */
  sendFile(file: SendFile): Promise<TransferTotals> {
    return this.#transfer(file, async () => {
      this.#session.create(file.request);
      await this.#talk.answerTo('ACK(CREATE)');
      this.#session.open();
      await this.#talk.answerTo('ACK(ORF)');
      this.#session.write();
      const { restartPoint = 0 } = await this.#talk.answerTo('ACK(WRITE)');
      const from = restartPoint === 0 ? START : await file.pointOf?.(restartPoint);
      await this.#talk.goOn();
      if (from === undefined) throw unknownPoint(restartPoint);
      this.#session.startSending(from);
      const outflow = this.#talk.data.send(file.source, from, file.pace);
      for (;;) {
        const sent = await outflow.run(this.#session.entitySize);
        if (!sent) await this.#talk.interrupted();
        await this.#talk.goOn();
        const totals = await this.#endTransfer();
        if (totals !== undefined) return totals;
      }
    });
  }

  /** SELECT … DESELECT. Resolves after a positive ACK(TRANS.END): deliver then. */
  receiveFile(file: ReceiveFile): Promise<TransferTotals> {
    return this.#transfer(file, async () => {
      this.#session.select(file.request);
      const attributes = await this.#talk.answerTo('ACK(SELECT)');
      const { from, sink } = await file.open(attributes);
      await this.#talk.goOn();
      this.#session.open();
      await this.#talk.answerTo('ACK(ORF)');
      await file.pace?.take(0);
      await this.#talk.goOn();
      this.#talk.data.receive(sink, file.pace);
      this.#session.read(from);
      await this.#talk.answerTo('ACK(READ)');
      for (;;) {
        const end = await this.#talk.answerTo('DTF.END');
        const wentBack = this.#talk.wentBack;
        this.#talk.data.received();
        if ((end.diagnostic ?? SUCCESS) !== SUCCESS) {
          throw this.#session.refusal('ended the data with an error', end.diagnostic ?? '2-299', end);
        }
        await file.stored();
        await this.#talk.goOn();
        if (this.#session.resynchronising || this.#talk.wentBack !== wentBack) continue;
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
    if (this.#talk.ended !== undefined) throw this.#talk.ended;
    if (!this.usable)
      throw new Error(`no message can be sent (${this.#session.describeState()}): one operation at a time`);
    this.#talk.begin();
    return this.#talk.guarded(signal, async () => {
      this.#session.sendMessage(request);
      try {
        const { message, dataCode } = await this.#talk.answerTo('ACK(MSG)');
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
        this.#talk.attend();
      } catch (error) {
        this.abort(asPesitError(error, '3-399'));
      }
    } else if (this.#session.phase === 'open') {
      this.abort(new PesitError('released by the program', { fault: 'local', diagnostic: '3-312' }));
    }
    await this.#talk.closed();
  }

  /** Resolves when the connection is gone, whoever ended it. */
  closed(): Promise<void> {
    return this.#talk.closed();
  }

  /** Shows every byte of the session to `observer` from now on, e.g. to a `SessionTrace`; undefined: to nobody. */
  observe(observer: WireObserver | undefined): void {
    this.#talk.observer = observer;
  }

  abort(reason: PesitError): void {
    this.#talk.abort(reason);
  }

  /** TRANS.END and its answer, with the totals of both sides compared. @returns undefined when a RESYN has overtaken it */
  async #endTransfer(): Promise<TransferTotals | undefined> {
    const { totals } = this.#session;
    const wentBack = this.#talk.wentBack;
    this.#session.endTransfer();
    await this.#talk.answerTo('ACK(TRANS.END)');
    return this.#talk.wentBack === wentBack ? totals : undefined;
  }

  /** Runs one file and brings the session back to where the next can begin, however it ended. */
  async #transfer(
    { signal, acknowledged }: Pick<SendFile, 'signal' | 'acknowledged'>,
    run: () => Promise<TransferTotals>,
  ): Promise<TransferTotals> {
    if (this.#talk.ended !== undefined) throw this.#talk.ended;
    if (!this.usable) throw new Error(`no file can begin (${this.#session.describeState()}): one operation at a time`);
    this.#talk.begin(acknowledged);
    try {
      const totals = await this.#talk.guarded(signal, run);
      // The partner has the file, and has said so: what becomes of the session afterwards does not change that.
      await this.#deselect(SUCCESS).catch((error: unknown) => {
        this.abort(asPesitError(error, '3-399'));
      });
      return totals;
    } catch (error) {
      const reason = asFinalError(error);
      await this.#giveUp(reason);
      throw reason;
    } finally {
      this.#talk.stop();
    }
  }

  /** Closes and deselects the file after a failure. Never rejects: the failure itself is what counts. */
  async #giveUp(reason: PesitError): Promise<void> {
    try {
      if (this.#talk.interrupt(reason) || this.#talk.interrupting)
        await this.#talk.interrupted().catch(() => undefined);
      await this.#deselect(reason.fault === 'refused' ? SUCCESS : reason.diagnostic);
    } catch (error) {
      this.abort(asPesitError(error, '3-399'));
    }
  }

  /** CRF and DESELECT, as far as the file was opened and selected. */
  async #deselect(diagnostic: PeerDiagnostic): Promise<void> {
    const session = this.#session;
    if (session.situation.fileIsOpen) {
      session.close(diagnostic);
      await this.#talk.answerTo('ACK(CRF)');
    }
    if (session.situation.fileIsSelected) {
      session.deselect(diagnostic);
      await this.#talk.answerTo('ACK(DESELECT)');
    }
    if (session.phase === 'open' && !session.situation.betweenFiles) {
      // A request was given up while its answer was on the way: nothing else brings both sides together again.
      this.abort(new PesitError(`given up (${session.describeState()})`, { fault: 'local', diagnostic: '3-312' }));
    }
  }
}

const unknownPoint = (point: number): PesitError =>
  new PesitError(
    `the partner asks to restart at sync point ${point}, which was never placed: the file has to be sent again`,
    {
      fault: 'local',
      diagnostic: '2-214',
      condition: 'point unknown',
      peerText: `sync point ${point} is unknown here`,
    },
  );
