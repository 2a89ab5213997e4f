import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { StagedFile, formatOf, listLeftovers, nodeFiles, removeLeftover } from '../src/index.js';
import type { FileOperations } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { filesIn, rejection, sandbox } from './support/sandbox.js';

const format = formatOf({ text: true, recordLength: 80 });
const optionsIn = (receiveDirectory: string) => ({ receiveDirectory, key: 'k', format });

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A process that does nothing, and the start time that proc(5) tells of it. */
async function otherProcess(): Promise<{ child: ChildProcess; pid: number; started: string }> {
  const child = spawn('sleep', ['1000']);
  children.push(child);
  await once(child, 'spawn');
  const pid = child.pid!;
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return { child, pid, started: stat.replace(/^.*\) /s, '').split(' ')[19]! };
}

/** The part of a lock's name that stands for the boot and the pid namespace: as this process writes it. */
async function machineOfThis(): Promise<string> {
  const directory = sandbox();
  const staged = await StagedFile.create(optionsIn(directory));
  const [lock] = filesIn(directory);
  await staged.discard();
  return /-([0-9a-f]{12})\.lock$/.exec(lock!)![1]!;
}

/** A staged file with a point, left by a process of which only the lock is known. */
async function leftBy(pid: number, started: string, machine: string): Promise<{ directory: string; lock: string }> {
  const directory = sandbox();
  const staged = await StagedFile.create(optionsIn(directory));
  staged.write(batchOf('one'));
  await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
  await staged.release();
  const lock = join(directory, '.pesit', `k.${pid}-${started}-${machine}.lock`);
  writeFileSync(lock, '');
  return { directory, lock };
}

