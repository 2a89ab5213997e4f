/** PI 99 and PI 91 are opaque bytes: as text where they are printable ASCII, else as `base64:` and the bytes. */
const PREFIX = 'base64:';
const PRINTABLE = /^[\x20-\x7e]*$/;

export const showBytes = (bytes: Buffer | null): string | null => {
  if (bytes === null) return null;
  const text = bytes.toString('latin1');
  return PRINTABLE.test(text) && !text.startsWith(PREFIX) ? text : `${PREFIX}${bytes.toString('base64')}`;
};

/** The bytes of what a caller gives: UTF-8, or after `base64:` the bytes themselves. */
export const readBytes = (text: string): Buffer =>
  text.startsWith(PREFIX) ? Buffer.from(text.slice(PREFIX.length), 'base64') : Buffer.from(text);

/** Whether what follows `base64:`, if it is there, is base64 (RFC 4648 §4). */
export const isReadable = (text: string): boolean =>
  !text.startsWith(PREFIX) || readBytes(text).toString('base64') === text.slice(PREFIX.length);
