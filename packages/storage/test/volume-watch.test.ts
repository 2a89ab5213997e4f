import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { deferred } from '@pesit-node/ground';

import { FileLane, markChecker, nodeFiles, VolumeWatch } from '../src/index.js';
import type { FileOperations, KnownMark, OpenFile, VolumeFault, VolumeMarks } from '../src/index.js';
import { filesIn, mountedSandbox, rejection, sandbox } from './support/sandbox.js';

const LONG = 60_000;

type Call = 'lstat' | 'open' | 'writev' | 'datasync' | 'unlink';

/** The real file system, but for one call that fails, or waits. */
const faulty = (call: Call, meet: () => Promise<void>): FileOperations => {
  const at = (now: Call): Promise<void> => (now === call ? meet() : Promise.resolve());
  const wrapped = (file: OpenFile): OpenFile => ({
    ...file,
    writev: async (buffers, position) => at('writev').then(() => file.writev(buffers, position)),
    datasync: async () => at('datasync').then(() => file.datasync()),
  });
  return {
    ...nodeFiles,
    lstat: async (path) => at('lstat').then(() => nodeFiles.lstat(path)),
    open: async (path, flags, mode) => at('open').then(async () => wrapped(await nodeFiles.open(path, flags, mode))),
    unlink: async (path) => at('unlink').then(() => nodeFiles.unlink(path)),
  };
};

const watchOf = (main: string, options: Partial<ConstructorParameters<typeof VolumeWatch>[0]> = {}) => {
  const watch = new VolumeWatch({
    directories: () => ({ main, others: [] }),
    node: 'pod-1',
    limitMs: () => LONG,
    ...options,
  });
  const changes: (VolumeFault['kind'] | undefined)[] = [];
  watch.on('change', (fault) => changes.push(fault?.kind));
  return { watch, changes };
};

describe('a look', () => {
  test('writes a small file, and leaves nothing', async () => {
    const main = sandbox();
    const { watch, changes } = watchOf(main);
    expect(watch.answerMs).toBeUndefined();
    await watch.look();
    expect([watch.fault, filesIn(main), changes]).toEqual([undefined, [], []]);
    expect(watch.answerMs).toBeGreaterThan(0);
  });

  test.each<[Call, string, RegExp]>([
    ['open', 'EROFS', /the file system is read-only; mount it read-write$/],
    ['open', 'ENOSPC', /the disk is full; free space or enlarge the volume$/],
    ['writev', 'EIO', /input\/output error; check the disk/],
    ['datasync', 'EIO', /input\/output error; check the disk/],
    ['unlink', 'EROFS', /the file system is read-only/],
    ['lstat', 'ESTALE', /the network volume has lost it; mount the volume again$/],
  ])('says that %s meets %s, once, and that it is over', async (call, code, words) => {
    const main = sandbox();
    let isOver = false;
    const files = faulty(call, () =>
      isOver ? Promise.resolve() : Promise.reject(Object.assign(new Error(code), { code })),
    );
    const { watch, changes } = watchOf(main, { files });
    await watch.look();
    await watch.look();
    const { since } = watch.fault!;
    expect(watch.fault).toEqual({ kind: 'failed', directory: main, since, reason: expect.stringMatching(words) });
    isOver = true;
    await watch.look();
    expect([watch.fault, changes]).toEqual([undefined, ['failed', undefined]]);
    expect(filesIn(main)).toEqual([]);
  });

  test('finds out a directory that is not there', async () => {
    const { watch } = watchOf(join(sandbox(), 'missing'));
    await watch.look();
    expect(watch.fault).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/no such file or directory/) });
  });

  test('finds out a real volume that is read-only, or full', async () => {
    const volume = mountedSandbox('size=64k');
    if (volume === undefined) return;
    const { watch } = watchOf(volume.path);
    await watch.look();
    expect(watch.fault).toBeUndefined();
    volume.remount('ro');
    await watch.look();
    expect(watch.fault?.reason).toMatch(/read-only/);
    volume.remount('rw');
    await writeFile(join(volume.path, 'all'), Buffer.alloc(1024 * 1024)).catch(() => undefined);
    await watch.look();
    expect(watch.fault?.reason).toMatch(/the disk is full/);
    await rm(join(volume.path, 'all'));
    await watch.look();
    expect(watch.fault).toBeUndefined();
  });

  test('takes another directory that may not be written to for one to send from, until it was written to', async () => {
    const [main, other] = [sandbox(), sandbox()];
    let code: string | undefined = 'EROFS';
    const files: FileOperations = {
      ...nodeFiles,
      open: (path, flags, mode) =>
        code !== undefined && path.startsWith(other)
          ? Promise.reject(Object.assign(new Error(code), { code }))
          : nodeFiles.open(path, flags, mode),
    };
    const { watch } = watchOf(main, { files, directories: () => ({ main, others: [main, other] }) });
    await watch.look();
    expect(watch.fault).toBeUndefined();
    code = 'EIO';
    await watch.look();
    expect(watch.fault).toMatchObject({ kind: 'failed', directory: other });
    code = undefined;
    await watch.look();
    code = 'EROFS';
    await watch.look();
    expect(watch.fault).toMatchObject({ kind: 'failed', directory: other });
  });
});

