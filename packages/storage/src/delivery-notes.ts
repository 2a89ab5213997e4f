import { constants } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@pesit-node/ground';
import { storageError } from './errors.js';
import { flushDirectories, readFully, unlinkIfThere, writeFully } from './files.js';
import type { FileOperations } from './files.js';
import { nodeFiles } from './node-files.js';
import { STAGING_DIRECTORY } from './path-safety.js';

const SUFFIX = '.delivery';
/** A note says a few names and figures: one that is longer was not written here. */
const MAX_NOTE = 1_048_576;

/**
 * Notes of what is about to be delivered, one a key, beside the staged files: the intent of a delivery for whoever keeps it
 * outside a database. Written before the partner hears that the file is here, removed when its record says COMPLETED.
 */
export class DeliveryNotes {
  readonly #root: string;
  readonly #files: FileOperations;

  /** @param root the receive directory */
  constructor(root: string, files: FileOperations = nodeFiles) {
    this.#root = root;
    this.#files = files;
  }

  get #staging(): string {
    return join(this.#root, STAGING_DIRECTORY);
  }

  #pathOf(key: string): string {
    return join(this.#staging, `${key}${SUFFIX}`);
  }

  /**
   * @param durable on stable storage when this resolves; otherwise it survives the process alone
   * @throws StorageError
   */
  async write(key: string, text: string, durable: boolean): Promise<void> {
    const path = this.#pathOf(key);
    try {
      const bytes = Buffer.from(text);
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC;
      const file = await this.#files.open(path, flags, 0o600);
      try {
        await writeFully(file, [bytes], 0, bytes.length);
        if (durable) await file.datasync();
      } finally {
        await file.close();
      }
      if (durable) await flushDirectories(this.#files, [this.#staging]);
    } catch (error) {
      throw storageError(error, 'write', path, 'the note of the delivery');
    }
  }

  /** Undefined when there is none, or it cannot be read. */
  async read(key: string): Promise<string | undefined> {
    try {
      const file = await this.#files.open(this.#pathOf(key), constants.O_RDONLY);
      try {
        const { size } = await file.stat();
        const bytes = Buffer.alloc(Math.min(size, MAX_NOTE));
        return bytes.toString('utf8', 0, await readFully(file, [bytes], 0, bytes.length));
      } finally {
        await file.close();
      }
    } catch {
      return undefined;
    }
  }

  async remove(key: string): Promise<void> {
    await unlinkIfThere(this.#files, this.#pathOf(key));
  }

  /** The notes that are there, whatever they say. */
  async list(): Promise<readonly { readonly key: string; readonly modified: Date }[]> {
    const found = [];
    for (const name of await this.#names()) {
      const facts = await this.#files.lstat(join(this.#staging, name)).catch(() => undefined);
      if (facts === undefined) continue;
      found.push({ key: name.slice(0, -SUFFIX.length), modified: new Date(Number(facts.mtimeNs / 1_000_000n)) });
    }
    return found;
  }

  async #names(): Promise<readonly string[]> {
    try {
      return (await this.#files.readdir(this.#staging)).filter((name) => name.endsWith(SUFFIX));
    } catch (error) {
      // Nothing was ever staged here.
      if (codeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }
}
