import { randomUUID } from 'node:crypto';
import { END_CODES, endsForGood, PesitError } from '@pesit-node/protocol';
import type { CompressionMode, ConnectionTerms, FileTerms, FpduName, ServerSession } from '@pesit-node/protocol';
import { Connection } from './connection.js';
import type { WireObserver } from './connection.js';
import type { DataLimits } from './data-limits.js';
import { asPesitError } from './errors.js';
import { FileData } from './file-data.js';
import type { SessionListener } from './file-data.js';
import type { ServerConnection, ServerHandler } from './handler.js';
import { PartnerRequests } from './partner-requests.js';
import type { RequestTerms } from './partner-requests.js';
import type { Transport, TransportSecurity } from './transport.js';

/** Requests in which a partner may say something (PI 29) of a file that goes well. */
const SAY_OF_A_FILE: ReadonlySet<FpduName> = new Set(['DTF.END', 'CRF', 'DESELECT']);

const copied = (bytes: Buffer | undefined): Buffer | undefined =>
  bytes === undefined || bytes.length === 0 ? undefined : Buffer.from(bytes);

export interface ServerConnectionOptions extends RequestTerms {
  readonly transport: Transport;
  readonly session: ServerSession;
  readonly limits?: DataLimits | undefined;
  readonly accept: (connection: ServerConnection) => ServerHandler;
}

/** One partner on a listener: the connection, what ends it, and its requests one after the other. */
export class PartnerConnection implements ServerConnection {
  readonly id = randomUUID();
  readonly remoteAddress: string;
  readonly security: TransportSecurity | undefined;
  /** Resolves when the connection is over and the handler has been told. */
  readonly finished: Promise<void>;
  readonly #options: ServerConnectionOptions;
  readonly #session: ServerSession;
  readonly #connection: Connection;
  readonly #handler: ServerHandler;
  readonly #data: FileData;
  readonly #requests: PartnerRequests;
  #observer: WireObserver | undefined;
  /** Why no new file is begun, beside the closing of the listener. */
  #retired: PesitError | undefined;
  /** Runs when a file is over and no other may begin. */
  #leaving: NodeJS.Timeout | undefined;
  /** The requests of one connection are handled one after the other, also when the application is slow. */
  #queue: Promise<void> = Promise.resolve();
  #finish: () => void = () => undefined;

