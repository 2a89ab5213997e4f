import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import type { CodePage, CompressionMode } from '@pesit-node/protocol';
import type { RecordSettings } from '@pesit-node/storage';

import type { VirtualFileRow } from './store.js';

/** PI 16 (§4.5.16). */
export const DATA_CODES = { ascii: 0, ebcdic: 1, binary: 2 } as const;

export const COMPRESSIONS = ['none', 'horizontal', 'vertical', 'both'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** PI 21, second byte; 0 when none. */
export const compressionMode = (compression: Compression): CompressionMode | 0 =>
  COMPRESSIONS.indexOf(compression) as CompressionMode | 0;

/** The same in words. */
export const compressionName = (mode: CompressionMode | 0): Compression => COMPRESSIONS[mode];

/**
 * What an administrator has set of the records of a virtual file.
 * @param dataCode PI 16 of the partner; the setting `ebcdic` says what a partner means that leaves it out
 */
export const recordSettings = (file: VirtualFileRow, dataCode?: number): RecordSettings => {
  const isEbcdic = dataCode === undefined ? file.ebcdic : dataCode === DATA_CODES.ebcdic;
  return {
    recordFormat: file.record_format ?? undefined,
    recordLength: file.record_length ?? undefined,
    text: file.text,
    codePage: isEbcdic ? ((file.code_page as CodePage | null) ?? DEFAULT_CODE_PAGE) : undefined,
  };
};
