import { readFile } from 'node:fs/promises';
import { StorageError } from '../errors.js';
import { chooseOldest } from '../file-selection.js';
import type { SelectionRequest } from '../file-selection.js';
import type { FileStore, Located, ReadableFile, ReceiveOptions, ResumedReceiving } from '../file-store.js';
import type { FileVersion } from '../file-version.js';
import { matchesGlob } from '../glob.js';
import { byAge, isPlainName } from '../sendable-file.js';
import type { SendableFile } from '../sendable-file.js';
import { StagedFile } from '../staged-file.js';
import { PutWhole } from './put-whole.js';

interface StoredObject extends FileVersion {
  readonly content: Buffer;
  readonly tag: string;
}

/**
 * An object store that forgets with its process, and does what any of them does, no more: whole objects are put under a key,
 * on condition that there is none if that is wanted; objects are listed with size, time in whole seconds and ETag, and read
 * by ranges on condition of their ETag. No rename, no directories, no writing in part. Files are staged on the local disk.
 */
export class MemoryObjectStore implements FileStore {
  readonly capabilities = {
    renameIsAtomic: false,
    rangedReads: true,
    partialWritesSurvive: false,
    serverSideMove: false,
  };
  readonly staging: string;
  /** Ranges that were read: first byte and how many. */
  readonly ranges: (readonly [position: number, bytes: number])[] = [];
  /** The next put fails with this: before anything is stored, or after, when only its answer is lost. */
  failure: { readonly error: Error; readonly isStored: boolean } | undefined;
  readonly #objects = new Map<string, StoredObject>();
  #puts = 0;

  readonly #prefix: string;

  /**
   * @param staging absolute; must exist
   * @param prefix of the path of each object
   */
  constructor(staging: string, prefix = 'object://bucket/') {
    this.staging = staging;
    this.#prefix = prefix;
  }

  /** @param modified seconds since the epoch */
  store(key: string, content: Buffer, modified = Math.floor(Date.now() / 1000)): void {
    const mtimeNs = BigInt(modified) * 1_000_000_000n;
    this.#objects.set(key, { content, size: content.length, mtimeNs, tag: `"${++this.#puts}"` });
  }

  forget(key: string): void {
    this.#objects.delete(key);
  }

  contentOf(key: string): Buffer | undefined {
    return this.#objects.get(key)?.content;
  }

  find(request: SelectionRequest = {}): Promise<SendableFile | undefined> {
    const { exactName } = request;
    const only = exactName === undefined ? undefined : this.#sendable(exactName);
    if (only !== undefined) return Promise.resolve(only);
    const listed = [...this.#objects.keys()].flatMap((key) => this.#sendable(key) ?? []).sort(byAge);
    return chooseOldest(listed, request, ({ name }) => Promise.resolve(this.#sendable(name)), true);
  }

  findNamed(name: string, pattern = '*'): Promise<SendableFile | undefined> {
    return Promise.resolve(matchesGlob(pattern, name) ? this.#sendable(name) : undefined);
  }

  locate(name: string): Promise<Located> {
    const key = name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : name;
    const isOutside = /^\/|\0|:\/\//.test(key) || key.split('/').includes('..');
    if (isOutside) return Promise.reject(notOfThisStore(name));
    const version = this.#versionOf(key);
    const isPrefix = [...this.#objects.keys()].some((other) => other.startsWith(`${key}/`));
    const kind = version !== undefined ? 'file' : isPrefix ? 'directory' : 'nothing';
    return Promise.resolve({ path: this.#prefix + key, name: key, kind, version });
  }

  async version(path: string): Promise<FileVersion | undefined> {
    return this.#versionOf(await this.#keyOf(path));
  }

  async open(path: string): Promise<ReadableFile> {
    const key = await this.#keyOf(path);
    const opened = this.#versionOf(key);
    if (opened === undefined) throw missing(path);
    return {
      version: opened,
      readv: (buffers, position) => this.#read(path, key, opened.tag, buffers, position),
      stat: () => {
        const now = this.#versionOf(key);
        return now === undefined ? Promise.reject(missing(path)) : Promise.resolve(now);
      },
      close: () => Promise.resolve(),
    };
  }

  async receive(options: ReceiveOptions): Promise<PutWhole> {
    return this.#deliveredByPut(await StagedFile.create({ ...options, receiveDirectory: this.staging }));
  }

  async resume(options: ReceiveOptions): Promise<ResumedReceiving> {
    const resumed = await StagedFile.resume({ ...options, receiveDirectory: this.staging });
    return { ...resumed, file: this.#deliveredByPut(resumed.file) };
  }

  #deliveredByPut(staged: StagedFile): PutWhole {
    let tag: string | undefined;
    return new PutWhole(staged, {
      pathOf: (key) => this.#prefix + key,
      put: async (from, key, overwrite) => {
        const isPut = this.#put(key, await readFile(from), overwrite);
        tag = this.#objects.get(key)?.tag;
        return isPut;
      },
      remove: (key) => {
        const isOurs = tag !== undefined && this.#objects.get(key)?.tag === tag;
        return Promise.resolve(isOurs && this.#objects.delete(key));
      },
    });
  }

  /** @returns false when there is an object of this key already, and it may not be replaced */
  #put(key: string, content: Buffer, overwrite: boolean): boolean {
    const { failure } = this;
    this.failure = undefined;
    if (failure?.isStored === false) throw failure.error;
    if (!overwrite && this.#objects.has(key)) return false;
    this.store(key, content);
    if (failure !== undefined) throw failure.error;
    return true;
  }

  #read(path: string, key: string, tag: string, buffers: readonly Buffer[], position: number): Promise<number> {
    const object = this.#objects.get(key);
    if (object?.tag !== tag) return Promise.reject(changed(path));
    let read = 0;
    for (const buffer of buffers) read += object.content.copy(buffer, 0, Math.min(position + read, object.size));
    this.ranges.push([position, read]);
    return Promise.resolve(read);
  }

  #versionOf(key: string): (FileVersion & { readonly tag: string }) | undefined {
    const object = this.#objects.get(key);
    return object && { size: object.size, mtimeNs: object.mtimeNs, tag: object.tag };
  }

  #sendable(name: string): SendableFile | undefined {
    const version = this.#versionOf(name);
    if (version === undefined || !isPlainName(name)) return undefined;
    return { ...version, name, path: this.#prefix + name, modified: new Date(Number(version.mtimeNs / 1_000_000n)) };
  }

  #keyOf(path: string): Promise<string> {
    return path.startsWith(this.#prefix)
      ? this.locate(path).then(({ name }) => name)
      : Promise.reject(notOfThisStore(path));
  }
}

const notOfThisStore = (name: string) =>
  new StorageError(`${JSON.stringify(name)} leads out of its object store`, {
    fault: 'local',
    diagnostic: '2-226',
    peerText: 'the path leads outside its directory',
  });

const missing = (path: string) =>
  new StorageError(`there is no object ${path}`, {
    fault: 'local',
    diagnostic: '2-205',
    peerText: 'cannot open the file to send: no such file or directory',
  });

const changed = (path: string) =>
  new StorageError(`${path} was put anew while it was sent: send it again`, {
    fault: 'local',
    diagnostic: '2-215',
    condition: 'source changed',
    peerText: 'the source changed while it was sent',
  });
