import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { makeDirectories } from '@pesit-node/ground';

import { ApiError, validation } from '@pesit-node/service';
import { claimedName, LocalFileStore, readClaimedName, STAGING_DIRECTORY, StorageError } from '@pesit-node/storage';
import type { ClaimedKey, FileStore, ProcessDirectory, SpaceReserve } from '@pesit-node/storage';

import { sendable } from './sendable.js';
import type { Sendable } from './sendable.js';
import { Spool, SPOOL } from './spool.js';

const SENT_POINTS = '.sent';

/**
 * The files to send: `<data.directory>/send`. Files are found below it alone, whatever a request names.
 */
export class SendTree {
  readonly root: string;
  readonly spool: Spool;
  /** Where the files lie. */
  readonly store: FileStore;

  constructor(dataDirectory: string, uploads: ProcessDirectory, reserve: SpaceReserve) {
    this.root = join(dataDirectory, 'send');
    this.store = new LocalFileStore(this.root);
    this.spool = new Spool(this.root, uploads, reserve);
  }

  /** See `SentPoints`. @param fence of the claim of the transfer */
  sentPointsPath(id: string, fence: number): string {
    return join(this.root, STAGING_DIRECTORY, `${claimedName({ key: id, fence })}${SENT_POINTS}`);
  }

  /** The tables of claims before this one, full paths, the newest first. */
  async earlierSentPoints(id: string, fence: number): Promise<readonly string[]> {
    const found = (await this.#tables()).filter((table) => table.key === id && table.fence < fence);
    return found.sort((one, two) => two.fence - one.fence).map((table) => this.sentPointsPath(id, table.fence));
  }

  /** The ids of transfers that have a table of sent points, and its path; of each claim that left one. */
  async sentPoints(): Promise<readonly (readonly [id: string, path: string])[]> {
    return (await this.#tables()).map(({ key, fence }) => [key, this.sentPointsPath(key, fence)]);
  }

  async #tables(): Promise<readonly ClaimedKey[]> {
    const names = await readdir(join(this.root, STAGING_DIRECTORY)).catch(() => []);
    const tables = names.filter((name) => name.endsWith(SENT_POINTS));
    return tables.map((name) => readClaimedName(name.slice(0, -SENT_POINTS.length)));
  }

  async prepare(): Promise<void> {
    await makeDirectories(this.root, 0o700);
    await this.spool.prepare();
  }

  /**
   * The regular file that `filename` names, relative to the send tree or absolute inside it.
   * @throws {ApiError} 404 FILE_NOT_FOUND; 400 when it leads out of the tree, is hidden, of the spool or no regular file
   */
  async find(filename: string): Promise<Sendable> {
    const located = await this.store.locate(filename).catch((error: unknown) => {
      throw error instanceof StorageError ? badName(`${error.peerText}: stay in the send tree ${this.root}`) : error;
    });
    const segments = located.name.split('/');
    if (segments[0] === SPOOL) {
      throw badName(
        `${SPOOL} holds what came with other requests: stay in ${this.root}, outside of it; to send it again, replay its transfer`,
      );
    }
    if (located.kind === 'nothing') {
      throw new ApiError(
        'FILE_NOT_FOUND',
        `There is no file ${JSON.stringify(filename)} in the send tree ${this.root}: put it there, or send its content with the request`,
      );
    }
    const hidden = segments.find((segment) => segment.startsWith('.'));
    if (hidden !== undefined) {
      throw badName(`${hidden} is hidden, where files are that are not complete: stay in the rest of ${this.root}`);
    }
    if (located.kind === 'directory') throw badName('it is a directory: only regular files can be sent');
    if (located.version === undefined) throw badName('it is no regular file');
    return sendable(located.path, located.version);
  }
}

const badName = (message: string): ApiError => validation([{ field: 'filename', message }]);

/** The bytes of canonical base64 (RFC 4648 §4): no line ends, padding where it belongs. */
export const decodeBase64 = (text: string): Buffer => {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') === text) return bytes;
  throw validation([
    { field: 'fileContent', message: 'expected base64 (RFC 4648 §4) with padding and without line ends' },
  ]);
};
