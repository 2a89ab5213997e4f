import { mkdirSync, renameSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { DirectoryIndex } from '../src/directory-index.js';
import type { DirectoryIndexOptions } from '../src/directory-index.js';
import { findFileToSend } from '../src/file-selection.js';
import { nodeFiles } from '../src/index.js';
import type { SendableFile } from '../src/index.js';
import type { LookFiles } from '../src/sendable-file.js';
import { sandbox } from './support/sandbox.js';

/** The real file system, with a count of what was asked of it. */
class CountedFiles implements LookFiles {
  looks = 0;
  readings = 0;
  /** Looks that run beside each other. */
  most = 0;
  /** Waited for before names are read. */
  gate: Promise<void> | undefined;
  /** Waited for before a name is looked at. */
  lookGate: Promise<void> | undefined;
  #running = 0;

  async lstat(path: string) {
    this.looks += 1;
    this.#running += 1;
    this.most = Math.max(this.most, this.#running);
    await this.lookGate;
    return nodeFiles.lstat(path).finally(() => (this.#running -= 1));
  }

  realpath(path: string) {
    return nodeFiles.realpath(path);
  }

  async readdir(path: string) {
    this.readings += 1;
    await this.gate;
    return nodeFiles.readdir(path);
  }

  /** What `work` asked for. */
  async during(work: () => Promise<unknown>) {
    const { looks, readings } = this;
    await work();
    return { looks: this.looks - looks, readings: this.readings - readings };
  }
}

const nameOf = (i: number): string => `file-${String(i).padStart(5, '0')}`;

/** Puts a file there, of an age in seconds since the epoch. */
function put(directory: string, name: string, modified: number, content = name): void {
  writeFileSync(join(directory, name), content);
  utimesSync(join(directory, name), modified, modified);
}

/** A directory that did not change lately. */
function settled(directory: string, modified = 1000): string {
  utimesSync(directory, modified, modified);
  return directory;
}

/** `count` files, the oldest with the last name. */
function directoryOf(count: number): string {
  const directory = sandbox();
  for (let i = 0; i < count; i++) put(directory, nameOf(i), 1_000_000 - i);
  return settled(directory);
}

function indexed(options: DirectoryIndexOptions = {}) {
  const files = new CountedFiles();
  const clock = { now: Date.now() };
  return { files, clock, index: new DirectoryIndex({ files, now: () => clock.now, ...options }) };
}

describe('5,000 files to choose from', () => {
  test('the oldest that was not sent each time; only the first time all of them are looked at', async () => {
    const directory = directoryOf(5000);
    const { files, index } = indexed();
    const sent = new Set<string>();
    let batches = 0;
    const wanted = (batch: readonly SendableFile[]) => {
      batches += 1;
      return Promise.resolve(new Set(batch.filter(({ name }) => !sent.has(name))));
    };
    const select = async () => {
      const file = await findFileToSend(directory, { exactName: 'OUT', wanted }, index);
      sent.add(file?.name ?? '');
      return file?.name;
    };
    expect(await files.during(select)).toEqual({ looks: 5000 + 4, readings: 1 });
    expect([...sent]).toEqual([nameOf(4999)]);
    expect(files.most).toBeLessThanOrEqual(8);
    for (let i = 1; i < 200; i++) {
      // The directory, twice; PI 12; the file that is chosen.
      expect(await files.during(select)).toEqual({ looks: 4, readings: 0 });
      expect([...sent].at(-1)).toBe(nameOf(4999 - i));
    }
    for (let i = 1; i < 5000; i++) sent.add(nameOf(i));
    batches = 0;
    expect(await select()).toBe(nameOf(0));
    expect(batches).toBeLessThanOrEqual(8);
  });

  test('none is wanted: all are looked at again before that is said, and once when that was just done', async () => {
    const directory = directoryOf(100);
    const { files, index } = indexed();
    const none = () => findFileToSend(directory, { wanted: () => Promise.resolve(new Set()) }, index);
    expect(await files.during(none)).toEqual({ looks: 102, readings: 1 });
    expect(await files.during(none)).toEqual({ looks: 103, readings: 1 });
  });
});

describe('what is kept of a directory', () => {
  const select = async (index: DirectoryIndex, directory: string) => (await findFileToSend(directory, {}, index))?.name;

  test('a file that came, or was put in the place of another, is found; only new names are looked at', async () => {
    const directory = directoryOf(100);
    const { files, index } = indexed();
    await select(index, directory);
    put(directory, 'new', 1);
    settled(directory, 2000);
    expect(await files.during(() => select(index, directory))).toEqual({ looks: 5, readings: 1 });
    expect(await select(index, directory)).toBe('new');
    unlinkSync(join(directory, 'new'));
    settled(directory, 3000);
    expect(await select(index, directory)).toBe(nameOf(99));
    put(directory, '.hidden', 999_999_999);
    renameSync(join(directory, '.hidden'), join(directory, nameOf(99)));
    settled(directory, 4000);
    expect(await select(index, directory)).toBe(nameOf(98));
  });

  test('a directory that changed just before it was read is read again: a later change may have the same time', async () => {
    const directory = directoryOf(10);
    const { files, clock, index } = indexed();
    const changed = clock.now / 1000 - 1;
    settled(directory, changed);
    await select(index, directory);
    put(directory, 'new', 1);
    settled(directory, changed);
    expect(await select(index, directory)).toBe('new');
    clock.now += 5000;
    await select(index, directory);
    expect(await files.during(() => select(index, directory))).toEqual({ looks: 3, readings: 0 });
  });

  test('a file that was written anew in its place is not sent as it was', async () => {
    const directory = directoryOf(3);
    const { index } = indexed();
    await select(index, directory);
    put(directory, nameOf(2), 5_000_000, 'written anew');
    expect(await select(index, directory)).toBe(nameOf(1));
    put(directory, nameOf(0), 6_000_000, 'this too');
    const found = await findFileToSend(
      directory,
      { wanted: (all) => Promise.resolve(new Set(all.filter(({ mtimeNs }) => mtimeNs === 6_000_000_000_000_000n))) },
      index,
    );
    expect(found).toMatchObject({ name: nameOf(0), size: 8 });
  });

  test('one that is younger than it was is found ten seconds later', async () => {
    const directory = directoryOf(3);
    const { clock, index } = indexed();
    await select(index, directory);
    put(directory, nameOf(0), 5);
    clock.now += 10_001;
    expect(await select(index, directory)).toBe(nameOf(0));
  });

  test('one that is gone is passed over', async () => {
    const directory = directoryOf(3);
    const { index } = indexed();
    await select(index, directory);
    unlinkSync(join(directory, nameOf(2)));
    settled(directory);
    expect(await select(index, directory)).toBe(nameOf(1));
  });

  test('another directory of that name', async () => {
    const parent = sandbox();
    const [directory, other] = [join(parent, 'out'), join(parent, 'other')];
    for (const path of [directory, other]) mkdirSync(path);
    put(directory, 'a', 1);
    put(other, 'b', 1);
    settled(directory);
    settled(other);
    const { index } = indexed();
    expect(await select(index, directory)).toBe('a');
    renameSync(directory, join(parent, 'old'));
    renameSync(other, directory);
    expect(await select(index, directory)).toBe('b');
  });

  test('no more names than allowed, nor directories: the one that was used last stays', async () => {
    const [a, b, c] = [directoryOf(40), directoryOf(40), directoryOf(40)];
    const { files, index } = indexed({ maxNames: 80 });
    for (const directory of [a, b, a, c]) await select(index, directory);
    expect(await files.during(() => select(index, a))).toMatchObject({ readings: 0 });
    expect(await files.during(() => select(index, b))).toMatchObject({ readings: 1 });
    const few = indexed({ maxDirectories: 1, maxNames: 30 });
    for (const directory of [a, a]) await select(few.index, directory);
    expect(few.files.readings).toBe(2);
    const one = indexed({ maxDirectories: 1 });
    for (const directory of [a, b, a]) await select(one.index, directory);
    expect(one.files.readings).toBe(3);
  });

  test('a look that was slow does not bring back what another has found to be old', async () => {
    const directory = directoryOf(3);
    const { files, index } = indexed();
    await index.look(directory);
    let open = (): void => undefined;
    files.lookGate = new Promise((resolve) => (open = resolve));
    const slow = index.look(directory);
    files.lookGate = undefined;
    put(directory, nameOf(2), 5_000_000);
    await index.look(directory, true);
    open();
    await slow;
    expect((await index.look(directory)).files.map(({ name }) => name)).toEqual([nameOf(1), nameOf(0), nameOf(2)]);
  });

  test('those who ask while it is read share the next reading', async () => {
    const directory = directoryOf(10);
    const { files, index } = indexed();
    let open = (): void => undefined;
    files.gate = new Promise((resolve) => (open = resolve));
    const first = index.look(directory, true);
    while (files.readings === 0) await new Promise(setImmediate);
    const others = [index.look(directory, true), index.look(directory), index.look(directory, true)];
    const elsewhere = directoryOf(2);
    files.gate = undefined;
    expect((await index.look(elsewhere)).files).toHaveLength(2);
    open();
    expect((await first).isFresh).toBe(true);
    for (const other of others) expect(await other).toMatchObject({ isFresh: true });
    expect(files.readings).toBe(3);
  });
});
