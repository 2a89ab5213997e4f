/**
 * Proof of a delivery for whoever finds the transfer without its process. The final file is none: a moment after it is there
 * somebody may have fetched it, and sent again it would be there twice.
 *
 * A mark is one more name of the staged file, `<key>.<boot>.<how>` (after a fence as that has it), kept until the record says COMPLETED.
 * `linked` is made right after the final name, so it says that this was there. The staged name goes when the final one is on
 * stable storage; without it the mark holds for ever, beside it only until the operating system is started anew.
 * `moved` is made before the staged file is moved to its final name: without the staged name it says that it was.
 * File systems without hard links have no marks.
 */
import { join } from 'node:path';
import { unlinkIfThere } from './files.js';
import type { FileFacts, FileOperations } from './files.js';
import { readClaimedName } from './staging-place.js';
import type { ClaimedKey, StagingPlace } from './staging-place.js';

export type DeliveredHow = 'linked' | 'moved';

export interface DeliveryMark extends ClaimedKey {
  readonly path: string;
  readonly how: DeliveredHow;
  readonly isOfThisBoot: boolean;
}

const MARK_NAME = /^(.+)\.([0-9a-f]{12})\.(linked|moved)$/;

export const markPath = ({ files, staging, name }: StagingPlace, how: DeliveredHow): string =>
  join(staging, `${name}.${files.boot}.${how}`);

/** Undefined for any other name. */
export const readMarkName = ({ boot }: FileOperations, staging: string, name: string): DeliveryMark | undefined => {
  const [, claimed, ofBoot, how] = MARK_NAME.exec(name) ?? [];
  if (claimed === undefined || (how !== 'linked' && how !== 'moved')) return undefined;
  return { ...readClaimedName(claimed), path: join(staging, name), how, isOfThisBoot: ofBoot === boot };
};

/** The marks of every claim of the key. */
export const findMarks = async ({ files, staging, key }: StagingPlace): Promise<readonly DeliveryMark[]> => {
  const names = await files.readdir(staging);
  return names.flatMap((name) => readMarkName(files, staging, name) ?? []).filter((mark) => mark.key === key);
};

/** @param staged undefined when its name is gone */
export const isDelivered = (staged: FileFacts | undefined, marks: readonly DeliveryMark[]): boolean => {
  if (staged === undefined) return marks.some(({ how, isOfThisBoot }) => how === 'linked' || isOfThisBoot);
  // A name beside that is not ours is the final one, wherever it was moved to.
  return staged.links > 1 + marks.length || marks.some(({ how, isOfThisBoot }) => how === 'linked' && isOfThisBoot);
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
