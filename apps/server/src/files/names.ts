import { readable } from '@pesit-node/protocol';
import { matchesGlob } from '@pesit-node/storage';

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
