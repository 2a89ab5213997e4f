import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  StagedFile,
  claimStaged,
  finishTakingBack,
  formatOf,
  listLeftovers,
  nodeFiles,
  removeLeftover,
} from '../src/index.js';
import type { FileOperations } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { ModelDisk, chances, driven, oneHappens } from './support/model-disk.js';
import { filesIn, sandbox } from './support/sandbox.js';

const format = formatOf({});
const { boot } = nodeFiles;
const EARLIER = '0123456789ab';

async function delivered(directory: string, overwrite: boolean, files?: FileOperations): Promise<StagedFile> {
  const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format, ...(files && { files }) });
  staged.write(batchOf('one'));
  try {
    await staged.deliver({ path: 'out', overwrite, marked: true });
  } catch (error) {
    await staged.release();
    throw error;
  }
  return staged;
}

describe.each([
  ['a new name', false, 'linked'],
  ['a name that may be taken', true, 'moved'],
])('a delivery to %s', (_, overwrite, how) => {
  test('is known although the file was fetched, until it is settled', async () => {
    const directory = sandbox();
    const staged = await delivered(directory, overwrite);
    expect(filesIn(directory)).toEqual([`.pesit/k.${boot}.${how}`, 'out']);
    rmSync(join(directory, 'out'));
    const facts = await StagedFile.peek(directory, 'k');
    expect(facts).toMatchObject({ delivered: true, size: 3, inUse: false });
    expect(readFileSync(facts?.path ?? '', 'utf8')).toBe('one');
    expect(await listLeftovers(directory)).toEqual([expect.objectContaining({ key: 'k', delivered: true })]);
    await staged.recorded();
    await staged.recorded();
    expect(filesIn(directory)).toEqual([]);
    expect(await StagedFile.peek(directory, 'k')).toBeUndefined();
  });

  test('is not made again, and what is left of it can be removed', async () => {
    const directory = sandbox();
    await delivered(directory, overwrite);
    await expect(StagedFile.resume({ receiveDirectory: directory, key: 'k', format })).rejects.toMatchObject({
      diagnostic: '2-204',
    });
    expect(await removeLeftover(directory, 'k')).toBe(true);
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('that fails leaves no mark', async () => {
    const directory = sandbox();
    const fail = () => Promise.reject(Object.assign(new Error('broken disk'), { code: 'EIO' }));
    const isFinal = (path: string) => path.endsWith('/out');
    const files: FileOperations = {
      ...nodeFiles,
      link: (from, to) => (isFinal(to) ? fail() : nodeFiles.link(from, to)),
      rename: (from, to) => (isFinal(to) ? fail() : nodeFiles.rename(from, to)),
    };
    await expect(delivered(directory, overwrite, files)).rejects.toMatchObject({ diagnostic: '2-213' });
    expect(filesIn(directory)).toEqual(['.pesit/k.part']);
  });
});

describe('a delivery that is taken back', () => {
  test('says so by its mark before it loses its file, each on stable storage; the mark stays until that is recorded', async () => {
    const directory = sandbox();
    const calls: string[] = [];
    const files: FileOperations = {
      ...nodeFiles,
      unlink: (path) => {
        calls.push(`unlink ${path.slice(directory.length)}`);
        return nodeFiles.unlink(path);
      },
      rename: (from, to) => {
        calls.push(`rename to ${to.slice(directory.length)}`);
        return nodeFiles.rename(from, to);
      },
      open: async (path, flags, mode) => {
        const file = await nodeFiles.open(path, flags, mode);
        const sync = async () => {
          await file.sync();
          calls.push(`flush ${path.slice(directory.length)}`);
        };
        return { ...file, sync };
      },
    };
    const staged = await delivered(directory, false, files);
    calls.length = 0;
    expect(await staged.takeBack()).toBe('taken back');
    const mark = `/.pesit/k.${boot}.withdrawn`;
    expect(calls).toEqual([`rename to ${mark}`, 'flush /.pesit', 'unlink /out', 'flush ']);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ withdrawn: true, delivered: false });
    await staged.recorded();
    expect(filesIn(directory)).toEqual([]);
  });

  test('belongs to a later claim of the transfer, once that has moved the mark: it stays as it is', async () => {
    const directory = sandbox();
    const staged = await delivered(directory, false);
    await claimStaged(directory, 'k', 2);
    expect(await staged.takeBack()).toBe('claimed');
    await staged.recorded();
    expect(filesIn(directory)).toEqual([`.pesit/k~2.${boot}.linked`, 'out']);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ withdrawn: false, delivered: true, fence: 2 });
  });

  test('is no longer for a later claim to keep; what its process did not remove, the claim does', async () => {
    const directory = sandbox();
    const files: FileOperations = {
      ...nodeFiles,
      unlink: (path) => (path.endsWith('/out') ? Promise.reject(new Error('killed')) : nodeFiles.unlink(path)),
    };
    const staged = await delivered(directory, false, files);
    await expect(staged.takeBack()).rejects.toMatchObject({ diagnostic: '2-211' });
    await claimStaged(directory, 'k', 2);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ withdrawn: true, delivered: false });
    const path = join(directory, 'out');
    expect(await finishTakingBack(directory, 'k', path)).toBe(true);
    writeFileSync(path, 'of another');
    expect(await finishTakingBack(directory, 'k', path)).toBe(false);
    expect(filesIn(directory)).toEqual([`.pesit/k.${boot}.withdrawn`, 'out']);
  });

  test('stays where the volume does not say whether it is there: it was delivered', async () => {
    const directory = sandbox();
    let isAway = false;
    const files: FileOperations = {
      ...nodeFiles,
      lstat: (path) => (isAway ? Promise.reject(new Error('stale file handle')) : nodeFiles.lstat(path)),
    };
    const staged = await delivered(directory, false, files);
    isAway = true;
    expect(await staged.takeBack()).toBe('fetched');
    expect(filesIn(directory)).toEqual(['out']);
  });
});

