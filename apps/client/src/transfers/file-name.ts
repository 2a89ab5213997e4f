/** Characters that PI 12 holds. */
export const FILE_NAME_MAX = 76;

/** PI 12 of a node of our own that is asked for one file of a virtual file: no identifier has a `/` (design §4). */
export const nameInVirtualFile = (virtualFile: string, name: string): string => `${virtualFile}/${name}`;

/** The names that PI 12 is made of. */
export interface FileNames {
  readonly virtualFile?: string | undefined;
  readonly remoteFilename?: string | undefined;
}

/** Whether both names have room in PI 12. */
export const fitsInPi12 = ({ virtualFile, remoteFilename }: FileNames): boolean =>
  virtualFile === undefined ||
  remoteFilename === undefined ||
  nameInVirtualFile(virtualFile, remoteFilename).length <= FILE_NAME_MAX;

/** For the one who asked, when they have not. */
export const NO_ROOM_FOR_NAME = `with selectByName PI 12 is virtualFile/remoteFilename: expected at most ${FILE_NAME_MAX} characters for both and the slash`;
