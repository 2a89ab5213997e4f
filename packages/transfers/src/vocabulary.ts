import type { CompressionMode } from '@pesit-node/protocol';
import type { RecordFormat } from '@pesit-node/storage';

/** Seen by the node that keeps the record: it sends the file, or receives it. */
export const DIRECTIONS = ['SEND', 'RECEIVE'] as const;
export type Direction = (typeof DIRECTIONS)[number];

export const TRANSFER_TYPES = ['FILE', 'MESSAGE'] as const;
export type TransferType = (typeof TRANSFER_TYPES)[number];

export const TRANSFER_STATUSES = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;
export type TransferStatus = (typeof TRANSFER_STATUSES)[number];

/** PI 16 (§4.5.16). */
export const DATA_CODES = { ascii: 0, ebcdic: 1, binary: 2 } as const;

/** PI 16 of a file that is sent. */
export const dataCodeOf = ({ text, codePage }: RecordFormat): number => {
  if (!text) return DATA_CODES.binary;
  return codePage === undefined ? DATA_CODES.ascii : DATA_CODES.ebcdic;
};

/** PI 21, second byte, in words: the index is the mode. */
export const COMPRESSIONS = ['none', 'horizontal', 'vertical', 'both'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** PI 21, second byte; 0: none. */
export const compressionMode = (compression: Compression): CompressionMode | 0 =>
  COMPRESSIONS.indexOf(compression) as CompressionMode | 0;

export const compressionName = (mode: CompressionMode | 0): Compression => COMPRESSIONS[mode];

/** A diagnostic (PI 2) as records and answers have it: `2-205`. */
export const DIAGNOSTIC_TEXT = /^\d-\d{3}$/;
