import { fromEbcdic } from '@pesit-node/protocol';
import { asBase64, isPlain, showBytes, utf8 } from '@pesit-node/service';

import { DATA_CODES } from './vocabulary.js';

/** PI 99. Connect:Express pads it with blanks, which are kept and not shown. */
export const freeMessageText = (bytes: Buffer | null): string | null => showBytes(bytes)?.trimEnd() ?? null;

/**
 * PI 91 as its sender meant it: EBCDIC when PI 16 says so, else UTF-8, else ISO 8859-1; what is none of these is shown as
 * `base64:` and its bytes.
 */
export const messageText = (bytes: Buffer, dataCode: number | null): string => {
  const text = dataCode === DATA_CODES.ebcdic ? fromEbcdic(bytes) : (utf8(bytes) ?? bytes.toString('latin1'));
  return isPlain(text) ? text : asBase64(bytes);
};
