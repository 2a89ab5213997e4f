/**
 * Whether the volumes of this process can be worked with, looked at again and again: a volume that is shared may be away, slow or
 * read-only for one pod alone, and a directory where it was not mounted takes files that no other pod will ever see.
 *
 * A look writes, flushes and removes a small file in each directory, one after the other, and asks whether the directory bears
 * the mark of the cluster. No more than one look is under way at a time, however long it takes: on a volume that does not answer
 * it costs one thread, and ends by itself when the volume is back. The look after one that was late begins at once, and
 * nothing is believed to be well before one was in time.
 */
import { EventEmitter } from 'node:events';
import { constants } from 'node:fs';
import { join } from 'node:path';

import { codeOf, settledWithin } from '@pesit-node/ground';
import type { Settled } from '@pesit-node/ground';

import { StorageError, storageError } from './errors.js';
import { unlinkIfThere, writeFully } from './files.js';
import type { FileOperations } from './files.js';
import { urgentFiles } from './node-files.js';

/** `silent`: a call has not returned in time; `slow`: it has, late; `failed`: it failed; `not shared`: another volume than that of the cluster. */
export type VolumeFaultKind = 'silent' | 'slow' | 'failed' | 'not shared';

/** Why this process takes no files. */
export interface VolumeFault {
  readonly kind: VolumeFaultKind;
  readonly directory: string;
  /** For the operator: what was found, and what to do. */
  readonly reason: string;
  readonly since: Date;
}

/** The directories of one look. */
export interface WatchedDirectories {
  /** It must be there and take files: `data.directory`. */
  readonly main: string;
  /** They must be there; one that may not be written to is for sending alone, unless it was written to before. */
  readonly others: readonly string[];
}

export interface VolumeWatchOptions {
  readonly directories: () => WatchedDirectories;
  /** Name of this pod: that of the file that a look writes. */
  readonly node: string;
  /** How long a look may take, milliseconds. */
  readonly limitMs: () => number;
  /**
   * Looks for the mark of the cluster in a directory that can be written to, where pods share it.
   * @throws StorageError of condition `not shared`
   */
  readonly checkMark?: (directory: string) => Promise<void>;
  /** Default: the real file system. */
  readonly files?: FileOperations;
  /** Milliseconds of a clock that nobody can set. */
  readonly monotonic?: () => number;
}

export interface VolumeWatchEvents {
  /** A fault came, went, or is another one now. */
  change: [VolumeFault | undefined];
}

interface Look {
  readonly begun: number;
  readonly work: Promise<void>;
  /** Directory that is being looked at. */
  at: string;
  isLate: boolean;
}

/** How volumes say that they are not to be written to. */
const NOT_WRITABLE: ReadonlySet<string | undefined> = new Set(['EROFS', 'EACCES', 'EPERM']);

const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

export class VolumeWatch extends EventEmitter<VolumeWatchEvents> {
  readonly #options: Required<Omit<VolumeWatchOptions, 'checkMark'>> & Pick<VolumeWatchOptions, 'checkMark'>;
  #look: Look | undefined;
  #fault: VolumeFault | undefined;
  #answerMs: number | undefined;
  /** Those that took a file once. */
  readonly #writable = new Set<string>();

  constructor(options: VolumeWatchOptions) {
    super();
    this.#options = { files: urgentFiles, monotonic: () => performance.now(), ...options };
  }

  /** Undefined while all is well, and before the first look has ended. */
  get fault(): VolumeFault | undefined {
    return this.#fault;
  }

  /** How long the last look took that ended, milliseconds; undefined before the first. */
  get answerMs(): number | undefined {
    return this.#answerMs;
  }

