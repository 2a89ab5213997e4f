import { extname } from 'node:path';

import { sanitiseValue } from '@pesit-node/storage';

/** The name of a received file, and the one that it gets when that is taken: with the id of its transfer. */
export const namesFor = (name: string, id: string): readonly string[] => {
  const extension = extname(name);
  const stem = name.slice(0, name.length - extension.length);
  return [name, sanitiseValue(`${stem}_${id}${extension}`)];
};

/** The name of a received file: the last segment of the first of `names` that is one, made safe. */
export const receivedName = (names: readonly (string | undefined)[]): string => {
  const given = names.find((name) => name !== undefined && name !== '') ?? '_';
  const segment = given.split(/[/\\]/).findLast((part) => part !== '');
  return sanitiseValue(segment ?? '_');
};
