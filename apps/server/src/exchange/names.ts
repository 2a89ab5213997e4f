import { matchesGlob } from '@pesit-node/storage';

/** A text of a peer, as a record or a log can hold it: without control characters, and not longer than `max`. */
export const readable = (text: string, max: number): string =>
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '.').slice(0, max);

/** Whether `text` can be an identifier of the configuration at all; NUL, for one, is nothing to ask a database for. */
export const isPlausible = (text: string, max: number): boolean => text.length <= max && /^[\x20-\x7e]+$/.test(text);

/** The file that the PI 12 of a SELECT asks for. */
export interface AskedFile {
  readonly virtualFile: string;
  /** Exactly this file; undefined: any that the virtual file has for the partner. */
  readonly name: string | undefined;
}

/** `<virtual file>/<name>` asks for the file of that name (design §4, Decided by trial): no identifier has a `/`. */
export const askedFile = (fileName: string): AskedFile => {
  const [virtualFile = '', ...rest] = fileName.split('/');
  return { virtualFile, name: rest.length === 0 ? undefined : rest.join('/') };
};

/** A pattern without `/` is about the name alone: some partners put a whole path into the label (PI 37). */
export const matchesName = (pattern: string, name: string): boolean =>
  matchesGlob(pattern, pattern.includes('/') ? name : (name.split(/[/\\]/).at(-1) ?? name));

/** PI 37 holds 80 bytes of ISO 8859-1. */
export const asLabel = (name: string): string => readable(name.replace(/[^\u0000-\u00ff]/g, '_'), 80);

const two = (value: number): string => String(value % 100).padStart(2, '0');

/** PI 51, `YYMMDDhhmmss`, by the clock of this machine. */
export const asCreationDate = (date: Date): string =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(), date.getSeconds()]
    .map(two)
    .join('');
