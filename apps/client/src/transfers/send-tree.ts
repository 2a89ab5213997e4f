import type { BigIntStats } from 'node:fs';
import { lstat, mkdir, readdir, realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';

import { ApiError, unavailable, validation } from '@pesit-node/service';
import {
  formatOf,
  MAX_RECORD_LENGTH,
  resolveInside,
  STAGING_DIRECTORY,
  StagedFile,
  StorageError,
} from '@pesit-node/storage';

import type { StoredVersion } from './row.js';

/** A file that can be sent. */
export interface Sendable {
  /** Absolute, links resolved. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  readonly version: StoredVersion;
}

const sendable = (path: string, { size, mtimeNs }: BigIntStats): Sendable => ({
  path,
  size: Number(size),
  version: { size: Number(size), mtimeNs: String(mtimeNs) },
});

/** Contents that came with a request, below the send tree; they stay as long as their transfer may be sent again. */
const SPOOL = 'spool';
const SENT_POINTS = '.sent';

/**
 * The files to send: `<data.directory>/send`. Files are found below it alone, whatever a request names, and what is uploaded
 * appears in it whole or not at all.
 */
export class SendTree {
  readonly root: string;
  /** The same with links resolved. */
  #realRoot: string;

  constructor(dataDirectory: string) {
    this.root = join(dataDirectory, 'send');
    this.#realRoot = this.root;
  }

  /** Uploads that were queued, or were about to be. */
  get spoolDirectory(): string {
    return join(this.root, SPOOL);
  }

  /** See `SentPoints`. */
  sentPointsPath(id: string): string {
    return join(this.root, STAGING_DIRECTORY, `${id}${SENT_POINTS}`);
  }

  /** The ids of transfers that have a table of sent points, and its path. */
  async sentPoints(): Promise<readonly (readonly [id: string, path: string])[]> {
    const names = await readdir(join(this.root, STAGING_DIRECTORY)).catch(() => []);
    const ids = names.filter((name) => name.endsWith(SENT_POINTS)).map((name) => name.slice(0, -SENT_POINTS.length));
    return ids.map((id) => [id, this.sentPointsPath(id)]);
  }

  async prepare(): Promise<void> {
    await mkdir(this.root, { recursive: true, mode: 0o700 });
    this.#realRoot = await realpath(this.root);
  }

  /**
   * The regular file that a request names, relative to the send tree or absolute inside it.
   * @throws {ApiError} as `find`; 400 for a content that came with another request
   */
  async findNamed(filename: string): Promise<Sendable> {
    const found = await this.find(filename);
    if (relative(this.#realRoot, found.path).split('/')[0] === SPOOL) {
      throw badName(
        `${SPOOL} holds what came with other requests: stay in ${this.root}, outside of it; to send it again, replay its transfer`,
      );
    }
    return found;
  }

  /**
   * The regular file that `filename` names, relative to the send tree or absolute inside it.
   * @throws {ApiError} 404 FILE_NOT_FOUND; 400 when it leads out of the tree, is hidden or no regular file
   */
  async find(filename: string): Promise<Sendable> {
    // Absolute names come as they are configured, or as a record shows them.
    const root = isWithin(this.#realRoot, filename) ? this.#realRoot : this.root;
    const path = await resolveInside(root, filename).catch((error: unknown) => {
      throw error instanceof StorageError ? badName(`${error.peerText}: stay in the send tree ${this.root}`) : error;
    });
    const facts = await lstat(path, { bigint: true }).catch((error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENAMETOOLONG') throw badName('the name is too long');
      throw new ApiError(
        'FILE_NOT_FOUND',
        `There is no file ${JSON.stringify(filename)} in the send tree ${this.root}`,
        {
          cause: error,
        },
      );
    });
    const hidden = relative(this.#realRoot, path)
      .split('/')
      .find((part) => part.startsWith('.'));
    if (hidden !== undefined) {
      throw badName(`${hidden} is hidden, where files are that are not complete: stay in the rest of ${this.root}`);
    }
    if (facts.isDirectory()) throw badName('it is a directory: only regular files can be sent');
    if (!facts.isFile()) throw badName('it is no regular file');
    return sendable(path, facts);
  }

  /**
   * Stores a content under the id of its transfer; it is on stable storage when this resolves. Memory is bounded: the
   * content is read no faster than the disk takes it.
   * @throws {ApiError} 503 when the disk is full or the tree cannot be written; whatever `content` throws. Nothing is left behind.
   */
  async spool(id: string, content: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<Sendable> {
    let staged: StagedFile | undefined;
    try {
      staged = await StagedFile.create({
        receiveDirectory: this.root,
        key: id,
        format: formatOf({ recordLength: MAX_RECORD_LENGTH }),
        checksum: 'none',
      });
      for await (const chunk of content) {
        for (let start = 0; start < chunk.length; start += MAX_RECORD_LENGTH) {
          const piece = chunk.subarray(start, start + MAX_RECORD_LENGTH);
          if (!staged.write({ parts: [piece], ends: [1], bytes: piece.length })) await staged.drained();
        }
      }
      const { path } = await staged.deliver({ path: `${SPOOL}/${id}`, overwrite: false });
      return sendable(path, await lstat(path, { bigint: true }));
    } catch (error) {
      await staged?.discard().catch(() => undefined);
      throw error instanceof StorageError
        ? unavailable(`The content cannot be stored: ${error.peerText}`, 60, error)
        : error;
    }
  }
}

const isWithin = (root: string, path: string): boolean => path.startsWith(`${root}${sep}`);

const badName = (message: string): ApiError => validation([{ field: 'filename', message }]);

/** The bytes of canonical base64 (RFC 4648 §4): no line ends, padding where it belongs. */
export const decodeBase64 = (text: string): Buffer => {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') === text) return bytes;
  throw validation([
    { field: 'fileContent', message: 'expected base64 (RFC 4648 §4) with padding and without line ends' },
  ]);
};