test('a name that cannot be flushed is taken back with its mark', async () => {
  const directory = sandbox();
  const files: FileOperations = {
    ...nodeFiles,
    open: async (path, flags, mode) => {
      const file = await nodeFiles.open(path, flags, mode);
      return path === directory ? { ...file, sync: () => Promise.reject(new Error('broken disk')) } : file;
    },
  };
  await expect(delivered(directory, false, files)).rejects.toMatchObject({ diagnostic: '2-211' });
  expect(filesIn(directory)).toEqual(['.pesit/k.part']);
});

describe('what is found after the end of a process', () => {
  test.each<[names: readonly string[], isDelivered: boolean, why: string]>([
    [['part'], false, 'it was never delivered'],
    [['part', '../out'], true, 'it has its final name'],
    [['part', '../elsewhere'], true, 'the final name was moved'],
    [['part', `${boot}.linked`], true, 'it had its final name, which is gone'],
    [['part', `${EARLIER}.linked`], false, 'a power cut may have taken the final name back'],
    [['part', `${EARLIER}.linked`, '../out'], true, 'it has its final name'],
    [[`${boot}.linked`], true, 'the final name is on stable storage, or was'],
    [[`${EARLIER}.linked`], true, 'the final name is on stable storage, or was'],
    [['part', `${boot}.moved`], false, 'it was about to be moved'],
    [[`${boot}.moved`], true, 'it was moved'],
    [[`${EARLIER}.moved`], false, 'a power cut may have lost it on the way'],
  ])('%j: delivered %s, %s', async (names, isDelivered) => {
    const directory = sandbox();
    mkdirSync(join(directory, '.pesit'), { mode: 0o700 });
    const at = (name: string) => join(directory, '.pesit', name.startsWith('../') ? name : `k.${name}`);
    const [first = '', ...others] = names;
    writeFileSync(at(first), 'one');
    for (const name of others) linkSync(at(first), at(name));
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ key: 'k', delivered: isDelivered, size: 3 });
    const resumed = StagedFile.resume({ receiveDirectory: directory, key: 'k', format });
    if (isDelivered) {
      await expect(resumed).rejects.toMatchObject({ diagnostic: '2-204' });
    } else {
      const { file } = await resumed;
      await file.release();
      expect(filesIn(directory)).toEqual(['.pesit/k.part']);
    }
    await removeLeftover(directory, 'k');
    expect(filesIn(directory).filter((name) => name.startsWith('.pesit'))).toEqual([]);
  });

  test('names that only look like marks belong to nobody', async () => {
    const directory = sandbox();
    mkdirSync(join(directory, '.pesit'), { mode: 0o700 });
    for (const name of ['k.linked', 'k.0123.linked', 'k.0123456789ab.copied']) {
      writeFileSync(join(directory, '.pesit', name), '');
    }
    expect(await listLeftovers(directory)).toEqual([]);
  });

  test('without hard links there is no mark, and the delivery goes as before', async () => {
    const directory = sandbox();
    const link = () => Promise.reject(Object.assign(new Error('no links here'), { code: 'EPERM' }));
    for (const overwrite of [false, true]) {
      await (await delivered(directory, overwrite, { ...nodeFiles, link })).recorded();
      expect(filesIn(directory)).toEqual(['out']);
      renameSync(join(directory, 'out'), join(directory, '..', `${Date.now()}-fetched`));
    }
  });
});

