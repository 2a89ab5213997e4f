/** `checkStorage`, on a file system that keeps every promise and on some that break one each. */
import { constants } from 'node:fs';
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { answerQuestion, checkStorage, nodeFiles } from '../src/index.js';
import type {
  FileFacts,
  FileOperations,
  OpenFile,
  StorageAnswer,
  StorageFinding,
  StorageQuestion,
} from '../src/index.js';

let directory: string;
beforeEach(async () => void (directory = await mkdtemp(join(tmpdir(), 'pesit-storage-check-'))));
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A check makes and flushes some hundred files. */
const WITHIN_MS = 240_000;

/** Milliseconds that stand still: how fast this machine flushes is not what is tested. */
const NO_TIME = (): number => 0;

interface Fault {
  /** The file system as one process sees it. */
  readonly files?: Partial<FileOperations>;
  /** What the other process answers, where it is not the truth. */
  readonly answer?: (question: StorageQuestion, truth: StorageAnswer) => StorageAnswer;
  readonly now?: () => number;
}

const check = ({
  files,
  answer = (_question, truth) => truth,
  now = NO_TIME,
}: Fault): Promise<readonly StorageFinding[]> => {
  const broken = { ...nodeFiles, ...files };
  return checkStorage({
    directory,
    now,
    files: broken,
    ask: async (question) => answer(question, await answerQuestion(broken, question)),
  });
};
const failure = (code: string): Error => Object.assign(new Error(`${code}: simulated`), { code });

/** An open file that tells other facts. */
const telling = (file: OpenFile, change: (facts: FileFacts) => FileFacts): OpenFile => ({
  ...file,
  stat: async () => change(await file.stat()),
});
let counted = 0n;

const FAULTS: readonly (readonly [string, string, 'weaker' | 'fails', RegExp, Fault])[] = [
  [
    'O_EXCL that is ignored',
    'a new name is made by one process alone',
    'fails',
    /both were told/,
    { files: { open: (path, flags, mode) => nodeFiles.open(path, flags & ~constants.O_EXCL, mode) } },
  ],
  [
    'no hard links',
    'a link never replaces',
    'weaker',
    /no hard links \(EPERM\)/,
    { files: { link: () => Promise.reject(failure('EPERM')) } },
  ],
  [
    'a link that replaces',
    'a link never replaces',
    'fails',
    /over a name that exists/,
    {
      files: {
        link: async (existing, name) => {
          await nodeFiles.unlink(name).catch(() => undefined);
          await nodeFiles.link(existing, name);
        },
      },
    },
  ],
  [
    'a rename that copies',
    'a rename replaces',
    'fails',
    /times no file/,
    {
      files: {
        rename: async (from, to) => {
          await nodeFiles.unlink(to).catch(() => undefined);
          for (let turn = 0; turn < 10; turn++) await nodeFiles.readdir(directory);
          await copyFile(from, to);
          await nodeFiles.unlink(from);
        },
      },
    },
  ],
  [
    'a directory that cannot be flushed',
    'a directory can be flushed',
    'fails',
    /EINVAL: simulated/,
    {
      files: {
        open: async (path, flags, mode) => {
          const file = await nodeFiles.open(path, flags, mode);
          if ((flags & constants.O_DIRECTORY) === 0) return file;
          return { ...file, sync: () => Promise.reject(failure('EINVAL')) };
        },
      },
    },
  ],
  ['a slow disk', 'a file can be flushed', 'weaker', /flushed in 50\.0 ms/, { now: () => Number((counted += 50n)) }],
  [
    'another process that reads what was',
    'another process reads at once',
    'fails',
    /found no file/,
    { answer: ({ verb, path }, truth) => (verb === 'read' && path.includes('over-') ? { done: false } : truth) },
  ],
  [
    'a directory that is kept in a cache',
    'another process lists at once',
    'fails',
    /not listed after it was made/,
    { answer: ({ verb }, truth) => (verb === 'list' ? { ...truth, names: [] } : truth) },
  ],
  [
    'numbers that change',
    'a file keeps its number',
    'fails',
    /numbers \d+, \d+/,
    {
      files: { lstat: async (path) => ({ ...(await nodeFiles.lstat(path)), inode: (counted += 1n) }) },
    },
  ],
  [
    'times without fractions',
    'every change shows in the time',
    'fails',
    /5 s apart have the same time/,
    {
      files: {
        open: async (path, flags, mode) =>
          telling(await nodeFiles.open(path, flags, mode), (facts) => ({ ...facts, mtimeNs: 0n })),
      },
      now: () => Number((counted += 1000n)),
    },
  ],
  [
    'a clock of its own',
    'the clock of the file system',
    'weaker',
    /-?\d{4,} ms apart/,
    {
      files: {
        open: async (path, flags, mode) =>
          telling(await nodeFiles.open(path, flags, mode), (facts) => ({
            ...facts,
            mtimeNs: facts.mtimeNs - 60_000_000_000n,
          })),
      },
    },
  ],
];

describe('checkStorage', () => {
  test(
    'a local file system keeps every promise',
    async () => {
      const findings = await check({});
      const broken = findings.filter(({ state }) => state !== 'holds');
      expect(broken).toEqual([]);
      expect(findings).toHaveLength(11);
    },
    WITHIN_MS,
  );

  test.each(FAULTS)(
    '%s is found',
    async (_name, promise, state, seen, fault) => {
      const findings = await check(fault);
      expect(findings).toHaveLength(11);
      expect(findings.find((finding) => finding.promise.startsWith(promise))).toMatchObject({
        state,
        seen: expect.stringMatching(seen),
        meaning: expect.stringMatching(/\.$/),
      });
    },
    WITHIN_MS,
  );

  test(
    'what cannot be done at all is a finding of its own, and the others are tried',
    async () => {
      const findings = await check({ files: { rename: () => Promise.reject(failure('EIO')) } });
      const broken = findings.filter(({ state }) => state === 'fails');
      expect(broken.map(({ seen }) => seen)).toEqual(['EIO: simulated', 'EIO: simulated']);
    },
    WITHIN_MS,
  );
});

test(
  'the program tries a directory with two processes, and leaves nothing in it',
  async () => {
    const program = fileURLToPath(new URL('../dist/check-program.js', import.meta.url));
    const run = (...args: readonly string[]) => spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
    const { status, stdout } = run(directory);
    expect(stdout).toMatch(/: (?:11 hold, 0 weaker|10 hold, 1 weaker|9 hold, 2 weaker), 0 fail\n$/);
    expect([status, await readdir(directory)]).toEqual([0, []]);

    expect(run(join(directory, 'nowhere'))).toMatchObject({ status: 1, stdout: expect.stringContaining('ENOENT') });
    expect(run()).toMatchObject({ status: 1, stdout: expect.stringContaining('expected one directory') });
  },
  WITHIN_MS,
);
