/** Requests of a program to a `PesitRequester`, and their results. */
import type {
  ArticleSink,
  ArticleSource,
  ConnectRequest,
  CreateRequest,
  Dialect,
  MessageRequest,
  Parameters,
  SelectRequest,
  SingleArticleStyle,
  SyncPoint,
  Timers,
} from '@pesit-node/protocol';
import type { WireObserver } from './connection.js';
import type { DataLimits } from './data-limits.js';
import type { Connect } from './transport.js';
import type { Pace } from './pace.js';

export interface RequesterOptions {
  readonly host: string;
  readonly port: number;
  /** Network that carries the session; default: plain TCP. */
  readonly transport?: Connect;
  readonly dialect: Dialect;
  /** Milliseconds for the connection and, each, for the answers to pre-connection and CONNECT. */
  readonly connectTimeout: number;
  readonly timers?: Partial<Timers>;
  readonly limits?: DataLimits;
  readonly connect: ConnectRequest;
  /** Sent before CONNECT. */
  readonly preconnection?: { readonly identifier: string; readonly password: string } | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How this partner writes single articles, as earlier connections have learned. */
  readonly singleArticle?: SingleArticleStyle | undefined;
  /** Whether we send several articles in one DTF; default true. */
  readonly multiArticle?: boolean | undefined;
  /** Whether FPDUs of data share an entity (§4.5); default true. */
  readonly concatenation?: boolean | undefined;
  /** How the partner writes single articles; worth remembering. */
  readonly learned?: (style: SingleArticleStyle) => void;
  /** See `observe`: from CONNECT on. */
  readonly observer?: WireObserver | undefined;
  /** Deviations of the partner that were tolerated: for the log. */
  readonly notice?: (text: string) => void;
}

export interface SendFile {
  readonly request: CreateRequest;
  readonly source: ArticleSource;
  /** Holds the data back; it is closed when the transfer is over. */
  readonly pace?: Pace | undefined;
  /**
   * Our record of the point in ACK(WRITE), with the source brought there; default: point 0 only. Undefined: the point is
   * unknown, IDT 2-214.
   */
  readonly pointOf?: (number: number) => Promise<SyncPoint | undefined>;
  /** The partner has stored everything up to this sync point. Called on the path of the data: it must be quick. */
  readonly acknowledged?: ((point: SyncPoint) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ReceiveFile {
  readonly request: SelectRequest;
  /** ACK(SELECT) came: prepare the place. Rejection: the file is deselected and the rejection passed on. */
  readonly open: (attributes: Parameters) => Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink }>;
  /** Holds the data back; it is closed when the transfer is over. */
  readonly pace?: Pace | undefined;
  /** All data came: resolve when they are on stable storage; then TRANS.END leaves. Called again when a RESYN brings more. */
  readonly stored: () => Promise<void>;
  /**
   * Everything up to this sync point is stored here, and acknowledged, so many milliseconds after its SYN. Called on the path of the data: it
   * must be quick.
   */
  readonly acknowledged?: ((point: SyncPoint, waitedMs?: number) => void) | undefined;
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

/** Free text of the partner: of the last of its answers that had one, copied. */
export interface PartnerTexts {
  /** PI 29, beside a success too. */
  readonly diagnosticComplement?: Buffer;
  /** PI 99. */
  readonly freeMessage?: Buffer;
}

export interface TransferTotals {
  readonly dataBytes: number;
  readonly articles: number;
}