describe('ended at any step', () => {
  const FINAL = '/d/out';

  const endedAt = async (seed: number, steps: number, overwrite: boolean, fetches: boolean) => {
    const chance = chances(seed);
    const disk = new ModelDisk(chance);
    const files = disk.mountedAt('/d');
    const content = Buffer.alloc(700, 'x');
    let appeared = false;
    const step = async (): Promise<boolean> => {
      const happened = await oneHappens(disk, chance);
      if (disk.content(FINAL) === undefined) return happened;
      appeared = true;
      if (fetches) {
        void files.unlink(FINAL);
        disk.inFlight.pop()?.answer();
      }
      return happened;
    };
    // Locks that a process holds go by paths, and the next life is another process.
    const life = async (): Promise<void> => {
      const root = `/seed-${seed}-${steps}`;
      const options = { receiveDirectory: root, key: 'k', format: formatOf({ recordLength: 1000 }) };
      const staged = await StagedFile.create({ ...options, files: disk.mountedAt(root) });
      staged.write(batchOf(content));
      await staged.deliver({ path: 'out', overwrite, marked: true });
    };
    const end = { reached: false };
    const reach = () => (end.reached = true);
    life().then(reach, reach);
    for (let taken = 0; taken < steps && !end.reached; taken++) await step();
    return { disk, content, appeared };
  };

  const found = async (disk: ModelDisk): Promise<boolean> => {
    const files = disk.mountedAt('/d');
    return (await driven(disk, () => 0, StagedFile.peek('/d', 'k', files)))?.delivered ?? false;
  };

  test.each([true, false])(
    'and fetched at once, overwrite %s: the delivery is known, and no other',
    async (overwrite) => {
      let known = 0;
      await fc.assert(
        fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 40 }), async (seed, steps) => {
          const { disk, appeared } = await endedAt(seed, steps, overwrite, true);
          disk.kill();
          const isDelivered = await found(disk);
          const isThere = disk.content(FINAL) !== undefined;
          const marked = disk.content('/d/.pesit/k.000000000001.linked') !== undefined;
          // Between two calls of the operating system lies what cannot be known: the final name is there, the mark is not yet.
          if (isThere || (appeared && (overwrite || marked))) expect(isDelivered).toBe(true);
          if (!isThere && !appeared) expect(isDelivered).toBe(false);
          if (isDelivered) known += 1;
        }),
        { numRuns: 300 },
      );
      expect(known).toBeGreaterThan(20);
    },
  );

  test.each([true, false])('by a power cut, overwrite %s: what counts as delivered is there', async (overwrite) => {
    let known = 0;
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.integer({ min: 0, max: 40 }), async (seed, steps) => {
        const { disk, content } = await endedAt(seed, steps, overwrite, false);
        disk.cutPower();
        if (disk.content('/d/.pesit') === undefined || !(await found(disk))) return;
        expect(disk.content(FINAL)?.equals(content)).toBe(true);
        known += 1;
      }),
      { numRuns: 300 },
    );
    expect(known).toBeGreaterThan(5);
  });
});
