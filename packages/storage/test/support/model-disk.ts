import { constants } from 'node:fs';
import { dirname } from 'node:path';
import type { FileFacts, FileOperations, OpenFile } from '../../src/index.js';

/** A change that a flush makes stable: bytes at a place, or a new length. */
interface Change {
  readonly position: number;
  /** Undefined: the file ends at `position` from now on. */
  readonly bytes: Buffer | undefined;
}

interface Inode {
  readonly id: bigint;
  readonly isDirectory: boolean;
  now: Buffer;
  stable: Buffer;
  pending: Change[];
}

type Later = <T>(what: string, effect: () => T) => Promise<T>;

type NameChange = ReadonlyMap<string, Inode | undefined>;

/** Sectors are written whole or not, in any order. */
const SECTOR = 512;

/**
 * A disk in memory that forgets. What was written is there for whoever reads, and stable only once a flush that began
 * after the write has ended. `kill` ends the process: all that was written stays. `cutPower` keeps of what was not
 * flushed any sectors, and of the changes of names any number from the oldest on; a directory that is flushed keeps its own.
 *
 * Every operation waits for its turn: `inFlight` holds them, whoever drives the test lets one after the other happen. Some happen at
 * once instead, as synchronous calls do: never a flush, nor a write that is one (`synchronous-calls.ts`).
 */
export class ModelDisk {
  inFlight: { readonly what: string; readonly effect: () => unknown; readonly answer: () => void }[] = [];
  readonly #chance: () => number;
  readonly #atOnce: number;
  #ids = 0n;
  #names = new Map<string, Inode>();
  #stableNames = new Map<string, Inode>();
  #pendingNames: NameChange[] = [];
  #boots = 1;
  /** What processes that are gone go on to ask for is not heard. */
  #kills = 0;

  /**
   * @param chance 0 ≤ x < 1: decides short writes and what a power cut keeps
   * @param atOnce share of the operations that happen at once, 0 to 1
   */
  constructor(chance: () => number, atOnce = 0) {
    this.#chance = chance;
    this.#atOnce = atOnce;
    this.#names.set('/d', this.#inode(true));
    this.#stableNames = new Map(this.#names);
  }

  get #boot(): string {
    return String(this.#boots).padStart(12, '0');
  }

  content(path: string): Buffer | undefined {
    return this.#names.get(path)?.now;
  }

  /** What a power cut would leave of it for certain; undefined when its name may be lost. */
  stableContent(path: string): Buffer | undefined {
    return this.#stableNames.get(path)?.stable;
  }