describe('one owner a key', () => {
  test('a second one in this process: 2-207, and the first goes on undisturbed', async () => {
    const directory = sandbox();
    const first = await StagedFile.create(optionsIn(directory));
    first.write(batchOf('one'));
    for (const again of [
      () => StagedFile.create(optionsIn(directory)),
      () => StagedFile.resume(optionsIn(directory)),
    ]) {
      const error = await rejection(again());
      expect(error).toMatchObject({ diagnostic: '2-207', peerText: 'this transfer is in progress already' });
      expect(error.message).toContain(`process ${process.pid}`);
    }
    expect(await removeLeftover(directory, 'k')).toBe(false);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ inUse: true });
    expect(await listLeftovers(directory)).toEqual([]);
    const { path } = await first.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(path, 'utf8')).toBe('one\n');
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('of many that resume at once exactly one does', async () => {
    const { directory } = await leftBy(1, '1', '0'.repeat(12));
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => StagedFile.resume(optionsIn(directory))));
    const files = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(files).toHaveLength(1);
    expect(files[0]!.point.number).toBe(1);
    await files[0]!.file.release();
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    await file.discard();
  });

  test('a process that lives: 2-207 and which; killed, even before its parent hears of it: the file goes on', async () => {
    const { child, pid, started } = await otherProcess();
    const { directory, lock } = await leftBy(pid, started, await machineOfThis());
    const error = await rejection(StagedFile.resume(optionsIn(directory)));
    expect(error).toMatchObject({ diagnostic: '2-207', fault: 'local' });
    expect(error.message).toContain(`process ${pid}`);
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ inUse: true });
    expect(await listLeftovers(directory)).toEqual([]);
    expect(await removeLeftover(directory, 'k')).toBe(false);
    expect(filesIn(directory)).toEqual([`.pesit/${basename(lock)}`, '.pesit/k.part', '.pesit/k.points']);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    expect(filesIn(directory)).not.toContain(`.pesit/${basename(lock)}`);
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('a process that ended and was never waited for does not live', async () => {
    // The shell becomes a sleep that never asks for its child.
    const parent = spawn('sh', ['-c', "sh -c 'echo $$; read line' & exec sleep 1000"], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    children.push(parent);
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const pid = Number(line.toString());
    const stat = () =>
      readFileSync(`/proc/${pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
    const started = stat()[19]!;
    process.kill(pid, 'SIGKILL');
    while (stat()[0] !== 'Z') await new Promise((resolve) => setImmediate(resolve));
    const { directory } = await leftBy(pid, started, await machineOfThis());
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    await file.discard();
  });

  test('another process that has the pid now does not count', async () => {
    const { pid, started } = await otherProcess();
    const { directory } = await leftBy(pid, String(Number(started) - 1), await machineOfThis());
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    await file.discard();
  });

  test('a process of another machine, or from before the last boot, does not count: there the database decides', async () => {
    const { pid, started } = await otherProcess();
    const { directory } = await leftBy(pid, started, 'f'.repeat(12));
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ inUse: false });
    const { file, point } = await StagedFile.resume(optionsIn(directory));
    expect(point.number).toBe(1);
    await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('a lock of this process that could not be removed is in nobody’s way', async () => {
    const directory = sandbox();
    const files: FileOperations = {
      ...nodeFiles,
      unlink: (path) => (path.endsWith('.lock') ? Promise.reject(new Error('not now')) : nodeFiles.unlink(path)),
    };
    const staged = await StagedFile.create({ ...optionsIn(directory), files });
    await staged.discard();
    expect(filesIn(directory)).toHaveLength(1);
    const again = await StagedFile.create(optionsIn(directory));
    await again.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('locks held at a time are names of one file, each of its own life', async () => {
    const directory = sandbox();
    const inodeOf = (key: string) => {
      const name = filesIn(directory).find((found) => found.startsWith(`.pesit/${key}.`) && found.endsWith('.lock'));
      return statSync(join(directory, name!)).ino;
    };
    const first = await StagedFile.create({ ...optionsIn(directory), key: 'a' });
    const second = await StagedFile.create({ ...optionsIn(directory), key: 'b' });
    expect(inodeOf('b')).toBe(inodeOf('a'));
    await first.discard();
    expect(await rejection(StagedFile.resume({ ...optionsIn(directory), key: 'b' }))).toMatchObject({
      diagnostic: '2-207',
    });
    const third = await StagedFile.create({ ...optionsIn(directory), key: 'c' });
    expect(inodeOf('c')).toBe(inodeOf('b'));
    await second.discard();
    await third.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('where the file system knows no links each lock is a file', async () => {
    const directory = sandbox();
    const link = () => Promise.reject(Object.assign(new Error('no links here'), { code: 'EPERM' }));
    const staged = await Promise.all(
      ['a', 'b', 'c'].map((key) => StagedFile.create({ ...optionsIn(directory), key, files: { ...nodeFiles, link } })),
    );
    expect(filesIn(directory).filter((name) => name.endsWith('.lock'))).toHaveLength(3);
    for (const file of staged) await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('keys that begin alike do not share a lock', async () => {
    const directory = sandbox();
    const keys = ['k', 'k.1', 'k.1-2-aaaaaaaaaaaa.lock', 'k.part', 'k.points'];
    const staged = await Promise.all(keys.map((key) => StagedFile.create({ ...optionsIn(directory), key })));
    for (const file of staged) await file.release();
    const resumed = await Promise.all(keys.map((key) => StagedFile.resume({ ...optionsIn(directory), key })));
    for (const { file } of resumed) await file.discard();
    expect(filesIn(directory)).toEqual([]);
  });
});

describe('leftovers', () => {
  test('what there is of each key, in order', async () => {
    const directory = sandbox();
    for (const key of ['b', 'a']) {
      const staged = await StagedFile.create({ ...optionsIn(directory), key, memo: `{"key":"${key}"}` });
      staged.write(batchOf('one'));
      await staged.checkpoint({ number: 1, dataBytes: 3, articles: 1 });
      staged.write(batchOf('two'));
      await staged.checkpoint({ number: 2, dataBytes: 6, articles: 2 });
      await staged.release();
    }
    const live = await StagedFile.create({ ...optionsIn(directory), key: 'live' });
    writeFileSync(join(directory, '.pesit/partless.points'), 'x');
    writeFileSync(join(directory, '.pesit/pointless.part'), 'abc');
    writeFileSync(join(directory, '.pesit/gone.999999999-1-0123456789ab.lock'), '');
    writeFileSync(join(directory, '.pesit/README'), 'not ours');
    mkdirSync(join(directory, '.pesit/odd.points'));
    const leftovers = await listLeftovers(directory);
    const none = { number: 0, dataBytes: 0, articles: 0, fileOffset: 0 };
    const two = { number: 2, dataBytes: 6, articles: 2, fileOffset: 8 };
    const common = {
      fence: 1,
      modified: expect.any(Date),
      delivered: false,
      withdrawn: false,
      memo: undefined,
      path: undefined,
    };
    const at = (key: string) => ({ key, path: join(directory, `.pesit/${key}.part`) });
    expect(leftovers).toEqual([
      { ...common, ...at('a'), size: 8, point: two, memo: '{"key":"a"}', problem: undefined },
      { ...common, ...at('b'), size: 8, point: two, memo: '{"key":"b"}', problem: undefined },
      { ...common, key: 'gone', size: 0, point: none, problem: 'there is no staged file' },
      { ...common, key: 'odd', size: 0, point: none, problem: 'there is no staged file' },
      { ...common, key: 'partless', size: 0, point: none, problem: 'there is no staged file' },
      { ...common, ...at('pointless'), size: 3, point: none, problem: 'it has no journal of points' },
    ]);
    expect(Math.abs(leftovers[0]!.modified.getTime() - Date.now())).toBeLessThan(60_000);
    for (const key of ['a', 'b', 'gone', 'partless', 'pointless']) {
      expect(await removeLeftover(directory, key)).toBe(true);
      expect(await removeLeftover(directory, key)).toBe(true);
    }
    await live.discard();
    expect(filesIn(directory)).toEqual(['.pesit/README']);
  });

  test('none where nothing was ever received; a missing directory is an error', async () => {
    const directory = sandbox();
    expect(await listLeftovers(directory)).toEqual([]);
    expect(await StagedFile.peek(directory, 'k')).toBeUndefined();
    expect(await removeLeftover(directory, 'k')).toBe(true);
    const missing = join(directory, 'missing');
    for (const ask of [() => listLeftovers(missing), () => StagedFile.peek(missing, 'k')]) {
      const error = await rejection(ask());
      expect(error).toMatchObject({ diagnostic: '2-213', fault: 'local' });
      expect(error.message).toContain(missing);
    }
  });

  test('a delivery that was killed before its last step shows, and is not received again', async () => {
    const directory = sandbox();
    // The process ends, as far as the disk can tell, before the staged name is removed.
    const files: FileOperations = {
      ...nodeFiles,
      unlink: (path) => (path.endsWith('.part') ? Promise.reject(new Error('killed')) : nodeFiles.unlink(path)),
    };
    const staged = await StagedFile.create({ ...optionsIn(directory), files });
    staged.write(batchOf('one'));
    await staged.deliver({ path: 'out', overwrite: false });
    expect(await StagedFile.peek(directory, 'k')).toMatchObject({ delivered: true, size: 4 });
    expect(await rejection(StagedFile.resume(optionsIn(directory)))).toMatchObject({ diagnostic: '2-204' });
    expect(await rejection(StagedFile.create(optionsIn(directory)))).toMatchObject({ diagnostic: '2-207' });
    expect(await removeLeftover(directory, 'k')).toBe(true);
    expect(readFileSync(join(directory, 'out'), 'utf8')).toBe('one\n');
    expect(filesIn(directory)).toEqual(['out']);
  });

  test.each(['', '../x', 'a/b', '.hidden'])('key %j is a programming error', async (key) => {
    const directory = sandbox();
    await expect(removeLeftover(directory, key)).rejects.toThrow(TypeError);
    await expect(StagedFile.peek(directory, key)).rejects.toThrow(TypeError);
    await expect(StagedFile.resume({ ...optionsIn(directory), key })).rejects.toThrow(TypeError);
  });
});
