import { constants } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { DirectoryIndex } from './directory-index.js';
import { codeOf } from '@pesit-node/ground';
import { StorageError, storageError } from './errors.js';
import { findFileToSend, findNamedFile } from './file-selection.js';
import type { SelectionRequest } from './file-selection.js';
import type {
  FileStore,
  FileStoreCapabilities,
  FileStores,
  Located,
  ReadableFile,
  ReceivedFile,
  ReceiveOptions,
  ResumedReceiving,
} from './file-store.js';
import type { FileVersion } from './file-version.js';

import type { FileFacts, FileOperations, OpenFile } from './files.js';
import { nodeFiles } from './node-files.js';
import { isWithin, resolveInside } from './path-safety.js';
import type { SendableFile } from './sendable-file.js';
import { StagedFile } from './staged-file.js';

export interface LocalFileStoreOptions {
  /** Default: the real file system. */
  readonly files?: FileOperations;
  /** Keeps what is in the directory from one `find` to the next. Default: one for this store alone. */
  readonly index?: DirectoryIndex;
}

const SOURCE = 'the file to send';

/** A directory of the local disk, or of a volume that is mounted; for reading it may be one regular file. */
export class LocalFileStore implements FileStore {
  readonly capabilities: FileStoreCapabilities = {
    renameIsAtomic: true,
    rangedReads: true,
    partialWritesSurvive: true,
    serverSideMove: true,
  };
  /** As configured. */
  readonly staging: string;
  readonly #files: FileOperations;
  readonly #index: DirectoryIndex;

  /** @param root absolute; it may be a link */
  constructor(root: string, { files = nodeFiles, index = new DirectoryIndex({ files }) }: LocalFileStoreOptions = {}) {
    this.staging = root;
    this.#files = files;
    this.#index = index;
  }

  find(request?: SelectionRequest): Promise<SendableFile | undefined> {
    return findFileToSend(this.staging, request, this.#index);
  }

  findNamed(name: string, pattern?: string): Promise<SendableFile | undefined> {
    return findNamedFile(this.staging, name, pattern, this.#index);
  }

  async locate(name: string): Promise<Located> {
    const known = await this.#files.realpath(this.staging).catch(() => undefined);
    const real = known ?? this.staging;
    // An absolute name comes as it is configured, or as a record shows it.
    const path = await resolveInside(isWithin(real, name) ? real : this.staging, name, this.#files, known);
    const facts = await this.#files.lstat(path).catch(() => undefined);
    const at = { path, name: relative(real, path) };
    if (facts === undefined) return { ...at, kind: 'nothing', version: undefined };
    const { kind } = facts;
    if (kind === 'file') return { ...at, kind, version: versionOf(facts) };
    return { ...at, kind: kind === 'directory' ? kind : 'other', version: undefined };
  }

  async version(path: string): Promise<FileVersion | undefined> {
    try {
      const facts = await this.#files.lstat(await this.#inside(path));
      return facts.kind === 'file' ? versionOf(facts) : undefined;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw storageError(error, 'open', path, SOURCE);
    }
  }

  async open(path: string): Promise<ReadableFile> {
    // Without O_NONBLOCK the open of a FIFO waits for a writer that may never come.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
    try {
      const file = await this.#files.open(await this.#inside(path), flags);
      const facts = await file.stat().catch(async (error: unknown) => {
        await file.close();
        throw error;
      });
      if (facts.kind === 'file') return readable(file, versionOf(facts));
      await file.close();
      throw notRegular(path, facts.kind);
    } catch (error) {
      throw codeOf(error) === 'ELOOP' ? notRegular(path, 'link') : storageError(error, 'open', path, SOURCE);
    }
  }

  receive(options: ReceiveOptions): Promise<ReceivedFile> {
    return StagedFile.create({ ...options, receiveDirectory: this.staging, files: this.#files });
  }

  resume(options: ReceiveOptions): Promise<ResumedReceiving> {
    return StagedFile.resume({ ...options, receiveDirectory: this.staging, files: this.#files });
  }

  /** The path with the links before its last place resolved: in that one none is followed. @throws StorageError 2-226 */
  async #inside(path: string): Promise<string> {
    const root = await this.#files.realpath(this.staging);
    // A store that is one file, or what `find` has found most often.
    if (path === root || dirname(path) === root) return path;
    return join(await resolveInside(root, dirname(path), this.#files, root), basename(path));
  }
}

/** Stores for all directories of a service; what is in them is kept in one index. */
export class LocalFileStores implements FileStores {
  readonly #options: LocalFileStoreOptions;

  constructor({ files = nodeFiles, index = new DirectoryIndex({ files }) }: LocalFileStoreOptions = {}) {
    this.#options = { files, index };
  }

  at(location: string): FileStore {
    return new LocalFileStore(location, this.#options);
  }
}

const versionOf = ({ size, mtimeNs }: FileFacts): FileVersion => ({ size, mtimeNs });

/** The same reads: the bytes go from the file into the buffers of the caller. */
const readable = (file: OpenFile, version: FileVersion): ReadableFile => ({
  version,
  readv: (buffers, position) => file.readv(buffers, position),
  stat: async () => versionOf(await file.stat()),
  close: () => file.close(),
});

const notRegular = (path: string, kind: FileFacts['kind']) =>
  new StorageError(`${path} is not a regular file (${kind}): only regular files can be sent`, {
    fault: 'local',
    diagnostic: '2-211',
    peerText: `${SOURCE} is not a regular file`,
    expected: 'file',
    got: kind,
  });