  /** The process is gone: of the operations on their way some happened. */
  kill(): void {
    this.#kills += 1;
    for (const { effect } of this.inFlight.splice(0)) {
      if (this.#chance() < 0.5) continue;
      try {
        effect();
      } catch {
        // Nobody is left to hear of it.
      }
    }
  }

  cutPower(): void {
    this.kill();
    this.#boots += 1;
    const kept = Math.floor(this.#chance() * (this.#pendingNames.length + 1));
    for (const change of this.#pendingNames.slice(0, kept)) applyNames(this.#stableNames, change);
    this.#pendingNames = [];
    // A name in a directory that has none is no name.
    this.#names = new Map(
      [...this.#stableNames].filter(([name]) => name === '/d' || this.#stableNames.has(dirname(name))),
    );
    this.#stableNames = new Map(this.#names);
    for (const inode of this.#names.values()) {
      const survivors = inode.pending.flatMap((change) => this.#survivors(change));
      inode.pending = [];
      for (const change of survivors) inode.stable = applied(inode.stable, change);
      inode.now = inode.stable;
    }
  }

  /** The disk as a new process sees it: `/d` under another name, as locks of this process go by paths. */
  mountedAt(root: string): FileOperations {
    const at = (path: string) => `/d${path.slice(root.length)}`;
    const kills = this.#kills;
    const queued: Later = (what, effect) =>
      kills === this.#kills ? this.#later(what, effect) : new Promise<never>(() => undefined);
    const later: Later = (what, effect) =>
      kills === this.#kills && this.#atOnce > 0 && this.#chance() < this.#atOnce
        ? new Promise((resolve) => {
            resolve(effect());
          })
        : queued(what, effect);
    const find = (path: string) => {
      const inode = this.#names.get(at(path));
      if (inode === undefined) throw osError('ENOENT');
      return inode;
    };
    const rename = (changes: NameChange) => {
      applyNames(this.#names, changes);
      this.#pendingNames.push(changes);
    };
    const create = (path: string, isDirectory: boolean) => {
      const inode = this.#inode(isDirectory);
      rename(new Map([[at(path), inode]]));
      return inode;
    };
    const facts = (inode: Inode): FileFacts => ({
      kind: inode.isDirectory ? 'directory' : 'file',
      size: inode.now.length,
      mtimeNs: 0n,
      device: 0n,
      inode: inode.id,
      links: [...this.#names.values()].filter((other) => other === inode).length,
    });
    return {
      open: (path, flags) =>
        later(`open ${at(path)}`, () => {
          const exists = this.#names.has(at(path));
          if (exists && flags & constants.O_EXCL) throw osError('EEXIST');
          const inode = exists || !(flags & constants.O_CREAT) ? find(path) : create(path, false);
          return this.#openFile(at(path), inode, (flags & constants.O_DSYNC) !== 0, () => facts(inode), later, queued);
        }),
      mkdir: (path) =>
        later(`mkdir ${at(path)}`, () => {
          if (this.#names.has(at(path))) throw osError('EEXIST');
          create(path, true);
        }),
      link: (existing, name) =>
        later(`link ${at(name)}`, () => {
          if (this.#names.has(at(name))) throw osError('EEXIST');
          rename(new Map([[at(name), find(existing)]]));
        }),
      unlink: (path) =>
        later(`unlink ${at(path)}`, () => {
          find(path);
          rename(new Map([[at(path), undefined]]));
        }),
      rename: (from, to) =>
        later(`rename ${at(to)}`, () =>
          rename(
            new Map([
              [at(from), undefined],
              [at(to), find(from)],
            ]),
          ),
        ),
      lstat: (path) => later(`lstat ${at(path)}`, () => facts(find(path))),
      realpath: (path) => Promise.resolve(path),
      boot: this.#boot,
      readdir: (path) =>
        later(`readdir ${at(path)}`, () =>
          [...this.#names.keys()]
            .filter((name) => dirname(name) === at(path))
            .map((name) => name.slice(at(path).length + 1)),
        ),
    };
  }

  #openFile(
    path: string,
    inode: Inode,
    synchronous: boolean,
    facts: () => FileFacts,
    later: Later,
    queued: Later,
  ): OpenFile {
    const change = (made: Change) => {
      inode.now = applied(inode.now, made);
      inode.pending.push(made);
    };
    const flush = () => {
      const before = inode.pending.length;
      const names = this.#pendingNames.filter((made) => [...made.keys()].some((name) => dirname(name) === path));
      return queued(`flush ${path}`, () => {
        for (const made of inode.pending.splice(0, before)) inode.stable = applied(inode.stable, made);
        for (const made of names) applyNames(this.#stableNames, made);
        this.#pendingNames = this.#pendingNames.filter((made) => !names.includes(made));
      });
    };
    return {
      writev: (buffers, position) => {
        const bytes = Buffer.concat(buffers);
        const taken = this.#chance() < 0.3 ? Math.max(1, Math.ceil(bytes.length * this.#chance())) : bytes.length;
        return (synchronous ? queued : later)(`write ${path}`, () => {
          const made = { position, bytes: Buffer.from(bytes.subarray(0, taken)) };
          change(made);
          if (synchronous) {
            inode.pending = inode.pending.filter((other) => other !== made);
            inode.stable = applied(inode.stable, made);
          }
          return taken;
        });
      },
      readv: ([first], position) =>
        later(`read ${path}`, () => (first === undefined ? 0 : inode.now.copy(first, 0, position))),
      datasync: flush,
      sync: flush,
      truncate: (size) => later(`truncate ${path}`, () => change({ position: size, bytes: undefined })),
      stat: () => later(`stat ${path}`, facts),
      close: () => Promise.resolve(),
    };
  }

  #inode(isDirectory: boolean): Inode {
    this.#ids += 1n;
    return { id: this.#ids, isDirectory, now: Buffer.alloc(0), stable: Buffer.alloc(0), pending: [] };
  }

  #survivors({ position, bytes }: Change): Change[] {
    if (bytes === undefined) return this.#chance() < 0.5 ? [{ position, bytes }] : [];
    const sectors: Change[] = [];
    for (let from = 0; from < bytes.length;) {
      const to = Math.min(bytes.length, (Math.floor((position + from) / SECTOR) + 1) * SECTOR - position);
      if (this.#chance() < 0.7) sectors.push({ position: position + from, bytes: bytes.subarray(from, to) });
      from = to;
    }
    return sectors;
  }

  #later<T>(what: string, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = () => {
        try {
          resolve(effect());
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      this.inFlight.push({ what, effect, answer });
    });
  }
}

function applied(content: Buffer, { position, bytes }: Change): Buffer {
  if (bytes === undefined) {
    return Buffer.concat([content.subarray(0, position), Buffer.alloc(Math.max(0, position - content.length))]);
  }
  const next = Buffer.alloc(Math.max(content.length, position + bytes.length));
  content.copy(next);
  bytes.copy(next, position);
  return next;
}

function applyNames(names: Map<string, Inode>, change: NameChange): void {
  for (const [name, inode] of change) {
    if (inode === undefined) names.delete(name);
    else names.set(name, inode);
  }
}

const osError = (code: string) => Object.assign(new Error(`${code}: from the model`), { code });

/** Pseudo-random numbers (mulberry32): the same for the same seed. */
export function chances(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Lets all that follows from what has happened be done. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Lets any one operation happen. @returns false when none is on its way */
export async function oneHappens(disk: ModelDisk, chance: () => number): Promise<boolean> {
  await settled();
  const [turn] = disk.inFlight.splice(Math.floor(chance() * disk.inFlight.length), 1);
  turn?.answer();
  if (turn) await settled();
  return turn !== undefined;
}

export async function someHappen(disk: ModelDisk, chance: () => number): Promise<void> {
  while (chance() < 0.6 && (await oneHappens(disk, chance)));
}

/** Lets operations happen in any order until the promise is settled. */
export async function driven<T>(disk: ModelDisk, chance: () => number, promise: Promise<T>): Promise<T> {
  const end = { reached: false };
  const reach = () => (end.reached = true);
  promise.then(reach, reach);
  for (let idle = 0; !end.reached;) {
    idle = (await oneHappens(disk, chance)) ? 0 : idle + 1;
    if (idle > 3) throw new Error('nothing is on its way, and no end reached');
  }
  return promise;
}
