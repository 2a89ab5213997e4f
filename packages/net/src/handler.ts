/**
 * The answers of an application to a partner. The listener calls these in the order of the protocol, one at a time for a
 * connection. A method that rejects with a `PesitError` refuses: its diagnostic and `peerText` go to the partner; any other
 * error is a bug of this side, reported to `failed` and answered 2-215 or 3-399.
 */
import type {
  ArticleSink,
  ArticleSource,
  CompressionMode,
  ConnectAnswer,
  ConnectionTerms,
  CreateAnswer,
  Dialect,
  FileTerms,
  FpduName,
  MessageAnswer,
  Parameters,
  PesitError,
  SelectAnswer,
  SingleArticleStyle,
  SyncPoint,
} from '@pesit-node/protocol';
import type { WireObserver } from './connection.js';
import type { TransportSecurity } from './transport.js';
import type { Pace } from './pace.js';

/** Identifier and password of a pre-connection, before any CONNECT (pesit-e.md §1). */
export interface Preconnection {
  readonly marker: 'PESIT' | 'CFTPSITX';
  readonly identifier: string;
  readonly password: string;
}

/** Facts known of a connection before its CONNECT is answered. */
export interface ConnectIndication {
  /** PI 3, 4, 5 …; PI 5 is the secret of the partner: never log it. */
  readonly parameters: Parameters;
  readonly dialect: Dialect;
  readonly preconnection: Preconnection | undefined;
}

/** A connection as the application sees it. */
export interface ServerConnection {
  readonly id: string;
  readonly remoteAddress: string;
  /** Facts that TLS has found out; undefined: the connection is plain. */
  readonly security: TransportSecurity | undefined;
  /** After `connect` was accepted. */
  readonly terms: ConnectionTerms | undefined;
  /** Terms of the current or last file; after `create` or `select` was accepted, its compression after ORF. */
  readonly fileTerms: FileTerms | undefined;
  /** Compression that the partner asked for in the ORF of that file; undefined before. */
  readonly askedCompression: CompressionMode | 0 | undefined;
  /** Data bytes and articles of the current transfer. */
  readonly totals: { readonly dataBytes: number; readonly articles: number };
  /**
   * Shows every byte of the session to `observer` from now on, e.g. to a `SessionTrace`; undefined: to nobody. Called in
   * `accept`, it sees the CONNECT too. An error that it throws ends the session.
   */
  observe(observer: WireObserver | undefined): void;
  /** The connection was lost or given up: nobody waits for an answer. */
  readonly over: boolean;
  /**
   * Takes one of the listener's places for sessions: to be called by `connect` when the partner is proven, before anything is
   * booked on it. Strangers have none. @throws PesitError 3-309 when all are taken
   */
  takePlace(): void;
  /**
   * Begins no file from now on: the one that is selected may come to its end, the partner may then release for the time of a
   * closing session, and is aborted with `reason` otherwise. A session that does nothing is aborted at once.
   */
  retire(reason: PesitError): void;
  /** Interrupts the running transfer (IDT 12 with the reason), or aborts when none runs. */
  cancel(reason: PesitError): void;
  /** Ends the connection at once (ABORT). */
  abort(reason: PesitError): void;
}

export interface ServerHandler {
  /**
   * Whether a CONNECT is none of a partner, but of a session that this side opens with itself: it takes none of the listener's
   * places, and is asked for though all are taken. Asked before `connect`. Default: no CONNECT is.
   */
  takesNoPlace?(parameters: Parameters): boolean;
  /** Identify the partner, and take a place for it. Rejection: RCONNECT. */
  connect(indication: ConnectIndication): Promise<ConnectAnswer>;
  /** A file to receive. Rejection: negative ACK(CREATE); the connection stays open. */
  create(parameters: Parameters): Promise<CreateAnswer>;
  /** A file to serve. Rejection: negative ACK(SELECT). */
  select(parameters: Parameters): Promise<SelectAnswer>;
  /** WRITE: where the articles go, and the point from which they shall come. */
  write(): Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink; readonly pace?: Pace | undefined }>;
  /** READ: where the articles come from; `point` is PI 18, of which the receiver is sure. */
  read(
    point: number,
  ): Promise<{ readonly from: SyncPoint; readonly source: ArticleSource; readonly pace?: Pace | undefined }>;
  /**
   * TRANS.END, with counts that agree: deliver (write) or record (read). Resolve only when all is on stable storage:
   * then ACK(TRANS.END) leaves. Rejection: a negative ACK(TRANS.END).
   */
  endTransfer(): Promise<void>;
  /**
   * The file accepted by `create` or `select` ended without `endTransfer`: interrupted, refused later, or the connection
   * is gone, perhaps while `create` or `select` was still asked. Called once a file, when its source is no longer asked,
   * and awaited before DESELECT or the end is handled.
   */
  transferFailed(error: PesitError, endCode: number | undefined): Promise<void>;
  /**
   * A message of up to 65,536 bytes, whole however many FPDUs it came in (MSG, or MSGDM, MSGMM…, MSGFM). Resolve when it is
   * on stable storage, with the reply when there is one; a reply to a message that asks for none (PI 14) is not sent.
   * Rejection: a negative ACK(MSG). Without this method every message is refused with 2-209.
   */
  message?(parameters: Parameters): Promise<MessageAnswer | undefined>;
  /**
   * A CREATE, SELECT or MSG that the protocol forbids (outside PI 22, PI 13 or PI 32 of 0, a message that is too long): it was
   * refused without asking, and the connection stays open. For the history.
   */
  refused?(name: FpduName, parameters: Parameters, error: PesitError): Promise<void>;
  /**
   * A sync point of the running transfer is safe: stored here and acknowledged, or acknowledged by the partner. Called for
   * each on the path of the data: it must be quick, and must not throw.
   * @param waitedMs from its SYN to our acknowledgement, milliseconds; undefined: the partner's
   */
  acknowledged?(point: SyncPoint, waitedMs?: number): void;
  /** PI 29 of a DTF.END, CRF or DESELECT, 1 to 4096 bytes: what the partner says of the file, beside a success too. */
  said?(name: FpduName, complement: Buffer): void;
  /** DESELECT was answered: the next file may come. */
  deselected(): Promise<void>;
  /** How the partner writes single articles; worth remembering. */
  learned(style: SingleArticleStyle): void;
  /** Something was tolerated: for the log. */
  notice(text: string): void;
  /** A bug of this side: for the log, with the stack. */
  failed(error: unknown): void;
  /** The connection is over; `error` says why when it was not released. Nothing is called after it. */
  ended(error: PesitError | undefined): void;
}
