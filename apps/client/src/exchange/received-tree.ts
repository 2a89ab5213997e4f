import { lstat, realpath } from 'node:fs/promises';
import { join } from 'node:path';

import { makeDirectories } from '@pesit-node/ground';

import { PesitError } from '@pesit-node/protocol';
import { DeliveryNotes, LocalFileStore, removeLeftover, resolveInside } from '@pesit-node/storage';
import type { Delivery, FileStore, ReadableFile, ReceivedFile, SpaceReserve } from '@pesit-node/storage';

/** Where received files go: `<data.directory>/received`. */
export class ReceivedTree {
  readonly root: string;
  /** Where the files lie. */
  readonly store: FileStore;
  /** Space that must stay free on its volume. */
  readonly reserve: SpaceReserve;

  constructor(dataDirectory: string, reserve: SpaceReserve) {
    this.reserve = reserve;
    this.root = join(dataDirectory, 'received');
    this.store = new LocalFileStore(this.root);
  }

  async prepare(): Promise<void> {
    await makeDirectories(this.root, 0o700);
  }

  /**
   * Opens the received file that a record names.
   * @throws StorageError when it lies outside the tree, which may have moved since, or is not there
   */
  async open(localPath: string): Promise<ReadableFile> {
    // Records hold paths with links resolved.
    return this.store.open(await resolveInside(await realpath(this.root), localPath));
  }

  async has(name: string): Promise<boolean> {
    return lstat(join(this.root, name)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Removes what is staged for a transfer that is over.
   * @param claim the caller's fence: whoever works on it under an earlier one has lost it. Default: a process that works on it removes
   *   it itself
   */
  async forget(id: string, claim?: number): Promise<void> {
    await removeLeftover(this.root, id, { claim });
    await new DeliveryNotes(this.root).remove(id);
  }

  /** The names as `deliver` gives them, absolute. */
  async pathsOf(names: readonly string[]): Promise<string[]> {
    const root = await realpath(this.root);
    return names.map((name) => join(root, name));
  }

  /**
   * Gives a received file the first of `names`. A name that is taken is never replaced unless `overwrite`: the partner has
   * ended the transfer, so the file is kept under the next one instead.
   */
  async deliver(staged: ReceivedFile, names: readonly string[], overwrite: boolean): Promise<Delivery> {
    const [first = '_', ...others] = names;
    try {
      return await staged.deliver({ path: first, overwrite, marked: true });
    } catch (error) {
      if (!(error instanceof PesitError) || error.condition !== 'name taken' || others.length === 0) throw error;
      return this.deliver(staged, others, false);
    }
  }
}