  /** Looks at the volumes, or waits for the look that is under way, as long as a look may take. Never rejects. */
  async look(): Promise<void> {
    for (;;) {
      const look = (this.#look ??= this.#begin());
      const settled = await patiently(look.work, this.#options.limitMs());
      if (settled.kind === 'late') {
        look.isLate = true;
        this.#judge('silent', look.at, silent(look.at, this.#options.monotonic() - look.begun));
        return;
      }
      this.#look = undefined;
      const tookMs = this.#options.monotonic() - look.begun;
      this.#answerMs = tookMs;
      if (settled.kind === 'failed') {
        const isForeign = settled.error instanceof StorageError && settled.error.condition === 'not shared';
        this.#judge(isForeign ? 'not shared' : 'failed', look.at, reasonOf(settled.error));
        return;
      }
      if (!look.isLate) {
        this.#recovered();
        return;
      }
      this.#judge('slow', look.at, slow(look.at, tookMs, this.#options.limitMs()));
    }
  }

  #begin(): Look {
    const { directories, monotonic } = this.#options;
    const { main, others } = directories();
    const look: { -readonly [K in keyof Look]: Look[K] } = {
      ...{ begun: monotonic(), at: main, isLate: false },
      work: Promise.resolve(),
    };
    look.work = (async () => {
      for (const directory of new Set([main, ...others])) {
        look.at = directory;
        await this.#lookAt(directory, directory === main);
      }
    })();
    return look;
  }

  async #lookAt(directory: string, isMain: boolean): Promise<void> {
    const { files, checkMark } = this.#options;
    try {
      const facts = await files.lstat(await files.realpath(directory));
      if (facts.kind !== 'directory') throw notADirectory(directory);
      await this.#write(directory);
      this.#writable.add(directory);
    } catch (error) {
      if (!isMain && !this.#writable.has(directory) && NOT_WRITABLE.has(codeOf(error))) return;
      throw storageError(error, 'write', join(directory, '…'), 'a file');
    }
    await checkMark?.(directory);
  }

  async #write(directory: string): Promise<void> {
    const { files, node } = this.#options;
    const path = join(directory, `${LOOK_PREFIX}${node}`);
    const file = await files.open(path, FLAGS, 0o600);
    try {
      const line = Buffer.from(`${node}\n`);
      await writeFully(file, [line], 0, line.length);
      await file.datasync();
    } finally {
      await file.close();
    }
    await unlinkIfThere(files, path);
  }

  #judge(kind: VolumeFaultKind, directory: string, reason: string): void {
    const before = this.#fault;
    this.#fault = { kind, directory, reason, since: before?.since ?? new Date() };
    if (before?.kind !== kind || before.directory !== directory) this.emit('change', this.#fault);
  }

  #recovered(): void {
    if (this.#fault === undefined) return;
    this.#fault = undefined;
    this.emit('change', undefined);
  }
}

/** Begin of the name of the file that a look writes. */
const LOOK_PREFIX = '.pesit-look-';

/** Parts that a limit is waited for in. */
const PARTS = 5;

/** As `settledWithin`; where this process stood still meanwhile, the work has the rest of the time yet. */
const patiently = async <T>(work: Promise<T>, limitMs: number): Promise<Settled<T>> => {
  for (let part = 0; part < PARTS; part += 1) {
    const settled = await settledWithin(work, limitMs / PARTS);
    if (settled.kind !== 'late') return settled;
  }
  return { kind: 'late' };
};

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const seconds = (milliseconds: number): string => (milliseconds / 1000).toFixed(1);

const silent = (directory: string, ms: number): string =>
  `the volume of ${directory} has not answered for ${seconds(ms)} s: check the file server and the way to it`;

const slow = (directory: string, tookMs: number, limitMs: number): string =>
  `the volume of ${directory} took ${seconds(tookMs)} s to write and flush a small file, at most ${seconds(limitMs)} s are expected (storage.answer-timeout): check its load and the way to it`;

const notADirectory = (directory: string): StorageError =>
  new StorageError(`${directory} is not a directory: correct the configuration`, {
    fault: 'local',
    diagnostic: '2-211',
    peerText: 'a directory of this node cannot be used',
  });
