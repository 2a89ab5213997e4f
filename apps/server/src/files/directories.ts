import { stat } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';

import { makeDirectories } from '@pesit-node/ground';

import { validation } from '@pesit-node/service';
import type { FieldError } from '@pesit-node/service';

import { isHidden, ReservedPaths } from './reserved-paths.js';
import type { PathConfig } from './reserved-paths.js';

/** Judgements of directories are made again after this many milliseconds, and no more than so many are kept. */
const KEPT_MS = 5000;
const KEPT = 1000;

/** A directory as a listener or virtual file names it: the field of the request, for its error. */
export interface ConfiguredPath {
  readonly field: string;
  readonly path: string | null | undefined;
  /** Whether it is created when it is missing; not for a path that may name one file. */
  readonly create: boolean;
}

interface Judgement {
  readonly until: number;
  /** Under which `storage.roots`: they may be configured anew while the service runs. */
  readonly roots: readonly string[];
  readonly fault: Promise<string | undefined>;
}

/**
 * Where files may lie: configured directories are absolute, or relative to `data.directory`, and inside `storage.roots`.
 * They are created when they are configured, never later: a directory that is missing at the time of a transfer may be a
 * volume that is not mounted, and files must not vanish under its mount point.
 */
export class Directories {
  readonly #data: string;
  readonly #reserved: ReservedPaths;
  /** Real path of a directory → why no file may lie there; asked for every file. */
  readonly #judged = new Map<string, Judgement>();

  constructor(config: PathConfig) {
    this.#data = config['data.directory'];
    this.#reserved = new ReservedPaths(config, [this.received, this.send]);
  }

  /** Where received files go when neither virtual file nor listener says otherwise. */
  get received(): string {
    return join(this.#data, 'from-partners');
  }

  /** Where files to send are looked for when neither says otherwise. */
  get send(): string {
    return join(this.#data, 'to-partners');
  }

  /** The absolute path of a configured one. */
  resolve(path: string): string {
    return resolve(this.#data, path);
  }

  /** Creates the default directories; at start. */
  async prepare(): Promise<void> {
    for (const path of [this.received, this.send]) await makeDirectories(path, 0o750);
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
   * Why a file may not be received or sent, whatever its directory was when that was configured: links may have come into
   * its path since, or configuration and database may be older than this version.
   * @param directory as configured
   * @param path the real path of the file, or the one that it will have
   * @returns in words; undefined when it may
   */
  async faultOf(directory: string, path: string): Promise<string | undefined> {
    const name = basename(path);
    const fault = isHidden(name)
      ? `${path} is hidden: give it another name, in ${dirname(path)}`
      : await this.#judge(dirname(path));
    if (fault === undefined || path === directory || path.startsWith(directory + sep)) return fault;
    return `${directory} leads to ${path} by a link: ${fault}; remove the link`;
  }

  #judge(directory: string): Promise<string | undefined> {
    const now = performance.now();
    const { roots } = this.#reserved;
    const known = this.#judged.get(directory);
    if (known?.roots === roots && known.until > now) return known.fault;
    if (this.#judged.size >= KEPT) this.#judged.clear();
    const fault = this.#reserved.faultOf(directory);
    this.#judged.set(directory, { until: now + KEPT_MS, roots, fault });
    return fault;
  }

  async #fault(path: string, create: boolean): Promise<string | undefined> {
    const isFile = await stat(path).then(
      (facts) => facts.isFile(),
      () => false,
    );
    const fault =
      (await this.#reserved.faultOfNew(path)) ?? (isFile ? await this.#reserved.faultOf(dirname(path)) : undefined);
    if (fault !== undefined || !create) return fault;
    try {
      await makeDirectories(path, 0o750);
      return undefined;
    } catch (error) {
      return `${path} cannot be created: ${(error as Error).message}`;
    }
  }
}
