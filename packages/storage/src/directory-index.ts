/**
 * Index of the directories that files are sent from, so that a SELECT does not look at each of thousands of files again.
 *
 * A listing is believed while its directory (device, inode, modification time) is the one that was read, and not for longer
 * than `MAX_AGE_MS`: no time of a directory says that a file in it was written anew. The code that chooses a file looks at that one
 * again, and asks for a listing made from now on (`fresh`) before it says that there is none.
 * When only names came and went, only new ones are looked at. A directory that changed a moment before it was read may
 * change again without a new time (`GRANULARITY_MS`): its names are read again the next time.
 */
import { AtOnce, breathe, forEachAtOnce } from './at-once.js';
import type { FileFacts } from './files.js';
import { nodeFiles } from './node-files.js';

import { byAge, isPlainName, sendableIn } from './sendable-file.js';
import type { LookFiles, SendableFile } from './sendable-file.js';

export interface DirectoryIndexOptions {
  /** Default: the real file system. */
  readonly files?: LookFiles;
  /** Directories that are kept. Default 100. */
  readonly maxDirectories?: number;
  /** Names that are kept, of all directories; one with more is read for each look. Default 50,000. */
  readonly maxNames?: number;
  /** Milliseconds since the epoch. Default: the clock of the machine. */
  readonly now?: () => number;
}

interface Listing {
  /** As it was before its names were read. */
  readonly directory: FileFacts;
  /** When the reading of the names began, and when that of all the files did: milliseconds since the epoch. */
  readonly readAt: number;
  readonly lookedAt: number;
  /** Undefined: no file that may be sent. */
  readonly names: ReadonlyMap<string, SendableFile | undefined>;
  /** Its reading looked at each file. */
  readonly isComplete: boolean;
  readonly oldestFirst: readonly SendableFile[];
}

export interface Look {
  /** Those that may be sent, oldest first, then by name. */
  readonly files: readonly SendableFile[];
  /** Each was looked at since this look was asked for. */
  readonly isFresh: boolean;
}

/** A reading that has not begun: whoever asks meanwhile waits for it too. */
interface Planned {
  fresh: boolean;
  readonly listing: Promise<Listing>;
}

const MAX_AGE_MS = 10_000;
/** The coarsest clock of a file system in use: that of FAT. */
const GRANULARITY_MS = 2000;
/** Readings of different directories. */
const READINGS_AT_ONCE = 4;
/** In one reading. Few: the data of all transfers wait for the same threads. */
const LOOKS_AT_ONCE = 8;
/** Files that are sorted, or names that are gone through, before others have the event loop. */
const SLICE = 1000;

export class DirectoryIndex {
  readonly files: LookFiles;
  readonly #maxDirectories: number;
  readonly #maxNames: number;
  readonly #now: () => number;
  readonly #readings = new AtOnce(READINGS_AT_ONCE);
  /** The one that was used last is the last. */
  readonly #kept = new Map<string, Listing>();
  readonly #newest = new Map<string, Promise<Listing>>();
  readonly #planned = new Map<string, Planned>();
  #names = 0;

  constructor({
    files = nodeFiles,
    maxDirectories = 100,
    maxNames = 50_000,
    now = Date.now,
  }: DirectoryIndexOptions = {}) {
    this.files = files;
    this.#maxDirectories = maxDirectories;
    this.#maxNames = maxNames;
    this.#now = now;
  }

  /**
   * @param root real path of a directory
   * @param fresh the answer is to be
   * @throws errors of the file layer
   */
  async look(root: string, fresh = false): Promise<Look> {
    const kept = fresh ? undefined : await this.#believed(root);
    if (kept !== undefined) return { files: kept.oldestFirst, isFresh: false };
    const { oldestFirst, isComplete } = await this.#read(root, fresh);
    return { files: oldestFirst, isFresh: isComplete };
  }

  async #believed(root: string): Promise<Listing | undefined> {
    const kept = this.#kept.get(root);
    if (kept === undefined || !isSettled(kept) || this.#isOld(kept)) return undefined;
    if (!isSameDirectory(await this.files.lstat(root), kept.directory)) return undefined;
    // Meanwhile another reading may have found more.
    if (this.#kept.get(root) === kept) {
      this.#kept.delete(root);
      this.#kept.set(root, kept);
    }
    return kept;
  }

