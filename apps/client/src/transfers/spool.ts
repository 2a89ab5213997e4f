import { createReadStream } from 'node:fs';
import { link, lstat, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { makeDirectories } from '@pesit-node/ground';

import type { PesitError } from '@pesit-node/protocol';
import { ApiError, unavailable } from '@pesit-node/service';
import { formatOf, MAX_RECORD_LENGTH, StagedFile, storageError, StorageError } from '@pesit-node/storage';
import type { Delivery, ProcessDirectory, SpaceReserve } from '@pesit-node/storage';

import { sendable } from './sendable.js';
import type { Sendable } from './sendable.js';

/** Its name in the send tree. */
export const SPOOL = 'spool';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** How file systems answer that make no second name of a file, or no more of them. */
const NO_HARD_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** For the texts of refusals. */
const CONTENT = 'the content';

type Content = AsyncIterable<Buffer> | Iterable<Buffer>;

interface Writing {
  readonly directory: string;
  readonly id: string;
  /** In `directory`. */
  readonly path: string;
  readonly content: Content;
  readonly hashed: boolean;
}

/** Makes new names and renames in a directory survive a power cut. */
const flush = async (path: string): Promise<void> => {
  const directory = await open(path, 'r');
  await directory.sync().finally(() => directory.close());
};

/** Seconds after which another try is worth it. */
const RETRY_AFTER = 60;

/** 507 or 503. */
const notStored = (error: PesitError): ApiError => {
  const text = `The content cannot be stored: ${error.peerText ?? error.message}`;
  if (error.condition !== 'disk full') return unavailable(text, RETRY_AFTER, error);
  return new ApiError('INSUFFICIENT_STORAGE', text, { headers: { 'Retry-After': String(RETRY_AFTER) }, cause: error });
};

/** A content in the spool. */
export interface Spooled extends Sendable {
  /** `sha256:` and hex, when it was asked for. */
  readonly checksum: string | undefined;
}

/**
 * Contents that came with requests, each under the id of the one transfer that it belongs to: it is there whole or not at all,
 * and goes when its transfer is over and nobody may ask for it again (`spool.retention`). Pods share the directory; whose
 * content is to be there is in the database (`content` of a transfer), and is written there before a content is removed. While a
 * content comes in it lies in the temp tree (`data.temp-directory`), in the directory of this process.
 */
export class Spool {
  readonly #root: string;
  readonly #uploads: ProcessDirectory;
  readonly #reserve: SpaceReserve;

  /**
   * @param root the send tree
   * @param uploads where contents are until they are complete; may lie on another volume
   */
  constructor(root: string, uploads: ProcessDirectory, reserve: SpaceReserve) {
    this.#root = root;
    this.#uploads = uploads;
    this.#reserve = reserve;
  }

  get #directory(): string {
    return join(this.#root, SPOOL);
  }

  #pathOf(id: string): string {
    return join(this.#directory, id);
  }

  /**
   * Stores a content; it is on stable storage when this resolves. Memory is bounded: the content is read no faster than the
   * disk takes it.
   * @param hashed with its checksum, computed on the way
   * @throws {ApiError} 507 when the disk is full, or no more is free than must stay; 503 when the tree cannot be written; whatever
   *   `content` throws. Nothing is left behind.
   */
  async store(id: string, content: Content, hashed = false): Promise<Spooled> {
    try {
      this.#reserve.requireVolumes();
      const uploads = await this.#uploads.ready().catch((error: unknown) => {
        throw storageError(error, 'create', this.#uploads.path, CONTENT);
      });
      const upload = await this.#write({ directory: uploads, id, path: id, content, hashed });
      try {
        await this.#take(upload.path, id);
      } finally {
        await rm(upload.path, { force: true }).catch(() => undefined);
      }
      const path = await realpath(this.#pathOf(id));
      return { ...sendable(path, await lstat(path, { bigint: true })), checksum: upload.checksum };
    } catch (error) {
      throw error instanceof StorageError ? notStored(error) : error;
    }
  }

  /** Writes a content below `directory`, whole or not at all; it is on stable storage when this resolves. */
  async #write({ directory, id, path, content, hashed }: Writing): Promise<Delivery> {
    let staged: StagedFile | undefined;
    try {
      await this.#reserve.admit(directory);
      staged = await StagedFile.create({
        receiveDirectory: directory,
        key: id,
        format: formatOf({ recordLength: MAX_RECORD_LENGTH }),
        checksum: hashed ? 'sha256' : 'none',
        growth: { watch: this.#reserve.watch(directory) },
      });
      for await (const chunk of content) {
        for (let start = 0; start < chunk.length; start += MAX_RECORD_LENGTH) {
          const piece = chunk.subarray(start, start + MAX_RECORD_LENGTH);
          if (!staged.write({ parts: [piece], ends: [1], bytes: piece.length })) await staged.drained();
        }
      }
      return await staged.deliver({ path, overwrite: false });
    } catch (error) {
      await staged?.discard().catch(() => undefined);
      throw error;
    }
  }

  /** A whole upload becomes the content of a transfer: by its name alone, or by a copy where it lies on another volume. */
  async #take(upload: string, id: string): Promise<void> {
    try {
      await this.prepare();
      await rename(upload, this.#pathOf(id));
      await flush(this.#directory);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw storageError(error, 'deliver', upload, CONTENT);
      const content = createReadStream(upload);
      await this.#write({ directory: this.#root, id, path: `${SPOOL}/${id}`, content, hashed: false });
    }
  }

  /** Makes the directory where it is missing. */
  async prepare(): Promise<void> {
    const made = await makeDirectories(this.#directory, 0o700);
    if (made !== undefined) await flush(this.#root);
  }

  /**
   * The content of one transfer for another one as well: each of the two may be removed without the other.
   * @returns undefined when it is gone
   */
  async share(from: string, to: string): Promise<Sendable | undefined> {
    try {
      await link(this.#pathOf(from), this.#pathOf(to));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return undefined;
      if (NO_HARD_LINKS.has(code)) return this.store(to, createReadStream(this.#pathOf(from)));
      if (code === 'ENOSPC' || code === 'EDQUOT') {
        throw notStored(storageError(error, 'create', this.#pathOf(to), CONTENT));
      }
      throw unavailable(
        `The content of transfer ${from} cannot be kept for another one (${code ?? 'unknown'}): try again, or send it with a new request`,
        RETRY_AFTER,
        error,
      );
    }
    await flush(this.#directory);
    const path = await realpath(this.#pathOf(to));
    return sendable(path, await lstat(path, { bigint: true }));
  }

  /** Ids of the transfers whose contents are there. */
  async ids(): Promise<readonly string[]> {
    return (await readdir(this.#directory).catch(() => [])).filter((name) => UUID.test(name));
  }

  /** When a content was stored, or shared: one that is shared is as old as the first. */
  async changedAt(id: string): Promise<Date> {
    return lstat(this.#pathOf(id)).then(
      ({ ctime }) => ctime,
      () => new Date(),
    );
  }

  async remove(id: string): Promise<void> {
    await rm(this.#pathOf(id), { force: true });
  }
}
