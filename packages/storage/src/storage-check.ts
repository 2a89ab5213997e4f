/**
 * Whether a directory keeps the promises that this package builds on (docs/operations.md, Storage): tried, with two processes, not
 * asked. It finds out what a file system does here and now; it cannot show what a power cut does, nor what a second machine sees: for
 * that, the other process must be there.
 */
import { join } from 'node:path';

import { contentOf, isMaker, putFile, readFile } from './check-other.js';
import type { StorageAnswer, StorageQuestion } from './check-other.js';
import { codeOf } from '@pesit-node/ground';
import { flushDirectories, unlinkIfThere } from './files.js';
import type { FileOperations } from './files.js';
import { nodeFiles } from './node-files.js';

/** `weaker`: the node works, with less safety or speed than elsewhere; `fails`: files can be lost, doubled or mixed up. */
export type StorageState = 'holds' | 'weaker' | 'fails';

export interface StorageFinding {
  readonly promise: string;
  readonly state: StorageState;
  /** In words: the figures and codes behind the state. */
  readonly seen: string;
  /** The consequence for the node where it does not hold. */
  readonly meaning: string;
}

export interface StorageCheckOptions {
  /** An empty directory on the file system to try; what is made in it is left to the caller. */
  readonly directory: string;
  /** Another process, with the same path to the directory. */
  readonly ask: (question: StorageQuestion) => Promise<StorageAnswer>;
  readonly files?: FileOperations;
  /** Milliseconds of a clock. Default: this machine's. */
  readonly now?: () => number;
  readonly onFinding?: (finding: StorageFinding) => void;
}

type Verdict = Pick<StorageFinding, 'state' | 'seen'>;
interface Ground {
  readonly files: FileOperations;
  readonly ask: StorageCheckOptions['ask'];
  readonly now: () => number;
  readonly path: (name: string) => string;
}
interface Check {
  readonly promise: string;
  readonly meaning: string;
  readonly run: (ground: Ground) => Promise<Verdict>;
}

const RACES = 100;
const RENAMES = 200;
const HAND_OVERS = 50;
const FLUSHES = 20;
/** A flush that takes longer makes sync points the limit of the speed (docs/performance.md). */
const SLOW_FLUSH_MS = 20;
const MOST_SKEW_MS = 2000;
/** A change within this time must show in the time of the file. */
const COARSE_MS = 100;
const NO_HARD_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

const holds = (seen: string): Verdict => ({ state: 'holds', seen });
const weaker = (seen: string): Verdict => ({ state: 'weaker', seen });
const fails = (seen: string): Verdict => ({ state: 'fails', seen });

/** Between asking the other process and acting here: a different while each time, so that either may come first. */
const stagger = async ({ files, path }: Ground, index: number): Promise<void> => {
  for (let turn = 0; turn < index % 16; turn++) await files.lstat(path('.'));
};

/** Both processes want each name at the same time: exactly one may get it. */
const race = async (
  tries: number,
  attempt: (index: number) => Promise<readonly [boolean, boolean]>,
): Promise<Verdict> => {
  let ours = 0;
  for (let index = 0; index < tries; index++) {
    const won = await attempt(index);
    if (won[0] === won[1]) {
      return fails(
        `of two processes that made one name at once, ${won[0] ? 'both were' : 'none was'} told that it did`,
      );
    }
    if (won[0]) ours++;
  }
  return holds(`${tries} names, each by one of two processes (${ours} and ${tries - ours})`);
};

/** Whether there are hard links at all; undefined: there are. */
const linksFault = async ({ files, path }: Ground): Promise<string | undefined> => {
  await putFile(files, path('linked'), 'x');
  try {
    await files.link(path('linked'), path('linked-2'));
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined || !NO_HARD_LINKS.has(code)) throw error;
    return code;
  }
};

