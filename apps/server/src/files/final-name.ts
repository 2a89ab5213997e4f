import { dirname, join } from 'node:path';

import { resolveInside } from '@pesit-node/storage';

/** From this size on a file that was delivered by a process that died is found by what was recorded of it, not by reading it. */
export const INTENT_FROM = 1_048_576;

/** Absolute path of the name that the file will have. @throws StorageError 2-226 when it leads out of the directory */
export const finalPath = async ({
  directory,
  path,
}: {
  readonly directory: string;
  readonly path: string;
}): Promise<string> => join(await resolveInside(directory, dirname(path)), path.slice(path.lastIndexOf('/') + 1));
