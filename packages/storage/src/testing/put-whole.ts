import type { ArticleBatch, SyncPoint } from '@pesit-node/protocol';
import { StorageError, storageError } from '../errors.js';
import type { ReceivedFile } from '../file-store.js';
import type { StoredPoint } from '../group-commit.js';
import { relativeSegments } from '../path-safety.js';
import type { StagedFile } from '../staged-file.js';
import type { Delivery, DeliveryTarget, StagedContent, TakenBack } from '../staged-options.js';

/** How a whole local file becomes an object. */
export interface Putting {
  /** @param from local path. @returns false when there is one already, and `overwrite` is false */
  put(from: string, key: string, overwrite: boolean): Promise<boolean>;
  /** @returns false when there is none, or another than was put last */
  remove(key: string): Promise<boolean>;
  /** Path that the store gives an object. */
  pathOf(key: string): string;
}

/**
 * A file that is staged on the local disk as any other, and delivered by putting it as one object. No mark is left: whether
 * it was delivered says the version of the object, which the intent of the delivery names.
 */
export class PutWhole implements ReceivedFile {
  readonly #staged: StagedFile;
  readonly #putting: Putting;
  #delivery: Promise<Delivery> | undefined;
  #target: { readonly key: string; readonly overwrite: boolean } | undefined;

  constructor(staged: StagedFile, putting: Putting) {
    this.#staged = staged;
    this.#putting = putting;
  }

  async deliver(target: DeliveryTarget): Promise<Delivery> {
    this.#delivery ??= this.#deliver(target);
    try {
      return await this.#delivery;
    } catch (error) {
      this.#delivery = undefined;
      throw error;
    }
  }

  async #deliver({ path: name, overwrite, admit }: DeliveryTarget): Promise<Delivery> {
    const content = await this.#staged.prepareDelivery();
    const key = relativeSegments(name).join('/');
    const path = this.#putting.pathOf(key);
    try {
      await admit?.(path);
      if (!(await this.#putting.put(this.stagedPath, key, overwrite))) throw exists(path);
    } catch (error) {
      throw storageError(error, 'deliver', path, 'the received file');
    }
    this.#target = { key, overwrite };
    await this.#staged.discard();
    return { path, ...content };
  }

  async takeBack(): Promise<TakenBack> {
    if (this.#target === undefined) throw new Error('nothing was delivered');
    if (this.#target.overwrite) return 'stays';
    return (await this.#putting.remove(this.#target.key)) ? 'taken back' : 'fetched';
  }

  get onFailure(): ((error: Error) => void) | undefined {
    return this.#staged.onFailure;
  }

  set onFailure(listener: ((error: Error) => void) | undefined) {
    this.#staged.onFailure = listener;
  }

  get stagedPath(): string {
    return this.#staged.stagedPath;
  }

  get articles(): number {
    return this.#staged.articles;
  }

  get dataBytes(): number {
    return this.#staged.dataBytes;
  }

  get size(): number {
    return this.#staged.size;
  }

  get bytesWritten(): number {
    return this.#staged.bytesWritten;
  }

  get stablePoint(): StoredPoint | undefined {
    return this.#staged.stablePoint;
  }

  write(batch: ArticleBatch, release?: () => void): boolean {
    return this.#staged.write(batch, release);
  }

  drained(): Promise<void> {
    return this.#staged.drained();
  }

  checkpoint(point: SyncPoint, gather?: number): Promise<void> {
    return this.#staged.checkpoint(point, gather);
  }

  goBack(point: SyncPoint): Promise<void> {
    return this.#staged.goBack(point);
  }

  prepareDelivery(): Promise<StagedContent> {
    return this.#staged.prepareDelivery();
  }

  recorded(): Promise<void> {
    return this.#staged.recorded();
  }

  lastPoint(): Promise<StoredPoint | undefined> {
    return this.#staged.lastPoint();
  }

  release(): Promise<void> {
    return this.#staged.release();
  }

  discard(): Promise<void> {
    return this.#staged.discard();
  }
}

const exists = (path: string) =>
  new StorageError(`${path} exists and overwrite is false: remove it, or give received files a name of their own`, {
    fault: 'local',
    diagnostic: '2-204',
    condition: 'name taken',
    peerText: 'a file of this name exists',
  });
