/**
 * The requests of one partner, each answered by the application: what it resolves with is the positive answer, what it rejects
 * with the negative one. Keeps the books of the file: accepted, on its way, delivered or given up, each once.
 */
import { PesitError, REPLY_EXPECTED, SUCCESS } from '@pesit-node/protocol';
import type { FpduName, Parameters, ServerSession } from '@pesit-node/protocol';
import type { ArticleOutflow } from './article-outflow.js';
import { asPesitError } from './errors.js';
import type { FileData } from './file-data.js';
import type { ConnectIndication, ServerHandler } from './handler.js';

/** Answers of the listener to the requests of a partner. */
export interface RequestTerms {
  readonly indication: Omit<ConnectIndication, 'parameters'>;
  /** Asked before the application: reasons of the listener to refuse a CONNECT, which may be one that takes no place. */
  readonly admit: (takesNoPlace: boolean) => PesitError | undefined;
  /** See `ServerConnection`; asked after the application, in case that it did not. */
  readonly takePlace: () => void;
  /** Why no new session and no new file may begin, when none may. */
  readonly draining: () => PesitError | undefined;
}

interface PartnerRequestsOptions {
  readonly session: ServerSession;
  readonly handler: ServerHandler;
  readonly data: FileData;
  readonly terms: RequestTerms;
  /** Sends what the session has to say. */
  readonly attend: () => void;
  /** The file that is being sent cannot continue. */
  readonly interrupt: (reason: PesitError) => void;
  /** A bug of this side. */
  readonly report: (error: unknown) => void;
}

export class PartnerRequests {
  readonly #options: PartnerRequestsOptions;
  readonly #session: ServerSession;
  readonly #handler: ServerHandler;
  readonly #data: FileData;
  /** Resolves when the last source is no longer asked for articles. */
  #sent: Promise<void> = Promise.resolve();
  /** A file is accepted and neither ended nor reported as failed. */
  #fileOpen = false;
  /** The application was asked to deliver the file: too late to go back. */
  #ending = false;
  /** Counts of its own data that the partner gave in DTF.END. */
  #dataError: PesitError | undefined;

  constructor(options: PartnerRequestsOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#handler = options.handler;
    this.#data = options.data;
  }

  get fileIsOpen(): boolean {
    return this.#fileOpen;
  }

