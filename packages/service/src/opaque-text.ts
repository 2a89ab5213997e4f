/**
 * Bytes that nobody here looks into, as JSON has them: as text where they are UTF-8 without other control characters than those
 * of a text, else as `base64:` and the bytes. Either way `readBytes` gives the same bytes back.
 */
const PREFIX = 'base64:';
/** All but tab, line ends and form feed. */
const CONTROLS = /[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u009f]/;

export const showBytes = (bytes: Buffer | null): string | null => {
  if (bytes === null) return null;
  const text = utf8(bytes);
  return text !== undefined && isPlain(text) ? text : asBase64(bytes);
};

export const asBase64 = (bytes: Buffer): string => `${PREFIX}${bytes.toString('base64')}`;

/** Whether a text shows what it is, and nothing else. */
export const isPlain = (text: string): boolean => !CONTROLS.test(text) && !text.startsWith(PREFIX);

/** The bytes of what a caller gives: UTF-8, or after `base64:` the bytes themselves. */
export const readBytes = (text: string): Buffer =>
  text.startsWith(PREFIX) ? Buffer.from(text.slice(PREFIX.length), 'base64') : Buffer.from(text);

/** Whether what follows `base64:`, if it is there, is base64 (RFC 4648 §4). */
export const isReadable = (text: string): boolean =>
  !text.startsWith(PREFIX) || readBytes(text).toString('base64') === text.slice(PREFIX.length);

/** Undefined when they are not UTF-8. */
export const utf8 = (bytes: Buffer): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
};
