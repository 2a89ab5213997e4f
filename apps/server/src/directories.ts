import { mkdir, realpath } from 'node:fs/promises';
import { join, relative, resolve, sep } from 'node:path';

import { validation } from '@pesit-node/service';
import type { CommonConfig, FieldError } from '@pesit-node/service';
import { isInsideRoots } from '@pesit-node/storage';

/** What else lives in `data.directory`: the embedded database (that of earlier versions too), keys, staged files, anything hidden. */
const OWN_FILES = /^(?:database(?:$|-)|secrets\.key|\.)/;

/** A directory as a listener or virtual file names it: the field of the request, for its error. */
export interface ConfiguredPath {
  readonly field: string;
  readonly path: string | null | undefined;
  /** Whether it is created when it is missing; not for a path that may name one file. */
  readonly create: boolean;
}

/**
 * Where files may lie: configured directories are absolute, or relative to `data.directory`, and inside `storage.roots`.
 * They are created when they are configured, never later: a directory that is missing at the time of a transfer may be a
 * volume that is not mounted, and files must not vanish under its mount point.
 */
export class Directories {
  readonly #data: string;
  readonly #config: Pick<CommonConfig, 'storage.roots'>;

  constructor(config: Pick<CommonConfig, 'data.directory' | 'storage.roots'>) {
    this.#data = config['data.directory'];
    this.#config = config;
  }

  /** Where received files go when neither virtual file nor listener says otherwise. */
  get received(): string {
    return join(this.#data, 'received');
  }

  /** Where files to send are looked for when neither says otherwise. */
  get send(): string {
    return join(this.#data, 'send');
  }

  /** The absolute path of a configured one. */
  resolve(path: string): string {
    return resolve(this.#data, path);
  }

  /** Creates the default directories; at start. */
  async prepare(): Promise<void> {
    for (const path of [this.received, this.send]) await mkdir(path, { recursive: true, mode: 0o750 });
  }

  /** @throws {ApiError} 400 naming each field whose path lies outside, is the service's own, or cannot be created. */
  async admit(paths: readonly ConfiguredPath[]): Promise<void> {
    const faults: FieldError[] = [];
    for (const { field, path, create } of paths) {
      if (path === null || path === undefined) continue;
      const message = await this.#fault(this.resolve(path), create);
      if (message !== undefined) faults.push({ field, message });
    }
    if (faults.length > 0) throw validation(faults);
  }

  /**
   * Why a directory that was admitted may not be used any more: a link that came into its path since leads to where none is
   * admitted. Nothing is asked of the disk when there is no link.
   * @param found the real path of a file in it, or of what it is itself
   * @returns in words; undefined when it may
   */
  async faultOf(path: string, found: string): Promise<string | undefined> {
    if (found === path || found.startsWith(path + sep)) return undefined;
    const fault = await this.#fault(path, false);
    return fault && `${path} leads to ${found} by a link: ${fault}; remove the link`;
  }

  async #fault(path: string, create: boolean): Promise<string | undefined> {
    if (!(await isInsideRoots(path, this.#config['storage.roots']))) {
      return `expected a path inside ${this.#config['storage.roots'].join(', ')} (storage.roots), got ${path}`;
    }
    if (await this.#isOwn(path)) return `${path} holds files of the service itself: choose a directory of its own`;
    if (!create) return undefined;
    try {
      await mkdir(path, { recursive: true, mode: 0o750 });
      return undefined;
    } catch (error) {
      return `${path} cannot be created: ${(error as Error).message}`;
    }
  }

  /** A partner must never read the keys, nor write into the database, by a directory that was chosen carelessly. */
  async #isOwn(path: string): Promise<boolean> {
    const real = await realpath(path).catch(() => path);
    const data = await realpath(this.#data).catch(() => this.#data);
    return [relative(this.#data, path), relative(data, real)].some(
      (below) => below === '' || OWN_FILES.test(firstOf(below)),
    );
  }
}

/** `..` is no hidden name: the path is simply elsewhere. */
const firstOf = (below: string): string => {
  const [first = ''] = below.split('/');
  return first === '..' ? '' : first;
};
