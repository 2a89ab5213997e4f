/** Staged files are taken from an attempt that stood still, at any step, and continues when it has lost them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, claimStaged, listLeftovers, nodeFiles, removeLeftover } from '../src/index.js';
import type { FileOperations, OpenFile } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { filesIn, rejection, sandbox } from './support/sandbox.js';
import { optionsIn } from './support/staged.js';

/** The real file system for a process that stands still before its call number `still`, until `goOn`. */
class StandingFiles {
  readonly files: FileOperations;
  readonly stands: Promise<void>;
  calls = 0;
  #standing!: () => void;
  #goOn!: () => void;

  constructor(still: number) {
    this.stands = new Promise((resolve) => (this.#standing = resolve));
    const continued = new Promise<void>((resolve) => (this.#goOn = resolve));
    const step = async <T>(work: () => Promise<T>): Promise<T> => {
      this.calls += 1;
      if (this.calls >= still) {
        this.#standing();
        await continued;
      }
      return work();
    };
    const opened = (file: OpenFile): OpenFile => ({
      writev: (buffers, position) => step(() => file.writev(buffers, position)),
      readv: (buffers, position) => step(() => file.readv(buffers, position)),
      datasync: () => step(() => file.datasync()),
      sync: () => step(() => file.sync()),
      truncate: (size) => step(() => file.truncate(size)),
      stat: () => step(() => file.stat()),
      close: () => step(() => file.close()),
    });
    this.files = {
      open: (path, flags, mode) => step(async () => opened(await nodeFiles.open(path, flags, mode))),
      mkdir: (path, mode) => step(() => nodeFiles.mkdir(path, mode)),
      link: (existing, name) => step(() => nodeFiles.link(existing, name)),
      unlink: (path) => step(() => nodeFiles.unlink(path)),
      rename: (from, to) => step(() => nodeFiles.rename(from, to)),
      lstat: (path) => step(() => nodeFiles.lstat(path)),
      realpath: (path) => step(() => nodeFiles.realpath(path)),
      readdir: (path) => step(() => nodeFiles.readdir(path)),
      boot: nodeFiles.boot,
    };
  }

  goOn(): void {
    this.#goOn();
  }
}

const point = (number: number, dataBytes: number) => ({ number, dataBytes, articles: number });
const LATE = 'LATE LATE LATE LATE LATE';

interface Case {
  readonly overwrite: boolean;
  readonly links: boolean;
}

/**
 * The late attempt receives something else after its second point, so that each byte of it shows. As every attempt it asks the
 * record before it delivers; it may stand still after that, too.
 * @param isOwned false when the record has another fence
 */
const lateAttempt = async (
  directory: string,
  files: FileOperations,
  overwrite: boolean,
  isOwned: () => boolean,
): Promise<string> => {
  const staged = await StagedFile.create(optionsIn(directory, { files }));
  try {
    staged.write(batchOf('one'));
    await staged.checkpoint(point(1, 3));
    staged.write(batchOf('two'));
    await staged.checkpoint(point(2, 6));
    staged.write(batchOf(LATE));
    await staged.checkpoint(point(3, 30));
    await staged.prepareDelivery();
    if (!isOwned()) throw new Error('another has it');
    const { path } = await staged.deliver({ path: 'out', overwrite, marked: true });
    return path;
  } catch (error) {
    await staged.release();
    throw error;
  }
};

const noLinks = (files: FileOperations): FileOperations => ({
  ...files,
  link: () => Promise.reject(Object.assign(new Error('no links here'), { code: 'EPERM' })),
});

/** @returns whether the late attempt had delivered when its file was claimed */
const takenAt = async (still: number, { overwrite, links }: Case): Promise<'delivered' | 'taken' | 'not reached'> => {
  const directory = sandbox();
  const standing = new StandingFiles(still);
  const wrap = (files: FileOperations): FileOperations => (links ? files : noLinks(files));
  const files = wrap(nodeFiles);
  let isOwned = true;
  const late = lateAttempt(directory, wrap(standing.files), overwrite, () => isOwned);
  const outcome = late.then(
    () => 'ended' as const,
    () => 'failed' as const,
  );
  const first = await Promise.race([standing.stands.then(() => 'stands' as const), outcome]);
  if (first !== 'stands') return 'not reached';

  // Who finds the transfer without its process claims the record, then the files, looks then, and decides.
  isOwned = false;
  await claimStaged(directory, 'k', 2, files);
  const found = await StagedFile.peek(directory, 'k', files);
  const isDelivered = found?.delivered === true || (found?.path === undefined && filesIn(directory).includes('out'));
  if (isDelivered) {
    standing.goOn();
    await outcome;
    expect(readFileSync(join(directory, 'out'), 'utf8')).toBe(`one\ntwo\n${LATE}\n`);
    return 'delivered';
  }
  // The partner restarts: an attempt gets as far as another point; the late one continues meanwhile; another one ends.
  const second = await StagedFile.resume(optionsIn(directory, { fence: 3, files }));
  const begun = second.point.number;
  // Its third point is as good as any: the partner had the acknowledgement.
  const words = ['one', 'two', begun === 3 ? LATE : 'three', 'four'];
  if (begun < 3) {
    second.file.write(batchOf(...words.slice(begun, 3)));
    await second.file.checkpoint(point(3, 11));
  }
  standing.goOn();
  expect(await outcome).toBe('failed');
  await second.file.release();
  const { file, point: from, reason } = await StagedFile.resume(optionsIn(directory, { fence: 5, files }));
  expect([from.number, reason]).toEqual([3, undefined]);
  file.write(batchOf('four'));
  await file.deliver({ path: 'out', overwrite, marked: true });
  await file.recorded();
  expect(readFileSync(join(directory, 'out'), 'utf8')).toBe(`${words.join('\n')}\n`);
  // What the late one made by name alone is a leftover; nothing else is there.
  expect(await removeLeftover(directory, 'k')).toBe(true);
  expect(filesIn(directory)).toEqual(['out']);
  return 'taken';
};

describe('at whatever call the process of an attempt stands still', () => {
  test.each([
    ['a new name', { overwrite: false, links: true }],
    ['over another file', { overwrite: true, links: true }],
    ['a new name, without hard links', { overwrite: false, links: false }],
  ])('it harms nothing of who has claimed its file: %s', async (_, how) => {
    const outcomes: string[] = [];
    for (let still = 1; outcomes.at(-1) !== 'not reached'; still += 1) outcomes.push(await takenAt(still, how));
    // Taken until it had its name, delivered from then on.
    const begins = outcomes.indexOf('delivered');
    expect(begins).toBeGreaterThan(10);
    expect(new Set(outcomes.slice(0, begins))).toEqual(new Set(['taken']));
    expect(new Set(outcomes.slice(begins, -1))).toEqual(new Set(['delivered']));
  });
});

describe('claims of a staged file', () => {
  const staged = async (directory: string, fence?: number): Promise<StagedFile> => {
    const file = await StagedFile.create(optionsIn(directory, fence === undefined ? {} : { fence }));
    file.write(batchOf('one'));
    await file.checkpoint(point(1, 3));
    return file;
  };

  test('a file that nobody can have open is continued as it is, under the names of the claim', async () => {
    const directory = sandbox();
    await (await staged(directory)).release();
    const before = filesIn(directory);
    expect(before).toEqual(['.pesit/k.part', '.pesit/k.points']);
    const { file, point: from } = await StagedFile.resume(optionsIn(directory, { fence: 2 }));
    expect(from.number).toBe(1);
    expect(filesIn(directory).filter((name) => !name.endsWith('.lock'))).toEqual([
      '.pesit/k~2.part',
      '.pesit/k~2.points',
    ]);
    expect(filesIn(directory)).toContainEqual(expect.stringMatching(/^\.pesit\/k~2\.\d+-\d+-[0-9a-f]{12}\.lock$/));
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({
      fence: 2,
      size: 4,
      inUse: true,
      point: { number: 1 },
    });
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('an attempt that is late gets nothing: 2-207', async () => {
    const directory = sandbox();
    const late = await staged(directory);
    const { file } = await StagedFile.resume(optionsIn(directory, { fence: 3 }));
    await late.release();
    for (const attempt of [
      () => StagedFile.resume(optionsIn(directory, { fence: 2 })),
      () => claimStaged(directory, 'k', 2),
    ]) {
      expect(await rejection(attempt())).toMatchObject({ diagnostic: '2-207', condition: 'staged file in use' });
    }
    expect(await removeLeftover(directory, 'k', { claim: 2 })).toBe(false);
    await file.release();
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ fence: 3, point: { number: 1 } });
  });

  test('no room for a copy: from the start, and the space of what was there is free', async () => {
    const directory = sandbox();
    const late = await staged(directory);
    const full: FileOperations = {
      ...nodeFiles,
      open: (path, flags, mode) =>
        path.endsWith('.copy')
          ? Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' }))
          : nodeFiles.open(path, flags, mode),
    };
    const { file, point: from, reason } = await StagedFile.resume(optionsIn(directory, { fence: 2, files: full }));
    expect([from.number, file.size]).toEqual([0, 0]);
    expect(reason).toMatch(/no room for a copy/);
    late.write(batchOf('late'));
    await late.release();
    file.write(batchOf('three'));
    await file.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(join(directory, 'out'), 'utf8')).toBe('three\n');
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('any other failure of the copy leaves what is there for the next attempt', async () => {
    const directory = sandbox();
    const late = await staged(directory);
    const failing: FileOperations = {
      ...nodeFiles,
      rename: (from, to) =>
        from.endsWith('.copy')
          ? Promise.reject(Object.assign(new Error('broken'), { code: 'EIO' }))
          : nodeFiles.rename(from, to),
    };
    const failed = StagedFile.resume(optionsIn(directory, { fence: 2, files: failing }));
    expect(await rejection(failed)).toMatchObject({ diagnostic: '2-213' });
    const { file, point: from } = await StagedFile.resume(optionsIn(directory, { fence: 3 }));
    expect(from.number).toBe(1);
    await late.release();
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('a claim removes what is there under earlier ones, whoever works with it; a sweep does not, nor what came later', async () => {
    const directory = sandbox();
    const late = await staged(directory);
    expect(await removeLeftover(directory, 'k')).toBe(false);
    expect(await removeLeftover(directory, 'k', { claim: 2 })).toBe(true);
    expect(filesIn(directory).filter((name) => !name.endsWith('.lock'))).toEqual([]);
    await late.release();
    const second = await staged(directory, 2);
    await second.release();
    const [judged] = await listLeftovers(directory);
    const { file } = await StagedFile.resume(optionsIn(directory, { fence: 3 }));
    await file.release();
    expect(await removeLeftover(directory, 'k', { upTo: judged!.fence })).toBe(false);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ fence: 3, point: { number: 1 } });
    expect(await removeLeftover(directory, 'k', { upTo: 3 })).toBe(true);
    expect(filesIn(directory)).toEqual([]);
  });

  test('a journal of an earlier claim says nothing of the file of a later one', async () => {
    const directory = sandbox();
    const late = await staged(directory, 2);
    await late.release();
    writeFileSync(join(directory, '.pesit/k.points'), readFileSync(join(directory, '.pesit/k~2.points')));
    writeFileSync(join(directory, '.pesit/k~4.part'), 'another\n');
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ fence: 4, size: 8, point: { number: 0 } });
    const { file, point: from } = await StagedFile.resume(optionsIn(directory, { fence: 5 }));
    expect(from.number).toBe(0);
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });
});
