import type { CompressionMode } from '@pesit-node/protocol';

/** PI 16 (§4.5.16). */
export const DATA_CODES = { ascii: 0, ebcdic: 1, binary: 2 } as const;

export const COMPRESSIONS = ['none', 'horizontal', 'vertical', 'both'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** PI 21, second byte; 0 when none. */
export const compressionMode = (compression: Compression): CompressionMode | 0 =>
  COMPRESSIONS.indexOf(compression) as CompressionMode | 0;

/** The same in words. */
export const compressionName = (mode: CompressionMode | 0): Compression => COMPRESSIONS[mode];
