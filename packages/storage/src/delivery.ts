import { constants } from 'node:fs';
import { join } from 'node:path';
import { makeDirectoriesInside } from './directories.js';
import { codeOf } from '@pesit-node/ground';
import { StorageError } from './errors.js';
import type { FileOperations } from './files.js';
import { relativeSegments } from './path-safety.js';

/** How file systems without hard links answer `link` (FAT, some network and FUSE file systems). */
const NO_HARD_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

export interface DeliveryPath {
  readonly final: string;
  /** Real paths of the directories from the receive directory to the one of the final name. */
  readonly chain: readonly string[];
}

/** The final path of a file below `root`; the directories on the way are created. @throws StorageError 2-226 */
export const findDeliveryPath = async (files: FileOperations, root: string, path: string): Promise<DeliveryPath> => {
  const segments = relativeSegments(path);
  const chain = await makeDirectoriesInside(files, root, segments.slice(0, -1));
  return { final: join(chain.at(-1) ?? root, segments.at(-1) ?? ''), chain };
};

/**
 * Gives a staged file its final name in one step that others see whole or not at all. Without `overwrite` a name that
 * exists is never replaced, whoever made it and whenever; a link at the final name is never followed.
 * @returns `linked` when the staged name is still there beside the final one, which a power cut may take back until its
 *   directory is flushed; `moved` when it is gone
 * @throws StorageError 2-204 when the name exists; errors of the file layer otherwise
 */
export const giveFinalName = async (
  files: FileOperations,
  staged: string,
  final: string,
  overwrite: boolean,
): Promise<'linked' | 'moved'> => {
  if (overwrite) {
    await files.rename(staged, final);
    return 'moved';
  }
  try {
    await files.link(staged, final);
    return 'linked';
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') throw nameExists(final);
    if (!NO_HARD_LINKS.has(code)) throw error;
    await moveWithoutLinks(files, staged, final);
    return 'moved';
  }
};

/** The name is taken by an empty file of ours first: between two creators only one can win that. */
const moveWithoutLinks = async (files: FileOperations, staged: string, final: string): Promise<void> => {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const placeholder = await files.open(final, flags, 0o600).catch((error: unknown) => {
    throw codeOf(error) === 'EEXIST' ? nameExists(final) : error;
  });
  const ours = await placeholder.stat().finally(() => placeholder.close());
  const isStillOurs = async () => {
    const now = await files.lstat(final);
    return now.inode === ours.inode && now.device === ours.device && now.size === 0;
  };
  if (!(await isStillOurs())) throw nameExists(final);
  try {
    await files.rename(staged, final);
  } catch (error) {
    if (await isStillOurs()) await files.unlink(final);
    throw error;
  }
};

const nameExists = (final: string) =>
  new StorageError(`${final} exists and overwrite is false: move it away, or give received files a name of their own`, {
    fault: 'local',
    diagnostic: '2-204',
    condition: 'name taken',
    peerText: 'a file of this name exists',
  });
