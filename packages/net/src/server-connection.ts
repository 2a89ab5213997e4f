import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { END_CODES, PesitError } from '@pesit-node/protocol';
import type { ConnectionTerms, FpduName, Parameters, ServerSession, SessionEvent } from '@pesit-node/protocol';
import { Connection } from './connection.js';
import { ArticleIntake, ArticleOutflow } from './data-pump.js';
import { asPesitError } from './errors.js';
import type { ConnectIndication, ServerConnection, ServerHandler } from './handler.js';

export interface ServerConnectionOptions {
  readonly socket: Socket;
  readonly session: ServerSession;
  readonly indication: Omit<ConnectIndication, 'parameters'>;
  readonly accept: (connection: ServerConnection) => ServerHandler;
  /** Asked before the application: reasons of the listener to refuse a CONNECT. */
  readonly admit: () => PesitError | undefined;
  /** Reasons of the listener to take no new file. */
  readonly refuseFiles: () => PesitError | undefined;
}

/** One partner on a listener: turns the events of a `ServerSession` into calls of a `ServerHandler` and back into answers. */
export class PartnerConnection implements ServerConnection {
  readonly id = randomUUID();
  readonly remoteAddress: string;
  readonly #options: ServerConnectionOptions;
  readonly #session: ServerSession;
  readonly #connection: Connection;
  readonly #handler: ServerHandler;
  #intake: ArticleIntake | undefined;
  #outflow: ArticleOutflow | undefined;
  /** A file is accepted and neither ended nor reported as failed. */
  #fileOpen = false;
  /** The requests of one connection are handled one after the other, also when the application is slow. */
  #queue: Promise<void> = Promise.resolve();
  #done: (() => void) | undefined;
  /** Called when a file was deselected. */
  onIdle: (() => void) | undefined;
  /** Resolves when the connection is gone and the handler has been told. */
  readonly finished: Promise<void>;

