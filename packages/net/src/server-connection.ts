import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { END_CODES, PesitError, REPLY_EXPECTED, SUCCESS } from '@pesit-node/protocol';
import type { ConnectionTerms, FileTerms, FpduName, Parameters, ServerSession } from '@pesit-node/protocol';
import type { ArticleOutflow } from './article-outflow.js';
import { Connection } from './connection.js';
import type { WireObserver } from './connection.js';
import { asPesitError } from './errors.js';
import { FileData } from './file-data.js';
import type { SessionListener } from './file-data.js';
import type { ConnectIndication, ServerConnection, ServerHandler } from './handler.js';

export interface ServerConnectionOptions {
  readonly socket: Socket;
  readonly session: ServerSession;
  readonly indication: Omit<ConnectIndication, 'parameters'>;
  readonly accept: (connection: ServerConnection) => ServerHandler;
  /** Asked before the application: reasons of the listener to refuse a CONNECT. */
  readonly admit: () => PesitError | undefined;
  /** Why the listener is closing, when it is: no new session, no new file. */
  readonly draining: () => PesitError | undefined;
}

/** One partner on a listener: turns the events of a `ServerSession` into calls of a `ServerHandler` and back into answers. */
export class PartnerConnection implements ServerConnection {
  readonly id = randomUUID();
  readonly remoteAddress: string;
  /** Resolves when the connection is over and the handler has been told. */
  readonly finished: Promise<void>;
  readonly #options: ServerConnectionOptions;
  readonly #session: ServerSession;
  readonly #connection: Connection;
  readonly #handler: ServerHandler;
  readonly #data: FileData;
  #observer: WireObserver | undefined;
  /** Resolves when the last source is no longer asked for articles. */
  #sent: Promise<void> = Promise.resolve();
  /** A file is accepted and neither ended nor reported as failed. */
  #fileOpen = false;
  /** The application was asked to deliver the file: too late to go back. */
  #ending = false;
  /** What the partner said of its own data in DTF.END. */
  #dataError: PesitError | undefined;
  /** The requests of one connection are handled one after the other, also when the application is slow. */
  #queue: Promise<void> = Promise.resolve();
  #finish: () => void = () => undefined;