describe('a volume that does not answer', () => {
  test('is silent, then slow, and well when a look was in time; there is never more than one look', async () => {
    const main = sandbox();
    let [waits, calls, limitMs] = [deferred<unknown>(), 0, 20];
    const files = faulty('datasync', () => {
      calls += 1;
      return waits.promise.then(() => undefined);
    });
    const { watch, changes } = watchOf(main, { files, limitMs: () => limitMs });
    await watch.look();
    await watch.look();
    expect([watch.fault?.kind, calls]).toEqual(['silent', 1]);
    expect(watch.fault?.reason).toMatch(/^the volume of .* has not answered for \d+\.\d s: check the file server/);
    const { since } = watch.fault!;
    // It answers late, and the next look finds it silent again: it was never well.
    const first = waits;
    waits = deferred<unknown>();
    first.resolve(undefined);
    await watch.look();
    expect([watch.fault?.kind, calls]).toEqual(['silent', 2]);
    expect(watch.fault?.since).toBe(since);
    limitMs = LONG;
    waits.resolve(undefined);
    await watch.look();
    expect([watch.fault, calls]).toEqual([undefined, 3]);
    expect(changes).toEqual(['silent', 'slow', 'silent', 'slow', undefined]);
    expect(filesIn(main)).toEqual([]);
  });

  test('costs one thread: a real call that hangs leaves the others to whoever needs them', async () => {
    const main = sandbox();
    const fifo = join(main, '.pesit-look-pod-1');
    // Opened for writing it waits for a reader.
    execFileSync('mkfifo', [fifo]);
    let limitMs = 50;
    const { watch } = watchOf(main, { limitMs: () => limitMs });
    for (let look = 0; look < 5; look += 1) await watch.look();
    expect(watch.fault?.kind).toBe('silent');
    const file = join(main, 'file');
    await writeFile(file, 'x');
    const reads = await Promise.all(Array.from({ length: 8 }, () => readFile(file, 'utf8')));
    expect(reads.join('')).toBe('xxxxxxxx');
    const reader = await open(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    limitMs = LONG;
    await watch.look();
    // A FIFO cannot be flushed.
    expect(watch.fault?.kind).toBe('failed');
    await reader.close();
    await rm(fifo, { force: true });
    await watch.look();
    expect(watch.fault).toBeUndefined();
  });
});

test('a lane runs so many calls at a time, in turn, and the urgent one next', async () => {
  const lane = new FileLane(2);
  const [calls, begun] = [[0, 1, 2, 3].map(() => deferred<unknown>()), [] as number[]];
  const call = (index: number, urgent = false) =>
    lane.run(() => {
      begun.push(index);
      return calls[index]!.promise;
    }, urgent);
  const all = [call(0), call(1), call(2), call(3, true)];
  expect([begun, lane.load]).toEqual([[0, 1], { running: 2, waiting: 2 }]);
  calls[1]!.reject(new Error('failed'));
  await expect(all[1]).rejects.toThrow('failed');
  await Promise.resolve();
  expect(begun).toEqual([0, 1, 3]);
  for (const { resolve } of calls) resolve(undefined);
  await Promise.allSettled(all);
  expect([begun, lane.load]).toEqual([[0, 1, 3, 2], { running: 0, waiting: 0 }]);
});

describe('the mark of a shared directory', () => {
  /** The database of a cluster. */
  const marksOf = (cluster = 'blue'): VolumeMarks & { known: KnownMark | undefined } => {
    const marks = {
      ...{ cluster, known: undefined as KnownMark | undefined },
      find: () => Promise.resolve(marks.known),
      settle: (_: string, id: string) => Promise.resolve((marks.known ??= { id, node: 'pod-1', at: new Date(0) })),
    };
    return marks;
  };
  const MARK = '.pesit-server-volume';

  test('is placed by the first pod, and found by the others; a directory without it is another one', async () => {
    const [shared, local, marks] = [sandbox(), sandbox(), marksOf()];
    await markChecker(marks, 'server')(shared);
    expect(await readFile(join(shared, MARK), 'utf8')).toBe(`blue\n${marks.known?.id}\n`);
    expect(filesIn(shared)).toEqual([MARK]);
    const check = markChecker(marks, 'server');
    await check(shared);
    const error = await rejection(check(local));
    expect(error).toMatchObject({ condition: 'not shared', diagnostic: '2-201' });
    expect(error.message).toMatch(
      /^\/.*\/\.pesit-server-volume is missing, which pod-1 placed on 1970-01-01T00:00:00\.000Z: the volume that the pods share is not mounted here; if it was replaced on purpose, create that file, empty;/,
    );
    expect(error.peerText).not.toMatch(/\//);
    expect(filesIn(local)).toEqual([]);
    // The watch says so, and looks again.
    const { watch } = watchOf(local, { checkMark: check });
    await watch.look();
    expect(watch.fault?.kind).toBe('not shared');
    await writeFile(join(local, MARK), '');
    await watch.look();
    expect(watch.fault).toBeUndefined();
    expect(await readFile(join(local, MARK), 'utf8')).toBe(`blue\n${marks.known?.id}\n`);
  });

  test('is found out when the volume goes away under a pod that knew it', async () => {
    const [shared, marks] = [sandbox(), marksOf()];
    const check = markChecker(marks, 'server');
    await check(shared);
    await check(shared);
    await rm(join(shared, MARK));
    expect(await rejection(check(shared))).toMatchObject({ condition: 'not shared' });
  });

  test('of two pods that begin at once on two directories one is right', async () => {
    const [one, two, marks] = [sandbox(), sandbox(), marksOf()];
    const ends = await Promise.allSettled([one, two].map((directory) => markChecker(marks, 'server')(directory)));
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect([...filesIn(one), ...filesIn(two)]).toEqual([MARK]);
  });

  test('two pods that begin at once on one directory agree', async () => {
    const [shared, marks] = [sandbox(), marksOf()];
    const check = () => markChecker(marks, 'server')(shared);
    await Promise.all([check(), check(), check()]);
    await check();
    expect(filesIn(shared)).toEqual([MARK]);
  });

  test('of another cluster, or of another database, is refused; a database that is new takes it as it is', async () => {
    const [shared, blue] = [sandbox(), marksOf()];
    await markChecker(blue, 'server')(shared);
    expect(await rejection(markChecker(marksOf('green'), 'server')(shared))).toMatchObject({
      condition: 'not shared',
      message: expect.stringMatching(
        /says that the volume is of the cluster blue, and this pod is of the cluster green/,
      ),
    });
    const other = marksOf();
    other.known = { id: 'another', node: 'pod-9', at: new Date(0) };
    expect(await rejection(markChecker(other, 'server')(shared))).toMatchObject({ condition: 'not shared' });
    const fresh = marksOf();
    await markChecker(fresh, 'server')(shared);
    expect(fresh.known?.id).toBe(blue.known?.id);
  });
});
