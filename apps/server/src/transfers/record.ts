import type { PeerDiagnostic, SyncPoint } from '@pesit-node/protocol';
import type { FileVersion, Pacing } from '@pesit-node/storage';
import type { AttemptTerms, Compression, Direction } from '@pesit-node/transfers';

/** Parameters that name a transfer over all its attempts (pesit-e.md §5); PI 11 is 0 for every file. */
export interface TransferIdentity {
  readonly partnerId: string;
  readonly direction: Direction;
  /** PI 12, as far as it can be shown. */
  readonly virtualFileId: string;
  /** PI 13; 0: to be given by this node. */
  readonly transferId: number;
  /** PI 61 and PI 62. */
  readonly originalSender?: string | undefined;
  readonly finalReceiver?: string | undefined;
}

/** Who works on a transfer, and through what. */
export interface AttemptOrigin {
  readonly listener: string;
  readonly sessionId: string;
  readonly remoteAddress: string;
}

/** Facts known of a transfer when it begins. */
export interface TransferStart extends TransferIdentity, AttemptOrigin {
  readonly filename?: string | undefined;
  /** PI 37. */
  readonly label?: string | undefined;
  /** PI 51. */
  readonly creationDate?: string | undefined;
  /** PI 99, as much as is kept. */
  readonly freeMessage?: Buffer | undefined;
  /** Where a file that is received is staged. */
  readonly staging?: Staging | undefined;
  /** Version of a file that is read. */
  readonly source?: Source | undefined;
}

/** A request that was refused; without a virtual file when it stands for requests of several. */
export type RefusedStart = Omit<TransferStart, 'virtualFileId'> & { readonly virtualFileId: string | null };

/** The parts of a message. */
export interface MessageContent {
  /** PI 11: 65535 a message, 65534 a reply, anything else the acknowledgement of a file of that type. */
  readonly fileType: number;
  /** PI 91. */
  readonly text: Buffer;
  /** PI 16 of the text. */
  readonly dataCode: number | undefined;
}

/** Where a received file is staged, and under which key. */
export interface Staging {
  readonly key: string;
  readonly directory: string;
  /** It may replace another file of its name. */
  readonly overwrite: boolean;
  /** Bytes that it will have at least. */
  readonly announced: number;
}

/** A file that is read: which one, in which version, and how its points are placed. */
export interface Source {
  readonly path: string;
  readonly version: FileVersion;
  readonly pacings: readonly Pacing[];
}

/** A record as its present owner holds it; `fence` tells its writes from those of a former one. */
export interface RecordHandle {
  readonly id: number;
  readonly fence: number;
  /** Which attempt it is, for one that receives: tells a process that has claimed the transfer from another attempt. */
  readonly attempts?: number;
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
  /** PI 21 as agreed. */
  readonly compression: Compression;
  /** The last sync point with its totals; undefined when there was none. */
  readonly lastPoint?: SyncPoint | undefined;
  /** Terms of the attempt that ends; undefined when nobody knows them. */
  readonly terms?: AttemptTerms | undefined;
  /** Modification time of a file that was read: with path and size it says which one the partner has. */
  readonly sentMtimeNs?: bigint | undefined;
}

/** Why a transfer did not complete. */
export interface TransferFailure {
  readonly status: 'FAILED' | 'CANCELLED';
  readonly diagnostic: PeerDiagnostic;
  /** For the operator. */
  readonly message: string;
  /** The partner may restart it. */
  readonly restartable: boolean;
}