  /** The transfer goes back to a sync point. @throws PesitError 2-218 when its file is being delivered */
  goesBack(): void {
    if (this.#ending) throw tooLateToGoBack();
    this.#dataError = undefined;
  }

  /** Handles a request and answers it, when it still waits for an answer. */
  async answer(name: FpduName, parameters: Parameters): Promise<void> {
    // The connection went away, or the transfer was interrupted, while this request waited for its turn.
    if (name !== 'DTF.END' && !this.#session.awaits(name)) return;
    switch (name) {
      case 'CONNECT':
        await this.#connect(parameters);
        break;
      case 'CREATE':
        await this.#request(name, async () => {
          this.#refuseWhileDraining();
          const answer = await this.#handler.create(parameters);
          this.#fileOpen = true;
          return () => {
            this.#session.acceptCreate(answer);
          };
        });
        break;
      case 'SELECT':
        await this.#request(name, async () => {
          this.#refuseWhileDraining();
          const answer = await this.#handler.select(parameters);
          this.#fileOpen = true;
          return () => {
            this.#session.acceptSelect(answer);
          };
        });
        break;
      case 'ORF':
        this.#session.acceptOpen();
        break;
      case 'WRITE':
        await this.#request(name, () => this.#write());
        break;
      case 'READ':
        await this.#request(name, () => this.#read(parameters.restartPoint ?? 0));
        break;
      case 'DTF.END':
        this.#dataEnded(parameters);
        break;
      case 'TRANS.END':
        await this.#endTransfer();
        break;
      case 'CRF':
        this.#session.acceptClose();
        break;
      case 'DESELECT':
        await this.#deselect();
        break;
      case 'RELEASE':
        this.#session.acceptRelease();
        break;
      case 'MSG':
        await this.#message(parameters);
        break;
      default:
        break;
    }
    this.#options.attend();
  }

  /** The accepted file, when there is one, came to nothing. */
  async failFile(error: PesitError, endCode: number | undefined): Promise<void> {
    if (!this.#fileOpen) return;
    this.#fileOpen = false;
    this.#data.stop();
    // The application may close its file now: nothing reads it.
    await this.#sent;
    await this.#handler.transferFailed(error, endCode);
  }

  async #connect(parameters: Parameters): Promise<void> {
    try {
      const takesNoPlace = this.#handler.takesNoPlace?.(parameters) ?? false;
      const refusal = this.#options.terms.admit(takesNoPlace);
      if (refusal !== undefined) throw refusal;
      const answer = await this.#handler.connect({ ...this.#options.terms.indication, parameters });
      this.#refuseWhileDraining();
      if (!takesNoPlace) this.#options.terms.takePlace();
      this.#reply('CONNECT', () => {
        this.#session.acceptConnection(answer);
      });
    } catch (error) {
      const reason = this.#reason(error, '3-399');
      this.#reply('CONNECT', () => {
        this.#session.refuseConnection(reason);
      });
    }
  }

  async #message(parameters: Parameters): Promise<void> {
    try {
      this.#refuseWhileDraining();
      if (this.#handler.message === undefined) throw messagesRefused();
      const { reply, dataCode } = (await this.#handler.message(parameters)) ?? {};
      const wanted = parameters.attributesWanted === REPLY_EXPECTED;
      this.#reply('MSG', () => {
        this.#session.acceptMessage(wanted ? { reply, dataCode } : {});
      });
    } catch (error) {
      const reason = this.#reason(error, '2-215');
      this.#reply('MSG', () => {
        this.#session.refuseMessage(reason);
      });
    }
  }

  #refuseWhileDraining(): void {
    const reason = this.#options.terms.draining();
    if (reason !== undefined) throw reason;
  }

  /** Asks the application, then answers; what it rejects with becomes the negative ACK. */
  async #request(name: FpduName, ask: () => Promise<() => void>): Promise<void> {
    let accept: () => void;
    try {
      accept = await ask();
    } catch (error) {
      const reason = this.#reason(error, '2-215');
      this.#reply(name, () => {
        this.#session.refuse(reason);
      });
      await this.failFile(reason, undefined);
      return;
    }
    this.#reply(name, accept);
  }

  async #write(): Promise<() => void> {
    this.#refuseSecondTransfer();
    this.#dataError = undefined;
    this.#ending = false;
    const { from, sink, pace } = await this.#handler.write();
    await pace?.take(0);
    return () => {
      this.#data.receive(sink, pace);
      this.#session.acceptWrite(from);
    };
  }

  async #read(point: number): Promise<() => void> {
    this.#refuseSecondTransfer();
    this.#ending = false;
    const { from, source, pace } = await this.#handler.read(point);
    return () => {
      this.#session.acceptRead(from);
      this.#sent = this.#send(this.#data.send(source, from, pace));
    };
  }

  /** §4.8.4 lets a requester ask again in OF02; the application has delivered the file, or given it up. */
  #refuseSecondTransfer(): void {
    if (this.#fileOpen) return;
    const text = 'the transfer of this file is over: deselect it, and create or select it again';
    throw new PesitError(text, { fault: 'remote', diagnostic: '2-226' });
  }

  #dataEnded(parameters: Parameters): void {
    const { diagnostic = SUCCESS } = parameters;
    if (diagnostic !== SUCCESS)
      this.#dataError = this.#session.refusal('ended the data with an error', diagnostic, parameters);
  }

  async #endTransfer(): Promise<void> {
    this.#ending = true;
    this.#data.received();
    try {
      if (this.#dataError !== undefined) throw this.#dataError;
      await this.#handler.endTransfer();
      this.#fileOpen = false;
      this.#data.stop();
      this.#reply('TRANS.END', () => {
        this.#session.acceptEnd();
      });
    } catch (error) {
      const reason = this.#reason(error, '2-215');
      await this.failFile(reason, undefined);
      this.#reply('TRANS.END', () => {
        this.#session.refuseEnd(reason);
      });
    }
  }

  async #deselect(): Promise<void> {
    if (this.#fileOpen) {
      const text = 'the partner deselected the file without a transfer';
      await this.failFile(new PesitError(text, { fault: 'refused', diagnostic: '2-223' }), undefined);
    }
    if (!this.#session.awaits('DESELECT')) return;
    this.#session.acceptDeselect();
    this.#options.attend();
    await this.#handler.deselected();
  }

  async #send(outflow: ArticleOutflow): Promise<void> {
    try {
      do await outflow.run(this.#session.entitySize);
      while (await outflow.overtaken());
    } catch (error) {
      this.#options.interrupt(this.#reason(error, '2-213'));
    }
  }

  /** Answers `name`, unless the connection ended or the transfer was interrupted while the application was asked. */
  #reply(name: FpduName, answer: () => void): void {
    if (this.#session.awaits(name)) answer();
  }

  #reason(error: unknown, diagnostic: '2-213' | '2-215' | '3-399'): PesitError {
    if (!(error instanceof PesitError)) this.#options.report(error);
    return asPesitError(error, diagnostic);
  }
}

const messagesRefused = (): PesitError =>
  new PesitError('messages are not taken by this server', {
    fault: 'local',
    diagnostic: '2-209',
    peerText: 'messages are not taken by this server',
  });

const tooLateToGoBack = (): PesitError =>
  new PesitError('the partner went back to a sync point when the file was being delivered: it has to be restarted', {
    fault: 'remote',
    diagnostic: '2-218',
  });
