import { fromEbcdic } from '@pesit-node/protocol';

import { DATA_CODES } from '../virtual-files/format.js';

/**
 * PI 99 is opaque: shown as text when it is printable ASCII, else as `base64:` and its bytes. Connect:Express pads it with
 * blanks, which are kept and not shown.
 */
export const freeMessageText = (bytes: Buffer | null): string | null => {
  if (bytes === null) return null;
  const text = bytes.toString('latin1');
  return /^[\x20-\x7e]*$/.test(text) && !text.startsWith('base64:')
    ? text.trimEnd()
    : `base64:${bytes.toString('base64')}`;
};

/** What a text may hold beside printable characters: tab, line ends, form feed. */
const CONTROLS = /[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u009f]/;

/**
 * PI 91 as its sender meant it: EBCDIC when PI 16 says so, else UTF-8, else ISO 8859-1; what is none of these is shown as
 * `base64:` and its bytes.
 */
export const messageText = (bytes: Buffer, dataCode: number | null): string => {
  const text = dataCode === DATA_CODES.ebcdic ? fromEbcdic(bytes) : (utf8(bytes) ?? bytes.toString('latin1'));
  return CONTROLS.test(text) || text.startsWith('base64:') ? `base64:${bytes.toString('base64')}` : text;
};

const utf8 = (bytes: Buffer): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
};

/** PI 51, `YYMMDDhhmmss` in the time of its sender, as a date-time without a zone; as it came when it is none. */
export const creationDate = (value: string | null): string | null => {
  const [, year, month, day, hour, minute, second] = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(value ?? '') ?? [];
  if (year === undefined) return value;
  const century = Number(year) < 70 ? '20' : '19';
  return `${century}${year}-${month}-${day}T${hour}:${minute}:${second}`;
};