const CHECKS: readonly Check[] = [
  {
    promise: 'a new name is made by one process alone (open with O_EXCL)',
    meaning: 'Two pods can take the same transfer, or give two files one name.',
    run: (ground) =>
      race(RACES, (index) => {
        const name = ground.path(`exclusive-${index}`);
        return Promise.all([
          stagger(ground, index).then(() => isMaker(putFile(ground.files, name, ''))),
          ground.ask({ verb: 'create', path: name }).then(({ done }) => done),
        ]);
      }),
  },
  {
    promise: 'a link never replaces a name that exists',
    meaning:
      'Without hard links a received file is moved over an empty one of its own: safe between pods, but a program that renames a file to that name meanwhile loses it.',
    run: async (ground) => {
      const { files, ask, path } = ground;
      const fault = await linksFault(ground);
      if (fault !== undefined) return weaker(`the file system has no hard links (${fault})`);
      await putFile(files, path('taken'), 'first');
      if (await isMaker(files.link(path('linked'), path('taken'))))
        return fails('a link was made over a name that exists');
      const kept = await readFile(files, path('taken'));
      if (kept?.text !== 'first') return fails('a link that was refused has changed the file that was there');
      return race(RACES, (index) => {
        const name = path(`link-${index}`);
        return Promise.all([
          stagger(ground, index).then(() => isMaker(files.link(path('linked'), name))),
          ask({ verb: 'link', existing: path('linked'), path: name }).then(({ done }) => done),
        ]);
      });
    },
  },
  {
    promise: 'a rename replaces a file in one step',
    meaning: 'Readers of received files with `overwrite` can find no file, or half of one.',
    run: async ({ files, ask, path }) => {
      await putFile(files, path('current'), contentOf(0));
      const renames = async (): Promise<void> => {
        try {
          for (let index = 1; index <= RENAMES; index++) {
            await putFile(files, path('next'), contentOf(index));
            await files.rename(path('next'), path('current'));
          }
        } finally {
          await putFile(files, path('enough'), '');
        }
      };
      const [answer] = await Promise.all([
        ask({ verb: 'watch', path: path('current'), until: path('enough') }),
        renames(),
      ]);
      const { reads = 0, missing = 0, torn = 0 } = answer;
      const seen = `${RENAMES} renames under ${reads} reads of another process: ${missing} times no file, ${torn} times a mixture`;
      return missing + torn === 0 ? holds(seen) : fails(seen);
    },
  },
  {
    promise: 'a directory can be flushed',
    meaning: 'A file that was acknowledged can lose its name in a power cut.',
    run: async ({ files, path }) => {
      await flushDirectories(files, [path('.')]);
      return holds('fsync of a directory is taken');
    },
  },
  {
    promise: 'a file can be flushed, in little time',
    meaning: 'Sync points are acknowledged after a flush: ask for a larger interval or window (docs/performance.md).',
    run: async ({ files, now, path }) => {
      const times: number[] = [];
      for (let index = 0; index < FLUSHES; index++) {
        const began = now();
        await putFile(files, path(`flush-${index}`), contentOf(index));
        times.push(now() - began);
      }
      times.sort((a, b) => a - b);
      const [median = 0, worst = 0] = [times[FLUSHES / 2], times.at(-1)];
      const seen = `64 KB written and flushed in ${median.toFixed(1)} ms (median of ${FLUSHES}, worst ${worst.toFixed(1)})`;
      return median > SLOW_FLUSH_MS ? weaker(seen) : holds(seen);
    },
  },
  {
    promise: 'another process reads at once what was flushed',
    meaning: 'A pod that continues the transfer of another can find fewer bytes than were acknowledged.',
    run: async ({ files, ask, path }) => {
      for (let index = 0; index < HAND_OVERS; index++) {
        await putFile(files, path(`over-${index}`), contentOf(index));
        const { text } = await ask({ verb: 'read', path: path(`over-${index}`) });
        if (text !== contentOf(index)) {
          return fails(
            `file ${index + 1} of ${HAND_OVERS}: the other process ${text === undefined ? 'found no file' : 'read something else'}`,
          );
        }
      }
      return holds(`${HAND_OVERS} files of 64 KB, each read whole by the other process`);
    },
  },
  {
    promise: 'another process lists at once what was made and removed',
    meaning:
      'A file can be sent twice, or be missed: give directories no cache (NFS: `lookupcache=none` or `actimeo=0`).',
    run: async ({ files, ask, path }) => {
      for (let index = 0; index < HAND_OVERS; index++) {
        const name = `listed-${index}`;
        await putFile(files, path(name), '');
        const there = (await ask({ verb: 'list', path: path('.') })).names?.includes(name);
        await unlinkIfThere(files, path(name));
        const gone = !(await ask({ verb: 'list', path: path('.') })).names?.includes(name);
        if (there !== true || !gone) {
          return fails(
            `file ${index + 1} of ${HAND_OVERS} was ${there === true ? 'still listed after it was removed' : 'not listed after it was made'}`,
          );
        }
      }
      return holds(`${HAND_OVERS} files, each listed while it was there`);
    },
  },
  {
    promise: 'a file keeps its number (inode), for both processes and over a rename',
    meaning: 'A file that was delivered cannot be told from another of its name: after a crash it may be taken back.',
    run: async ({ files, ask, path }) => {
      const made = await putFile(files, path('numbered'), 'x');
      await files.rename(path('numbered'), path('renamed'));
      const renamed = await files.lstat(path('renamed'));
      const other = (await ask({ verb: 'read', path: path('renamed') })).facts;
      const numbers = [made, renamed, other].map((facts) => facts?.inode);
      return new Set(numbers).size === 1
        ? holds(`number ${String(made.inode)} throughout`)
        : fails(`numbers ${numbers.map(String).join(', ')} (made, renamed, as the other process sees it)`);
    },
  },
  {
    promise: 'every change shows in the time of the file',
    meaning: 'A source that is changed while it is sent, and keeps its size, may not be noticed.',
    run: async ({ files, ask, now, path }) => {
      const first = await putFile(files, path('timed'), 'x');
      const began = now();
      for (let index = 0; ; index++) {
        const again = await putFile(files, path(`timed-${index}`), 'y');
        const took = now() - began;
        if (again.mtimeNs !== first.mtimeNs) {
          const { facts } = await ask({ verb: 'read', path: path(`timed-${index}`) });
          if (facts?.mtimeNs !== again.mtimeNs) return fails('the other process sees another time of the same file');
          const seen = `a new time after ${took.toFixed(1)} ms, the same for both processes`;
          return took > COARSE_MS ? weaker(seen) : holds(seen);
        }
        await unlinkIfThere(files, path(`timed-${index}`));
        if (took > 5000) return fails('files that were written 5 s apart have the same time');
      }
    },
  },
  {
    promise: 'the clock of the file system is that of this machine',
    meaning: 'Staged leftovers are removed too early or too late: set the clocks by NTP.',
    run: async ({ files, path }) => {
      const before = Date.now();
      const { mtimeNs } = await putFile(files, path('clock'), 'x');
      const after = Date.now();
      const time = Number(mtimeNs / 1_000_000n);
      const skew = Math.round(time < before ? time - before : Math.max(0, time - after));
      return Math.abs(skew) > MOST_SKEW_MS
        ? weaker(`${skew} ms apart`)
        : holds(`less than ${MOST_SKEW_MS / 1000} s apart`);
    },
  },
  {
    promise: 'names that differ in case are two names',
    meaning: 'Two files of partners can meet in one name; they are then refused as existing.',
    run: async ({ files, path }) => {
      await putFile(files, path('case'), '');
      return (await isMaker(putFile(files, path('CASE'), '')))
        ? holds('case and CASE are two files')
        : weaker('case is CASE');
    },
  },
];

/** Tries each promise, whatever became of those before it. @returns what was found, in the order of the list */
export const checkStorage = async (options: StorageCheckOptions): Promise<readonly StorageFinding[]> => {
  const { directory, ask, files = nodeFiles, now = () => performance.now() } = options;
  const ground: Ground = { files, ask, now, path: (name) => join(directory, name) };
  const findings: StorageFinding[] = [];
  for (const { promise, meaning, run } of CHECKS) {
    const verdict = await run(ground).catch((error: unknown) =>
      fails(error instanceof Error ? error.message : String(error)),
    );
    const finding = { promise, meaning, ...verdict };
    findings.push(finding);
    options.onFinding?.(finding);
  }
  return findings;
};