  constructor(options: ServerConnectionOptions) {
    this.#options = options;
    this.#session = options.session;
    this.remoteAddress = options.transport.remoteAddress;
    this.security = options.transport.security;
    this.#handler = options.accept(this);
    this.finished = new Promise((resolve) => {
      this.#finish = resolve;
    });
    this.#connection = new Connection(options.transport, options.session, {
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
    this.#data = new FileData(this.#connection, this.#listener(), options.limits);
    this.#requests = new PartnerRequests({
      session: options.session,
      handler: this.#handler,
      data: this.#data,
      terms: {
        indication: options.indication,
        admit: options.admit,
        takePlace: options.takePlace,
        draining: () => this.#reasonToLeave,
      },
      attend: () => {
        this.#connection.attend();
      },
      interrupt: (reason) => {
        this.interrupt(reason);
      },
      report: (error) => {
        this.#report(error);
      },
    });
  }

  get terms(): ConnectionTerms | undefined {
    return this.#session.terms;
  }

  get fileTerms(): FileTerms | undefined {
    return this.#session.fileTerms;
  }

  get askedCompression(): CompressionMode | 0 | undefined {
    return this.#session.askedCompression;
  }

  get totals(): { readonly dataBytes: number; readonly articles: number } {
    return this.#session.totals;
  }

  get over(): boolean {
    return this.#session.phase !== 'open';
  }

  takePlace(): void {
    this.#options.takePlace();
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
    this.#connection.attend();
  }

  /** Interrupts the running transfer with IDT: 4, unless a restart would end the same way; aborts when none runs. */
  interrupt(reason: PesitError): void {
    this.#data.stop();
    const endCode = endsForGood(reason.diagnostic) ? END_CODES.cancelledByServer : END_CODES.error;
    if (!this.#session.interrupt(endCode, reason)) this.#session.abort(reason);
    this.#connection.attend();
  }

  abort(reason: PesitError): void {
    this.#session.abort(reason);
    this.#connection.attend();
  }

  retire(reason: PesitError): void {
    this.#retired ??= reason;
    this.drain();
  }

  /** Ends a session that is to end and does nothing. */
  drain(): void {
    const reason = this.#reasonToLeave;
    const { betweenFiles, notConnected } = this.#session.situation;
    const idle = (betweenFiles || notConnected) && this.#leaving === undefined;
    if (reason !== undefined && idle) this.abort(reason);
  }

  /** The time of a drain is over: a transfer is interrupted; a session whose file has just ended keeps its time to release. */
  expire(reason: PesitError): void {
    if (this.#requests.fileIsOpen) this.interrupt(reason);
    else this.drain();
  }

  /** RCONNECT, while the application is still asked. */
  refuse(reason: PesitError): void {
    if (this.#session.awaits('CONNECT')) this.#session.refuseConnection(reason);
    this.#connection.attend();
  }

  /** Resolves when the connection is gone. */
  closed(): Promise<void> {
    return this.#connection.closed();
  }

  /** Closes the connection without a word. */
  destroy(): void {
    this.#connection.destroy();
  }

  #listener(): SessionListener {
    return {
      fpdu: (name, parameters) => {
        // A view of the received bytes, which are used again before a slow application comes to it.
        const said = SAY_OF_A_FILE.has(name) ? copied(parameters.diagnosticComplement) : undefined;
        this.#enqueue(async () => {
          if (said !== undefined) this.#handler.said?.(name, said);
          await this.#requests.answer(name, parameters);
          this.#letGo();
        });
      },
      goesBack: () => {
        this.#requests.goesBack();
      },
      acknowledged: (point, waitedMs) => {
        this.#handler.acknowledged?.(point, waitedMs);
      },
      interrupted: (error, endCode) => {
        this.#enqueue(() => this.#requests.failFile(error, endCode));
      },
      learned: (style) => {
        this.#handler.learned(style);
      },
      refused: (name, parameters, error) => {
        this.#enqueue(async () => {
          await this.#handler.refused?.(name, parameters, error);
        });
      },
      notice: (text) => {
        this.#handler.notice(text);
      },
      ended: (error) => {
        this.#enqueue(() => this.#end(error));
      },
      failed: (error) => {
        if (!(error instanceof PesitError)) this.#report(error);
        this.interrupt(asPesitError(error, '2-213'));
      },
    };
  }

  get #reasonToLeave(): PesitError | undefined {
    return this.#retired ?? this.#options.draining();
  }

  /** No file is left to end, and none may begin: the partner has the time of a closing session to release. */
  #letGo(): void {
    if (this.#reasonToLeave === undefined || !this.#session.situation.betweenFiles) return;
    this.#leaving ??= setTimeout(() => {
      if (this.#reasonToLeave !== undefined) this.abort(this.#reasonToLeave);
    }, this.#session.timers.close);
  }

  #enqueue(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error: unknown) => {
      this.#report(error);
      this.abort(asPesitError(error, '3-399'));
    });
  }

  async #end(error: PesitError | undefined): Promise<void> {
    clearTimeout(this.#leaving);
    const released = 'the connection was released before the end of the transfer';
    try {
      const reason = error ?? new PesitError(released, { fault: 'refused', diagnostic: '2-223' });
      await this.#requests.failFile(reason, undefined);
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

  /** Tells the application of a bug; one in the telling itself must not take the connection with it. */
  #report(error: unknown): void {
    try {
      this.#handler.failed(error);
    } catch {
      // There is nobody left to tell.
    }
  }
}
