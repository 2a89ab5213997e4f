import type { DiagnosticCode } from '@pesit-node/protocol';

import type { TransferDirection } from './schema.js';

/** What is known of a transfer when it begins. */
export interface TransferStart {
  readonly partnerId: string;
  readonly direction: TransferDirection;
  /** PI 12, as far as it can be shown. */
  readonly virtualFileId: string;
  readonly filename?: string | undefined;
  /** PI 13; 0: to be given by this node. */
  readonly transferId: number;
  readonly listener: string;
  readonly sessionId: string;
  readonly remoteAddress: string;
  /** PI 37. */
  readonly label?: string | undefined;
  /** PI 99. */
  readonly freeMessage?: Buffer | undefined;
  /** PI 61 and PI 62. */
  readonly originalSender?: string | undefined;
  readonly finalReceiver?: string | undefined;
}

/** How far a transfer is, or was when it ended. */
export interface TransferProgress {
  readonly dataBytes: number;
  readonly articles: number;
  readonly syncPoint: number;
}

export interface TransferCompletion extends TransferProgress {
  /** Bytes of the file. */
  readonly size: number;
  readonly checksum: string | undefined;
  /** Absolute path of the file on this side. */
  readonly path: string;
  readonly filename: string;
  /** Of a file that was read: with path and size it says which one the partner has. */
  readonly sentMtimeNs?: bigint | undefined;
}

/** Why a transfer did not complete. */
export interface TransferFailure {
  readonly status: 'FAILED' | 'CANCELLED';
  readonly diagnostic: DiagnosticCode;
  /** For the operator. */
  readonly message: string;
}