  constructor(options: ServerConnectionOptions) {
    this.#options = options;
    this.#session = options.session;
    this.remoteAddress = options.socket.remoteAddress ?? 'unknown';
    this.#handler = options.accept(this);
    this.finished = new Promise((resolve) => {
      this.#done = resolve;
    });
    this.#connection = new Connection(options.socket, options.session, (event) => {
      this.#handle(event);
    });
  }

  get terms(): ConnectionTerms | undefined {
    return this.#session.terms;
  }

  get totals(): { readonly dataBytes: number; readonly articles: number } {
    return this.#session.totals;
  }

  /** True while a file is selected. */
  get busy(): boolean {
    return this.#session.state !== 'CN03' && this.#session.state !== 'CN01';
  }

  receive(bytes: Buffer): void {
    this.#connection.receive(bytes);
  }

  cancel(reason: PesitError): void {
    this.#stopData();
    if (!this.#session.interrupt(END_CODES.cancelledByServer, reason)) this.#session.abort(reason);
    this.#connection.settle();
  }

  abort(reason: PesitError): void {
    this.#session.abort(reason);
    this.#connection.settle();
  }

  #handle(event: SessionEvent): void {
    switch (event.kind) {
      case 'ARTICLES':
        this.#intake?.take(event.batch);
        break;
      case 'SYN':
        this.#intake?.checkpoint(event.point);
        break;
      case 'ACK(SYN)':
        this.#outflow?.wake();
        break;
      case 'FPDU':
        this.#enqueue(() => this.#answer(event.name, event.parameters));
        break;
      case 'INTERRUPTED':
        this.#stopData();
        this.#enqueue(() => this.#failFile(event.error, event.endCode));
        break;
      case 'STYLE':
        this.#handler.learned(event.style);
        break;
      case 'NOTICE':
        this.#handler.notice(event.text);
        break;
      case 'ENDED':
        this.#stopData();
        this.#enqueue(() => this.#end(event.error));
        break;
    }
  }

  #enqueue(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => {
      this.#handler.failed(error);
      this.abort(asPesitError(error, '3-399'));
    });
  }

  async #answer(name: FpduName, parameters: Parameters): Promise<void> {
    // What was decided while the connection went away, or was interrupted, has no one to be told to.
    if (this.#session.phase !== 'open') return;
    switch (name) {
      case 'CONNECT':
        await this.#connect(parameters);
        break;
      case 'CREATE':
        await this.#request(name, async () => {
          const answer = await this.#handler.create(parameters);
          return () => {
            this.#session.acceptCreate(answer);
            this.#fileOpen = true;
          };
        });
        break;
      case 'SELECT':
        await this.#request(name, async () => {
          const answer = await this.#handler.select(parameters);
          return () => {
            this.#session.acceptSelect(answer);
            this.#fileOpen = true;
          };
        });
        break;
      case 'ORF':
        this.#session.acceptOpen();
        break;
      case 'WRITE':
        await this.#request(name, async () => {
          const { from, sink } = await this.#handler.write();
          return () => {
            this.#intake = new ArticleIntake(this.#connection, sink, (error) => {
              this.#interrupt(error);
            });
            this.#session.acceptWrite(from);
          };
        });
        break;
      case 'READ':
        await this.#request(name, async () => {
          const { from, source } = await this.#handler.read(parameters.restartPoint ?? 0);
          return () => {
            this.#session.acceptRead(from);
            this.#outflow = new ArticleOutflow(this.#connection, source);
            void this.#send(this.#outflow);
          };
        });
        break;
      case 'DTF.END':
        break;
      case 'TRANS.END':
        await this.#endTransfer();
        break;
      case 'CRF':
        this.#session.acceptClose();
        break;
      case 'DESELECT':
        if (this.#fileOpen) {
          const text = 'the partner deselected the file without a transfer';
          await this.#failFile(new PesitError(text, { fault: 'refused', diagnostic: '2-223' }), undefined);
        }
        this.#reply(name, () => {
          this.#session.acceptDeselect();
        });
        await this.#handler.deselected();
        this.onIdle?.();
        break;
      case 'RELEASE':
        this.#session.acceptRelease();
        break;
      case 'MSG':
      case 'MSGFM':
        this.#session.refuseMessage(
          new PesitError('messages are not taken by this server', { fault: 'local', diagnostic: '2-209' }),
        );
        break;
      default:
        break;
    }
    this.#connection.settle();
  }

  async #connect(parameters: Parameters): Promise<void> {
    try {
      const refusal = this.#options.admit();
      if (refusal !== undefined) throw refusal;
      const answer = await this.#handler.connect({ ...this.#options.indication, parameters });
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

  /** Asks the application, then answers; what it rejects with becomes the negative ACK. */
  async #request(name: FpduName, ask: () => Promise<() => void>): Promise<void> {
    let accept: () => void;
    try {
      const refusal = this.#fileOpen ? undefined : this.#options.refuseFiles();
      if (refusal !== undefined) throw refusal;
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

  async #endTransfer(): Promise<void> {
    this.#intake?.stop();
    try {
      await this.#handler.endTransfer();
      this.#fileOpen = false;
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

  async #send(outflow: ArticleOutflow): Promise<void> {
    try {
      await outflow.run(this.#session.entitySize);
    } catch (error) {
      this.#interrupt(this.#reason(error, '2-213'));
    }
  }

  #interrupt(reason: PesitError): void {
    this.#stopData();
    const final = reason.diagnostic === '2-220' || reason.diagnostic === '2-226' || reason.diagnostic === '2-200';
    const endCode = final ? END_CODES.cancelledByServer : END_CODES.error;
    if (!this.#session.interrupt(endCode, reason)) this.#session.abort(reason);
    this.#connection.settle();
  }

  #stopData(): void {
    this.#intake?.stop();
    this.#intake = undefined;
    this.#outflow?.wake();
    this.#outflow = undefined;
  }

  async #failFile(error: PesitError, endCode: number | undefined): Promise<void> {
    if (!this.#fileOpen) return;
    this.#fileOpen = false;
    this.#stopData();
    await this.#handler.transferFailed(error, endCode);
  }

  async #end(error: PesitError | undefined): Promise<void> {
    const reason =
      error ??
      new PesitError('the connection was released before the end of the transfer', {
        fault: 'refused',
        diagnostic: '2-223',
      });
    try {
      await this.#failFile(reason, undefined);
    } finally {
      this.#handler.ended(error);
      this.#done?.();
    }
  }

  /** Answers `name`, unless the connection ended or the transfer was interrupted while the application was asked. */
  #reply(name: FpduName, answer: () => void): void {
    if (this.#session.awaits(name)) answer();
  }

  #reason(error: unknown, diagnostic: '2-213' | '2-215' | '3-399'): PesitError {
    if (!(error instanceof PesitError)) this.#handler.failed(error);
    return asPesitError(error, diagnostic);
  }
}
