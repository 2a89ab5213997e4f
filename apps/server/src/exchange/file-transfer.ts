import type {
  ArticleSink,
  ArticleSource,
  CreateAnswer,
  PesitError,
  SelectAnswer,
  SyncPoint,
} from '@pesit-node/protocol';
import type { Facts, ObservedTransfer } from '@pesit-node/transfers';

import type { RecordHandle, TransferFailure, TransferProgress } from '../transfers/record.js';

/** Where the data of an attempt begin. */
export interface Beginning {
  readonly from: SyncPoint;
  /** See `TRANSFER_WENT_ON`. */
  readonly attempt: 'first' | 'next' | 'repeated';
  /** Fields of the log line of one that is not the first. */
  readonly facts: Facts;
}

/** A file from CREATE or SELECT on. */
export interface FileTransfer extends ObservedTransfer {
  readonly record: RecordHandle;
  /** For the log. */
  readonly name: string;
  readonly progress: () => TransferProgress;
  /** All went well: make it last. Only when this resolves is the partner told. */
  end(): Promise<void>;
  /** Gives up, and records why; what a restart can use is kept. Never rejects. */
  fail(error: PesitError, endCode: number | undefined): Promise<TransferFailure>;
}

/** A file that a partner writes. */
export interface IncomingTransfer extends FileTransfer {
  readonly direction: 'RECEIVE';
  readonly answer: CreateAnswer;
  write(): Promise<Beginning & { readonly sink: ArticleSink }>;
}

/** A file that a partner reads. */
export interface OutgoingTransfer extends FileTransfer {
  readonly direction: 'SEND';
  readonly answer: SelectAnswer;
  read(point: number): Promise<Beginning & { readonly source: ArticleSource }>;
}
