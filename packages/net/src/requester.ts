import type {
  ArticleSink,
  ArticleSource,
  ConnectRequest,
  ConnectionTerms,
  CreateRequest,
  Dialect,
  Parameters,
  PesitError,
  SelectRequest,
  SyncPoint,
  Timers,
} from '@pesit-node/protocol';

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
  readonly notice?: (text: string) => void;
}

export interface SendFile {
  readonly request: CreateRequest;
  readonly source: ArticleSource;
  /** Our record of the point in ACK(WRITE); default: point 0 only. Undefined: the point is unknown, IDT 2-214. */
  readonly pointOf?: (number: number) => SyncPoint | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ReceiveFile {
  readonly request: SelectRequest;
  /** ACK(SELECT) came: prepare the place. Rejection: the file is deselected and the rejection passed on. */
  readonly open: (attributes: Parameters) => Promise<{ readonly from: SyncPoint; readonly sink: ArticleSink }>;
  /** All data came: resolve when they are on stable storage; then TRANS.END leaves. */
  readonly stored: () => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

export interface TransferTotals {
  readonly dataBytes: number;
  readonly articles: number;
}

/**
 * A session that this side opened. One operation at a time. Every method rejects with a `PesitError`: `refused` with the
 * diagnostic of the partner, `transport`, `timeout`, `remote` or `local`. After a refused or interrupted file the session
 * stays usable (`usable`) for the next one.
 */
export declare class PesitRequester {
  /** TCP connection, pre-connection when asked for, CONNECT and its answer. */
  static open(options: RequesterOptions): Promise<PesitRequester>;
  readonly terms: ConnectionTerms;
  /** True while no file is selected and the connection is up. */
  readonly usable: boolean;
  /** Totals of the running or last transfer. */
  readonly totals: TransferTotals;
  /** CREATE … DESELECT. Resolves after a positive ACK(TRANS.END). An aborted `signal` interrupts with IDT 16. */
  sendFile(file: SendFile): Promise<TransferTotals>;
  /** SELECT … DESELECT. Resolves after a positive ACK(TRANS.END): deliver then. */
  receiveFile(file: ReceiveFile): Promise<TransferTotals>;
  /** RELEASE; resolves when the partner has confirmed, or the connection is gone. Never rejects. */
  release(): Promise<void>;
  abort(reason: PesitError): void;
}
