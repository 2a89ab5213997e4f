import { DEFAULT_CODE_PAGE } from '@pesit-node/protocol';
import type { RecordSettings } from '@pesit-node/storage';
import { DATA_CODES } from '@pesit-node/transfers';

import type { VirtualFileRow } from './fields.js';

/**
 * Settings of an administrator for the records of a virtual file.
 * @param dataCode PI 16 of the partner; the setting `ebcdic` says what a partner means that leaves it out
 */
export const recordSettings = (file: VirtualFileRow, dataCode?: number): RecordSettings => {
  const isEbcdic = dataCode === undefined ? file.ebcdic : dataCode === DATA_CODES.ebcdic;
  return {
    recordFormat: file.record_format ?? undefined,
    recordLength: file.record_length ?? undefined,
    text: file.text,
    codePage: isEbcdic ? (file.code_page ?? DEFAULT_CODE_PAGE) : undefined,
  };
};
