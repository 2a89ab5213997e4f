import { createReadStream } from 'node:fs';
import { link, lstat, open, readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { unavailable } from '@pesit-node/service';
import { formatOf, MAX_RECORD_LENGTH, StagedFile, StorageError } from '@pesit-node/storage';
import type { SpaceReserve } from '@pesit-node/storage';

import { sendable } from './sendable.js';
import type { Sendable } from './sendable.js';

/** Its name in the send tree. */
export const SPOOL = 'spool';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** How file systems answer that make no second name of a file, or no more of them. */
const NO_HARD_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

type Content = AsyncIterable<Buffer> | Iterable<Buffer>;

/** A content in the spool. */
export interface Spooled extends Sendable {
  /** `sha256:` and hex, when it was asked for. */
  readonly checksum: string | undefined;
}

/**
 * Contents that came with requests, each under the id of the one transfer that it belongs to: it is there whole or not at all,
 * and goes when its transfer is over and nobody may ask for it again (`spool.retention`). Pods share the directory; whose
 * content is to be there is in the database (`content` of a transfer), and is written there before a content is removed.
 */
export class Spool {
  readonly #root: string;
  readonly #reserve: SpaceReserve;

  /** @param root the send tree */
  constructor(root: string, reserve: SpaceReserve) {
    this.#root = root;
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
   * @throws {ApiError} 503 when the disk is full, or no more is free than must stay, or the tree cannot be written; whatever `content` throws. Nothing is left behind.
   */
  async store(id: string, content: Content, hashed = false): Promise<Spooled> {
    let staged: StagedFile | undefined;
    try {
      await this.#reserve.admit(this.#root);
      staged = await StagedFile.create({
        receiveDirectory: this.#root,
        key: id,
        format: formatOf({ recordLength: MAX_RECORD_LENGTH }),
        checksum: hashed ? 'sha256' : 'none',
        growth: { watch: this.#reserve.watch(this.#root) },
      });
      for await (const chunk of content) {
        for (let start = 0; start < chunk.length; start += MAX_RECORD_LENGTH) {
          const piece = chunk.subarray(start, start + MAX_RECORD_LENGTH);
          if (!staged.write({ parts: [piece], ends: [1], bytes: piece.length })) await staged.drained();
        }
      }
      const { path, checksum } = await staged.deliver({ path: `${SPOOL}/${id}`, overwrite: false });
      return { ...sendable(path, await lstat(path, { bigint: true })), checksum };
    } catch (error) {
      await staged?.discard().catch(() => undefined);
      throw error instanceof StorageError
        ? unavailable(`The content cannot be stored: ${error.peerText}`, 60, error)
        : error;
    }
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
      throw unavailable('The content cannot be stored once more', 60, error);
    }
    const directory = await open(this.#directory, 'r');
    await directory.sync().finally(() => directory.close());
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