  constructor(options: ServerConnectionOptions) {
    this.#options = options;
    this.#session = options.session;
    this.remoteAddress = options.socket.remoteAddress ?? 'unknown';
    this.#handler = options.accept(this);
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#connection = new Connection(options.socket, options.session, {
      onEvent: (event) => {
        this.#data.handle(event);
      },
      onBytes: (direction, bytes) => {
        this.#observer?.(direction, bytes);
      },
      onBug: (error) => {
        this.#report(error);
      },
    });
    this.#data = new FileData(this.#connection, this.#listener());
  }

  get terms(): ConnectionTerms | undefined {
    return this.#session.terms;
  }

  get fileTerms(): FileTerms | undefined {
    return this.#session.fileTerms;
  }

  get totals(): { readonly dataBytes: number; readonly articles: number } {
    return this.#session.totals;
  }

  observe(observer: WireObserver | undefined): void {
    this.#observer = observer;
  }

  receive(bytes: Buffer): void {
    this.#connection.receive(bytes);
  }

  cancel(reason: PesitError): void {
    this.#data.stop();
    if (!this.#session.interrupt(END_CODES.cancelledByServer, reason)) this.#session.abort(reason);
    this.#connection.settle();
  }

  /** Interrupts the running transfer with IDT: 4, unless a restart would end the same way; aborts when none runs. */
  interrupt(reason: PesitError): void {
    this.#data.stop();
    const final = reason.diagnostic === '2-220' || reason.diagnostic === '2-226' || reason.diagnostic === '2-200';
    const endCode = final ? END_CODES.cancelledByServer : END_CODES.error;
    if (!this.#session.interrupt(endCode, reason)) this.#session.abort(reason);
    this.#connection.settle();
  }

  abort(reason: PesitError): void {
    this.#session.abort(reason);
    this.#connection.settle();
  }

  /** Ends the session when the listener is closing and no file is selected. */
  drain(): void {
    const reason = this.#options.draining();
    if (reason !== undefined && (this.#session.state === 'CN03' || this.#session.state === 'CN01')) this.abort(reason);
  }

  /** Resolves when the socket is closed. */
  closed(): Promise<void> {
    return this.#connection.closed();
  }

  /** Closes the socket without a word. */
  destroy(): void {
    this.#connection.socket.destroy();
  }

  #listener(): SessionListener {
    return {
      fpdu: (name, parameters) => {
        this.#enqueue(() => this.#answer(name, parameters));
      },
      goesBack: () => {
        if (this.#ending) throw tooLateToGoBack();
        this.#dataError = undefined;
      },
      interrupted: (error, endCode) => {
        this.#enqueue(() => this.#failFile(error, endCode));
      },
      learned: (style) => {
        this.#handler.learned(style);
      },
      notice: (text) => {
        this.#handler.notice(text);
      },
      ended: (error) => {
        this.#enqueue(() => this.#end(error));
      },
      failed: (error) => {
        this.interrupt(this.#reason(error, '2-213'));
      },
    };
  }

  #enqueue(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => {
      this.#report(error);
      this.abort(asPesitError(error, '3-399'));
    });
  }

  async #answer(name: FpduName, parameters: Parameters): Promise<void> {
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
    this.#connection.settle();
    this.drain();
  }

  async #connect(parameters: Parameters): Promise<void> {
    try {
      const refusal = this.#options.admit();
      if (refusal !== undefined) throw refusal;
      const answer = await this.#handler.connect({ ...this.#options.indication, parameters });
      this.#refuseWhileDraining();
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
    const reason = this.#options.draining();
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
      await this.#failFile(reason, undefined);
      return;
    }
    this.#reply(name, accept);
  }

  async #write(): Promise<() => void> {
    this.#refuseSecondTransfer();
    this.#dataError = undefined;
    this.#ending = false;
    const { from, sink } = await this.#handler.write();
    return () => {
      this.#data.receive(sink);
      this.#session.acceptWrite(from);
    };
  }

  async #read(point: number): Promise<() => void> {
    this.#refuseSecondTransfer();
    this.#ending = false;
    const { from, source } = await this.#handler.read(point);
    return () => {
      this.#session.acceptRead(from);
      this.#sent = this.#send(this.#data.send(source, from));
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
      await this.#failFile(reason, undefined);
      this.#reply('TRANS.END', () => {
        this.#session.refuseEnd(reason);
      });
    }
  }

  async #deselect(): Promise<void> {
    if (this.#fileOpen) {
      const text = 'the partner deselected the file without a transfer';
      await this.#failFile(new PesitError(text, { fault: 'refused', diagnostic: '2-223' }), undefined);
    }
    if (!this.#session.awaits('DESELECT')) return;
    this.#session.acceptDeselect();
    this.#connection.settle();
    await this.#handler.deselected();
  }

  async #send(outflow: ArticleOutflow): Promise<void> {
    try {
      do await outflow.run(this.#session.entitySize);
      while (await outflow.overtaken());
    } catch (error) {
      this.interrupt(this.#reason(error, '2-213'));
    }
  }

  async #failFile(error: PesitError, endCode: number | undefined): Promise<void> {
    if (!this.#fileOpen) return;
    this.#fileOpen = false;
    this.#data.stop();
    // The application may close its file now: nothing reads it any more.
    await this.#sent;
    await this.#handler.transferFailed(error, endCode);
  }

  async #end(error: PesitError | undefined): Promise<void> {
    const released = 'the connection was released before the end of the transfer';
    try {
      await this.#failFile(error ?? new PesitError(released, { fault: 'refused', diagnostic: '2-223' }), undefined);
    } catch (bug) {
      this.#report(bug);
    }
    try {
      this.#handler.ended(error);
    } catch (bug) {
      this.#report(bug);
    }
    this.#finish();
  }

  /** Answers `name`, unless the connection ended or the transfer was interrupted while the application was asked. */
  #reply(name: FpduName, answer: () => void): void {
    if (this.#session.awaits(name)) answer();
  }

  #reason(error: unknown, diagnostic: '2-213' | '2-215' | '3-399'): PesitError {
    if (!(error instanceof PesitError)) this.#report(error);
    return asPesitError(error, diagnostic);
  }

  /** Tells the application of a bug; one in the telling itself must not take the connection with it. */
  #report(error: unknown): void {
    try {
      this.#handler.failed(error);
    } catch {
      // There is nobody left to tell.
    }
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
