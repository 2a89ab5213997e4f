import { lstat, opendir } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';

import { DATA_MARK, secretKeyFile } from '@pesit-node/service';
import type { CommonConfig } from '@pesit-node/service';
import { isInsideRoots, realPathOf } from '@pesit-node/storage';

export type PathConfig = Pick<
  CommonConfig,
  'data.temp-directory' | 'data.directory' | 'storage.roots' | 'database.directory' | 'secrets.key'
>;

/** Contents of `data.directory` besides directories of partners: database, keys, log, and the trees of a client app that shares it. */
const OWN = /^(?:database(?:$|-)|secrets\.key|service\.log)/;
const OF_THE_CLIENT_APP = /^(?:send|received|temp)$/;

/** How far below a directory that is configured data directories of other services are looked for. */
const DEPTH = 3;
const ENTRIES = 10_000;

/**
 * Where no partner may reach, whatever was configured and wherever links lead (design §2, Bound everything that a peer controls):
 * the service's own files, staged files and anything else that is hidden, data directories of other services.
 */
export class ReservedPaths {
  readonly #data: string;
  readonly #config: Pick<PathConfig, 'storage.roots'>;
  readonly #defaults: readonly string[];
  /** Files and directories of the service that may lie outside its data directory. */
  readonly #own: readonly string[];

  /** @param defaults directories that are admitted although they may lie outside `storage.roots` */
  constructor(config: PathConfig, defaults: readonly string[]) {
    this.#data = config['data.directory'];
    this.#config = config;
    this.#defaults = defaults;
    const key = secretKeyFile(config);
    this.#own = [config['database.directory'], config['data.temp-directory'], ...(key === undefined ? [] : [key])];
  }

  /** `storage.roots` as they are now. */
  get roots(): readonly string[] {
    return this.#config['storage.roots'];
  }

  /** The same, and what is always admitted. */
  get #inside(): readonly string[] {
    return [...this.roots, ...this.#defaults];
  }

  /**
   * Why files may not lie in `directory`, which need not exist.
   * @returns in words, with the place to stay in; undefined when they may
   */
  async faultOf(directory: string): Promise<string | undefined> {
    if (!(await isInsideRoots(directory, this.#inside))) {
      return `expected a path inside ${this.roots.join(', ')} (storage.roots), got ${directory}`;
    }
    const path = await realPathOf(directory);
    const data = await realPathOf(this.#data);
    const reason =
      (await this.#hidden(path, data)) ?? (await this.#ours(path, data)) ?? (await this.#ofAnotherService(path, data));
    if (reason === undefined) return undefined;
    const shown = path === directory ? path : `${directory}, a link to ${path},`;
    return `${shown} ${reason}: stay in ${this.roots.join(' or ')}, in a directory for partners alone`;
  }

  /** The same of a directory that is configured now: no data directory of another service lies below it either. */
  async faultOfNew(directory: string): Promise<string | undefined> {
    const fault = await this.faultOf(directory);
    if (fault !== undefined) return fault;
    const found = await markedBelow(directory);
    return found && `${directory} is above ${found}, the data directory of another service: choose another one`;
  }

  /** Above a root the names are the operator's business. */
  async #hidden(path: string, data: string): Promise<string | undefined> {
    const roots = [data, ...(await realPathsOf(this.#inside))];
    const above = roots.filter((root) => isWithin(root, path)).sort((a, b) => b.length - a.length);
    const hidden = relative(above[0] ?? sep, path)
      .split(sep)
      .find(isHidden);
    return hidden && `has the hidden part ${hidden}, where the service keeps what is not complete`;
  }

  async #ours(path: string, data: string): Promise<string | undefined> {
    if (isWithin(path, data)) return 'holds the data directory of the service';
    const [first = ''] = isWithin(data, path) ? relative(data, path).split(sep) : [];
    if (OWN.test(first)) return 'holds files of the service itself';
    if (OF_THE_CLIENT_APP.test(first)) return 'is for the client app, which may share the data directory';
    for (const own of await realPathsOf(this.#own)) {
      if (isWithin(own, path) || isWithin(path, own)) return 'holds files of the service itself';
    }
    return undefined;
  }

  async #ofAnotherService(path: string, data: string): Promise<string | undefined> {
    // The nearest one counts: data directories may lie in each other.
    for (let at = path; at !== data && at !== dirname(at); at = dirname(at)) {
      if (await isMarked(at)) return `lies in ${at}, the data directory of another service`;
    }
    return undefined;
  }
}

export const isHidden = (name: string): boolean => name.startsWith('.') && name !== '.' && name !== '..';

const realPathsOf = (paths: readonly string[]): Promise<readonly string[]> =>
  Promise.all(paths.map((path) => realPathOf(path)));

const isWithin = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);

const isMarked = (directory: string): Promise<boolean> =>
  lstat(join(directory, DATA_MARK)).then(
    () => true,
    () => false,
  );

/** The first data directory of a service that is found below; as far as a bounded look goes. */
const markedBelow = async (directory: string): Promise<string | undefined> => {
  let level = [directory];
  let left = ENTRIES;
  for (let depth = 0; depth < DEPTH; depth += 1) {
    const below: string[] = [];
    for (const at of level) {
      const entries = await opendir(at).catch(() => undefined);
      if (entries === undefined) continue;
      for await (const entry of entries) {
        if ((left -= 1) < 0) return undefined;
        if (entry.name === DATA_MARK) return at;
        if (entry.isDirectory()) below.push(join(at, entry.name));
      }
    }
    level = below;
  }
  return undefined;
};
