/** Texts of pre-connections, which are EBCDIC CP037 (§3.8.2). */
import { codePageTables, translate } from './code-pages.js';

const { toLatin1, fromLatin1 } = codePageTables('037');

export const fromEbcdic = (bytes: Uint8Array): string => {
  const text = Buffer.from(bytes);
  translate(text, toLatin1);
  return text.toString('latin1');
};

/** @param text ISO 8859-1; characters outside it become SUB (0x3F). */
export const toEbcdic = (text: string): Buffer => {
  const bytes = Buffer.from(text.replace(/[^\u0000-\u00ff]/g, '\u001a'), 'latin1');
  translate(bytes, fromLatin1);
  return bytes;
};
