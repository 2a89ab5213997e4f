import { createHash } from 'node:crypto';
import { basename, dirname } from 'node:path';

import { PesitError } from '@pesit-node/protocol';
import { settledWithin } from '@pesit-node/ground';
import { ApiError, conflict, notFound, unavailable } from '@pesit-node/service';
import type { Audit, Caller, Config } from '@pesit-node/service';
import { realPathOf } from '@pesit-node/storage';
import type { FileStores, ReadableFile, VolumeWatch } from '@pesit-node/storage';

import type { Directories } from '../files/directories.js';
import type { TransferDetail, TransferStore } from './store.js';

export interface TransferContentDeps {
  readonly config: Pick<Config<'server'>, 'transfer.content-download' | 'storage.answer-timeout'>;
  readonly transfers: Pick<TransferStore, 'get'>;
  readonly directories: Directories;
  readonly stores: FileStores;
  readonly volumes: Pick<VolumeWatch, 'fault'>;
  readonly audit: Pick<Audit, 'entry' | 'knex'>;
}

export interface TransferContent {
  readonly file: ReadableFile;
  readonly name: string;
  /** How long a read may take, milliseconds. */
  readonly limitMs: number;
}

/** Bytes that are hashed at a time. */
const BLOCK = 262_144;

const gone = (id: number, reason: string, cause?: unknown): ApiError =>
  new ApiError('GONE', `The file of transfer ${id} is no longer there: ${reason}`, { cause });

const checksumOf = async (file: ReadableFile): Promise<string> => {
  const hash = createHash('sha256');
  const block = Buffer.allocUnsafe(BLOCK);
  for (let at = 0; ;) {
    const read = await file.readv([block], at);
    if (read === 0) return `sha256:${hash.digest('hex')}`;
    hash.update(block.subarray(0, read));
    at += read;
  }
};

/**
 * Whether this is the file that the transfer sent, or delivered: a sent one by its version. The bytes of a delivered one were there before
 * its record had its end; one that was changed after that, or by a clock that is not that of the database, is told by its checksum.
 */
const isItsFile = async (row: TransferDetail, file: ReadableFile): Promise<boolean> => {
  const { size, mtimeNs } = file.version;
  if (size !== row.size) return false;
  if (row.direction === 'SEND') return String(mtimeNs) === row.source_mtime_ns;
  if (row.end_time !== null && mtimeNs <= BigInt(row.end_time.getTime()) * 1_000_000n) return true;
  return row.checksum !== null && (await checksumOf(file)) === row.checksum;
};

export type OpenContent = (id: number, by: Caller | undefined) => Promise<TransferContent>;

/** Files of transfers that are over, for administrators; each request is in the audit log before the file is given away. */
export const transferContent = (deps: TransferContentDeps): OpenContent => {
  const { config, transfers, directories, stores, volumes, audit } = deps;

  const find = async (row: TransferDetail & { readonly path: string }): Promise<ReadableFile> => {
    const { id, path } = row;
    const fault = await directories.faultOf(dirname(path), path);
    if (fault !== undefined) throw gone(id, fault);
    // Records have paths with links resolved: one came into it since.
    if ((await realPathOf(path)) !== path) throw gone(id, `a link is on the way to ${path} now`);
    const file = await stores
      .at(dirname(path))
      .open(path)
      .catch((error: unknown) => {
        throw error instanceof PesitError ? gone(id, 'it was fetched, moved or removed', error) : error;
      });
    try {
      if (await isItsFile(row, file)) return file;
    } catch (error) {
      file.close().catch(() => undefined);
      throw error;
    }
    file.close().catch(() => undefined);
    throw gone(id, `${path} is another file now, or was changed since`);
  };

  /**
   * @throws {ApiError} 403 unless `transfer.content-download`; 404; 409 no file, or not COMPLETED; 410 the file is gone, or another one; 503 the
   * volume does not answer
   */
  return async (id, by) => {
    if (!config['transfer.content-download']) {
      throw new ApiError('FORBIDDEN', 'Files of partners are not given away here: transfer.content-download allows it');
    }
    const row = await transfers.get(id);
    if (row === undefined) throw notFound('Transfer', id, '/api/v1/transfers');
    const { type, status, path } = row;
    if (type !== 'FILE') throw conflict(`Transfer ${id} is a message: its text is in GET /api/v1/transfers/${id}`);
    if (status !== 'COMPLETED' || path === null) {
      throw conflict(`Transfer ${id} is ${status}: its file can be downloaded when it is COMPLETED`);
    }
    if (volumes.fault !== undefined) throw unavailable(`The volumes cannot be used: ${volumes.fault.reason}`);
    const limitMs = config['storage.answer-timeout'] * 1000;
    const found = find({ ...row, path });
    const settled = await settledWithin(found, limitMs);
    if (settled.kind === 'failed') throw settled.error;
    if (settled.kind === 'late') {
      // Nobody waits for it then.
      found.then((file) => file.close()).catch(() => undefined);
      throw unavailable(`The volume of ${path} did not answer in ${limitMs / 1000} s (storage.answer-timeout)`);
    }
    const file = settled.value;
    try {
      const entry = { by, action: 'content read', objectType: 'transfer', object: String(id), details: { path } };
      await audit.knex.transaction((trx) => audit.entry(entry)(trx));
      return { file, name: basename(path), limitMs };
    } catch (error) {
      file.close().catch(() => undefined);
      throw error;
    }
  };
};
