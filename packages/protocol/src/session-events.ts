/** Events of a session for its owner, and the facts that it has to know of the connection. */
import type { ArticleBatch, SyncPoint } from './articles.js';
import type { PesitError } from './errors.js';
import type { FpduName } from './fpdus.js';
import type { Dialect } from './framing.js';
import type { Parameters } from './parameters.js';
import type { SingleArticleStyle } from './receiving.js';
import type { Timers } from './timers.js';

export type SessionEvent =
  /** An FPDU that the application has to know of or to answer. */
  | { readonly kind: 'FPDU'; readonly name: FpduName; readonly parameters: Parameters }
  | { readonly kind: 'ARTICLES'; readonly batch: ArticleBatch }
  /** The peer placed a point: store, then `acknowledgeSyn`. */
  | { readonly kind: 'SYN'; readonly point: SyncPoint }
  /** The peer has stored everything up to this point. */
  | { readonly kind: 'ACK(SYN)'; readonly point: SyncPoint }
  /** The peer asks to go back to `point`: bring the file there, then `acceptResyn`. Data that were not stored are void. */
  | { readonly kind: 'RESYN'; readonly point: SyncPoint; readonly error: PesitError }
  /** The peer has answered our RESYN: bring the file to `point`, which may be the start; data follow from there. */
  | { readonly kind: 'ACK(RESYN)'; readonly point: SyncPoint }
  /** The transfer was interrupted (IDT); the file has to be closed and deselected, the connection stays open. */
  | { readonly kind: 'INTERRUPTED'; readonly by: 'us' | 'peer'; readonly endCode: number; readonly error: PesitError }
  /** How the peer writes a single article; worth remembering for the partner. */
  | { readonly kind: 'STYLE'; readonly style: SingleArticleStyle }
  /** A CREATE, SELECT or MSG that the session itself has refused: nobody is asked, for the history. */
  | { readonly kind: 'REFUSED'; readonly name: FpduName; readonly parameters: Parameters; readonly error: PesitError }
  /** Something was tolerated: for the log. */
  | { readonly kind: 'NOTICE'; readonly text: string }
  /** The connection is over for the application; `error` says why when it was not released. */
  | { readonly kind: 'ENDED'; readonly error: PesitError | undefined };

export interface SessionOptions {
  readonly dialect: Dialect;
  /** Milliseconds of any monotonic clock. */
  readonly now: number;
  /** Our half of the identifiers: 1 to 255 (X of a requester, Y of a server). */
  readonly connectionId: number;
  readonly timers?: Partial<Timers>;
  /** How the peer writes single articles, as far as it is known. */
  readonly singleArticle?: SingleArticleStyle;
  /**
   * Whether we send several articles in one DTF; default true. Some products compare the whole body of a DTF of fixed records
   * with PI 32 (PeSIT Wizard), or are set so (MULTART of CFT).
   */
  readonly multiArticle?: boolean;
  /**
   * Whether FPDUs of data share an entity where they fit (§4.5); default true. Every product takes that as far as is known, but
   * nothing negotiates it.
   */
  readonly concatenation?: boolean;
}
