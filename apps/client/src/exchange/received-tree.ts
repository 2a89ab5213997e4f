import { lstat, mkdir, realpath } from 'node:fs/promises';
import { extname, join } from 'node:path';

import type { PesitError } from '@pesit-node/protocol';
import { resolveInside, sanitiseValue } from '@pesit-node/storage';
import type { Delivery, StagedFile } from '@pesit-node/storage';

/** Where received files go: `<data.directory>/received`. */
export class ReceivedTree {
  readonly root: string;

  constructor(dataDirectory: string) {
    this.root = join(dataDirectory, 'received');
  }

  async prepare(): Promise<void> {
    await mkdir(this.root, { recursive: true, mode: 0o700 });
  }

  /**
   * The received file that a record names.
   * @throws StorageError when it lies outside the tree, which may have moved since
   */
  async find(localPath: string): Promise<string> {
    // Records hold paths with links resolved.
    return resolveInside(await realpath(this.root), localPath);
  }

  async has(name: string): Promise<boolean> {
    return lstat(join(this.root, name)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Gives a received file its name. A name that is taken is never replaced unless `overwrite`: the partner has ended the
   * transfer, so the file is kept under the name and the transfer's id instead.
   */
  async deliver(staged: StagedFile, name: string, id: string, overwrite: boolean): Promise<Delivery> {
    try {
      return await staged.deliver({ path: name, overwrite });
    } catch (error) {
      if ((error as Partial<PesitError>).diagnostic !== '2-204') throw error;
      const extension = extname(name);
      const stem = name.slice(0, name.length - extension.length);
      return staged.deliver({ path: sanitiseValue(`${stem}_${id}${extension}`), overwrite: false });
    }
  }
}

/** The name of a received file: the last segment of the first of `names` that is one, made safe. */
export const receivedName = (names: readonly (string | undefined)[]): string => {
  const given = names.find((name) => name !== undefined && name !== '') ?? '_';
  const segment = given.split(/[/\\]/).findLast((part) => part !== '');
  return sanitiseValue(segment ?? '_');
};
