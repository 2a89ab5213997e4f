import { dirname } from 'node:path';
import { findDeliveryPath, giveFinalName } from './delivery.js';
import { mark, markPath, withdraw } from './delivery-mark.js';
import type { DeliveredHow, MarkKind } from './delivery-mark.js';
import { storageError } from './errors.js';
import { flushDirectories, unlinkIfThere } from './files.js';
import type { FileFacts } from './files.js';
import type { DeliveryTarget, Durability, TakenBack } from './staged-options.js';
import type { StagingPlace } from './staging-place.js';

/**
 * The way of one staged file, whose bytes are stable, to its final name: mark where one is wanted, name, directories stable; or
 * all of it taken back. This class does not know what the file holds, nor whether it is open.
 */
export class StagedDelivery {
  readonly #place: StagingPlace;
  readonly #durability: Durability;
  /** Since the final name is there; `linked` while the staged one may be there beside it. */
  #delivered: DeliveredHow | undefined;
  #target: { readonly final: string; readonly overwrite: boolean } | undefined;
  /** The mark that may still be on disk. */
  #marked: MarkKind | undefined;

  constructor(place: StagingPlace, durability: Durability) {
    this.#place = place;
    this.#durability = durability;
  }

  /** The final name is there. */
  get isDone(): boolean {
    return this.#delivered !== undefined;
  }

  /**
   * Gives the file its final name; that and every directory on the way are on stable storage when this resolves. After a failure
   * it is staged as before, or `isDone` says that it could not be taken back.
   * @returns the final path, absolute, links resolved
   * @throws StorageError as `StagedFile.deliver`
   */
  async deliver({ path, overwrite, marked = false, admit }: DeliveryTarget): Promise<string> {
    const { files, root, staging, stagedPath } = this.#place;
    let final = path;
    try {
      // No directory is made where the staged file is not: a link may have taken the place of the receive directory meanwhile.
      if (path.includes('/')) await files.lstat(stagedPath);
      const found = await findDeliveryPath(files, root, path);
      ({ final } = found);
      await admit?.(final);
      if (marked && overwrite) await this.#mark('moved');
      const how = await giveFinalName(files, stagedPath, final, overwrite);
      this.#delivered = how;
      this.#target = { final, overwrite };
      if (marked && how === 'linked') await this.#mark(how);
      try {
        // All of the chain, for another delivery may have created a directory and not flushed its parent yet.
        if (this.#durability !== 'none') {
          await flushDirectories(files, how === 'linked' ? found.chain : [...found.chain, staging]);
        }
      } catch (error) {
        if (!overwrite) await this.#undo(final, how);
        throw error;
      }
    } catch (error) {
      if (this.#delivered === undefined) await this.recorded();
      throw storageError(error, 'deliver', final, 'the received file');
    }
    return final;
  }

  /**
   * Takes the delivery back: its transfer could not be recorded, the sender hears no and sends it again. The mark says so first: one
   * without its file would say for ever that the file had been delivered, and none would let a record that was committed late pass for
   * the truth. It stays until `recorded`. A file of the same name that is not this one stays.
   * @throws StorageError when the file may still be there: it may come twice then
   */
  async takeBack(): Promise<TakenBack> {
    if (this.#target === undefined) throw new Error('nothing was delivered');
    const { files } = this.#place;
    const { final, overwrite } = this.#target;
    try {
      // A volume that does not say counts as one from which it was fetched: it was delivered, and is not asked for again.
      const found = await files.lstat(final).catch(() => undefined);
      const isOurs = found !== undefined && (await this.#isDelivered(found));
      if (!isOurs) {
        await this.recorded();
        return 'fetched';
      }
      if (!(await this.#withdraw())) return 'claimed';
      if (overwrite) return 'stays';
      if (!(await unlinkIfThere(files, final))) return 'fetched';
      if (this.#durability !== 'none') await flushDirectories(files, [dirname(final)]);
      return 'taken back';
    } catch (error) {
      throw storageError(error, 'deliver', final, 'the received file');
    }
  }

  /** @returns false when a later claim has the delivery; without a mark nobody can say so */
  async #withdraw(): Promise<boolean> {
    const { files, staging } = this.#place;
    const how = this.#marked;
    if (how === undefined || how === 'withdrawn') return true;
    if (!(await withdraw(this.#place, how))) return false;
    this.#marked = 'withdrawn';
    if (this.#durability !== 'none') await flushDirectories(files, [staging]);
    return true;
  }

  /** Whether this is the file that was delivered, as far as a mark can tell. */
  async #isDelivered({ inode, device }: FileFacts): Promise<boolean> {
    if (this.#marked === undefined) return true;
    const marked = await this.#place.files.lstat(markPath(this.#place, this.#marked)).catch(() => undefined);
    return marked === undefined || (marked.inode === inode && marked.device === device);
  }

  /** Takes the mark away: the record says COMPLETED, or that the delivery was withdrawn. Never rejects. */
  async recorded(): Promise<void> {
    const marked = this.#marked;
    this.#marked = undefined;
    if (marked !== undefined) await this.#sweepName(markPath(this.#place, marked));
  }

  /**
   * Removes what is still in the staging directory, the mark apart; not before the final name is stable. The delivery stands, whatever
   * happens here: a staged name that stays shows by its second name that it was delivered, and it and a journal are swept like
   * any leftover. Never rejects.
   */
  async sweep(hasJournal: boolean): Promise<void> {
    const { stagedPath, journalPath } = this.#place;
    await Promise.all([
      this.#delivered === 'linked' ? this.#sweepName(stagedPath) : undefined,
      hasJournal ? this.#sweepName(journalPath) : undefined,
    ]);
  }

  /** The sender will hear that the transfer failed and send again: a copy under the final name would make two. */
  async #undo(final: string, how: DeliveredHow): Promise<void> {
    const { files, stagedPath } = this.#place;
    await this.recorded();
    await (how === 'linked' ? files.unlink(final) : files.rename(final, stagedPath)).then(
      () => (this.#delivered = undefined),
      () => undefined,
    );
  }

  async #mark(how: DeliveredHow): Promise<void> {
    if (await mark(this.#place, how)) this.#marked = how;
  }

  /** A file that stays is swept like any leftover. */
  async #sweepName(path: string): Promise<void> {
    await unlinkIfThere(this.#place.files, path).catch(() => false);
  }
}