  /** One reading of a directory at a time; those who ask while it runs share the next one. */
  #read(root: string, fresh: boolean): Promise<Listing> {
    const planned = this.#planned.get(root);
    if (planned !== undefined) {
      planned.fresh ||= fresh;
      return planned.listing;
    }
    const begin = () =>
      this.#readings.run(async () => {
        this.#planned.delete(root);
        const kept = next.fresh ? undefined : this.#kept.get(root);
        const listing = await this.#list(root, kept === undefined || this.#isOld(kept) ? undefined : kept);
        this.#keep(root, listing);
        return listing;
      });
    const running = this.#newest.get(root) ?? Promise.resolve();
    const next: Planned = { fresh, listing: running.then(begin, begin) };
    this.#planned.set(root, next);
    this.#newest.set(root, next.listing);
    const ended = () => {
      if (this.#newest.get(root) === next.listing) this.#newest.delete(root);
    };
    void next.listing.then(ended, ended);
    return next.listing;
  }

  /** @param before what was found of the names that are still there; undefined: each is looked at */
  async #list(root: string, before: Listing | undefined): Promise<Listing> {
    const readAt = this.#now();
    const directory = await this.files.lstat(root);
    const known = before !== undefined && isSameInode(directory, before.directory) ? before : undefined;
    const names = new Map<string, SendableFile | undefined>();
    const unknown: string[] = [];
    for (const [i, name] of (await this.files.readdir(root)).entries()) {
      if (i % SLICE === SLICE - 1) await breathe();
      if (!isPlainName(name)) continue;
      if (known?.names.has(name) === true) names.set(name, known.names.get(name));
      else unknown.push(name);
    }
    await forEachAtOnce(unknown, LOOKS_AT_ONCE, async (name) => {
      names.set(name, await sendableIn(this.files, root, name));
    });
    const isUnchanged = known !== undefined && unknown.length === 0 && names.size === known.names.size;
    const oldestFirst = isUnchanged ? known.oldestFirst : await sortedByAge(names.values());
    const lookedAt = known?.lookedAt ?? readAt;
    return { directory, readAt, lookedAt, names, isComplete: known === undefined, oldestFirst };
  }

  #keep(root: string, listing: Listing): void {
    this.#forget(root);
    if (listing.names.size > this.#maxNames) return;
    this.#kept.set(root, listing);
    this.#names += listing.names.size;
    for (const oldest of this.#kept.keys()) {
      if (this.#names <= this.#maxNames && this.#kept.size <= this.#maxDirectories) break;
      this.#forget(oldest);
    }
  }

  #forget(root: string): void {
    this.#names -= this.#kept.get(root)?.names.size ?? 0;
    this.#kept.delete(root);
  }

  #isOld({ lookedAt }: Listing): boolean {
    const age = this.#now() - lookedAt;
    return age < 0 || age > MAX_AGE_MS;
  }
}

/** A later change of the directory shows in its time. */
const isSettled = ({ directory, readAt }: Listing): boolean =>
  Number(directory.mtimeNs / 1_000_000n) + GRANULARITY_MS < readAt;

const isSameInode = (a: FileFacts, b: FileFacts): boolean => a.device === b.device && a.inode === b.inode;

const isSameDirectory = (a: FileFacts, b: FileFacts): boolean => isSameInode(a, b) && a.mtimeNs === b.mtimeNs;

/** Sorted in slices that are merged, so that a large directory does not hold up the event loop. */
const sortedByAge = async (found: Iterable<SendableFile | undefined>): Promise<readonly SendableFile[]> => {
  const files = [...found].filter((file) => file !== undefined);
  let runs: SendableFile[][] = [];
  for (let start = 0; start < files.length; start += SLICE) {
    runs.push(files.slice(start, start + SLICE).sort(byAge));
    await breathe();
  }
  while (runs.length > 1) {
    const merged: SendableFile[][] = [];
    for (let i = 0; i < runs.length; i += 2) merged.push(await merge(runs[i] ?? [], runs[i + 1] ?? []));
    runs = merged;
  }
  return runs[0] ?? [];
};

const merge = async (left: readonly SendableFile[], right: readonly SendableFile[]): Promise<SendableFile[]> => {
  const merged: SendableFile[] = [];
  let [l, r] = [0, 0];
  for (;;) {
    const [a, b] = [left[l], right[r]];
    const isLeft = a !== undefined && (b === undefined || byAge(a, b) <= 0);
    const next = isLeft ? a : b;
    if (next === undefined) return merged;
    merged.push(next);
    if (isLeft) l += 1;
    else r += 1;
    if (merged.length % SLICE === 0) await breathe();
  }
};
