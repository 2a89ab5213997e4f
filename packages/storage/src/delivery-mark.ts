/**
 * Proof of a delivery for whoever finds the transfer without its process. The final file is none: a moment after it is there
 * somebody may have fetched it, and sent again it would be there twice.
 *
 * A mark is one more name of the staged file, `<key>.<boot>.<how>` (after a fence as that has it), kept until the record says COMPLETED.
 * `linked` is made right after the final name, so it says that this was there. The staged name goes when the final one is on
 * stable storage; without it the mark holds for ever, beside it only until the operating system is started anew.
 * `moved` is made before the staged file is moved to its final name: without the staged name it says that it was.
 * `withdrawn` is what either becomes, in one step, before the delivery is taken back: until the record says so, too, it is all that does.
 * File systems without hard links have no marks.
 */
import { basename, join } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import { unlinkIfThere } from './files.js';
import type { FileFacts, FileOperations } from './files.js';
import { readClaimedName } from './staging-place.js';
import type { ClaimedKey, StagingPlace } from './staging-place.js';

export type DeliveredHow = 'linked' | 'moved';

export type MarkKind = DeliveredHow | 'withdrawn';

export interface DeliveryMark extends ClaimedKey {
  readonly path: string;
  readonly how: MarkKind;
  readonly isOfThisBoot: boolean;
}

const MARK_NAME = /^(.+)\.([0-9a-f]{12})\.(linked|moved|withdrawn)$/;

export const markPath = ({ files, staging, name }: StagingPlace, how: MarkKind): string =>
  join(staging, `${name}.${files.boot}.${how}`);

/** Undefined for any other name. */
export const readMarkName = ({ boot }: FileOperations, staging: string, name: string): DeliveryMark | undefined => {
  const [, claimed, ofBoot, how] = MARK_NAME.exec(name) ?? [];
  if (claimed === undefined) return undefined;
  return {
    ...readClaimedName(claimed),
    path: join(staging, name),
    how: how as MarkKind,
    isOfThisBoot: ofBoot === boot,
  };
};

/** The marks of every claim of the key. */
export const findMarks = async ({ files, staging, key }: StagingPlace): Promise<readonly DeliveryMark[]> => {
  const names = await files.readdir(staging);
  return names.flatMap((name) => readMarkName(files, staging, name) ?? []).filter((mark) => mark.key === key);
};

/** @param staged undefined when its name is gone */
export const isDelivered = (staged: FileFacts | undefined, marks: readonly DeliveryMark[]): boolean => {
  if (isWithdrawn(marks)) return false;
  if (staged === undefined) return marks.some(({ how, isOfThisBoot }) => how === 'linked' || isOfThisBoot);
  // A name beside that is not ours is the final one, wherever it was moved to.
  return staged.links > 1 + marks.length || marks.some(({ how, isOfThisBoot }) => how === 'linked' && isOfThisBoot);
};

export const isWithdrawn = (marks: readonly DeliveryMark[]): boolean => marks.some(({ how }) => how === 'withdrawn');

/** @returns false when a later claim has moved the mark: the delivery is not the caller's to take back */
export const withdraw = async (place: StagingPlace, how: DeliveredHow): Promise<boolean> => {
  const { files } = place;
  try {
    await files.rename(markPath(place, how), markPath(place, 'withdrawn'));
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
};

/** Moves the marks of earlier claims to this one, so that who had them can take no delivery back. */
export const claimMarks = async (place: StagingPlace): Promise<void> => {
  const { files, staging, name, fence } = place;
  for (const mark of await findMarks(place)) {
    if (mark.fence >= fence || mark.how === 'withdrawn') continue;
    const [, , boot = '', how = ''] = MARK_NAME.exec(basename(mark.path)) ?? [];
    await files.rename(mark.path, join(staging, `${name}.${boot}.${how}`)).catch((error: unknown) => {
      // Taken back, or recorded, at this moment.
      if (codeOf(error) !== 'ENOENT') throw error;
    });
  }
};

/** Puts a mark on the staged file. @returns false on a file system that has none */
export const mark = async (place: StagingPlace, how: DeliveredHow): Promise<boolean> => {
  const { files, stagedPath } = place;
  return files.link(stagedPath, markPath(place, how)).then(
    () => true,
    () => false,
  );
};

export const removeMarks = async (files: FileOperations, marks: readonly DeliveryMark[]): Promise<void> => {
  for (const { path } of marks) await unlinkIfThere(files, path);
};
