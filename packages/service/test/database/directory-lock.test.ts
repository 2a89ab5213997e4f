import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

import { DirectoryLockedError } from '@pesit-node/service';

import { lockDirectory } from '../../src/database/directory-lock.js';

let directory: string;
let path: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pesit-lock-'));
  path = join(directory, 'database.lock');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** A lock as this process writes it, given back to be changed. */
const ownLock = async (): Promise<Record<string, unknown>> => {
  const lock = await lockDirectory(path);
  const owner = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
  await lock.release();
  return owner;
};

const deadPid = (): number => spawnSync(process.execPath, ['-e', '']).pid;

describe('directory lock', () => {
  test('is exclusive, names the holder, and can be taken again after its release', async () => {
    const lock = await lockDirectory(path);
    await expect(lockDirectory(path)).rejects.toThrow(DirectoryLockedError);
    await expect(lockDirectory(path)).rejects.toThrow(`held by process ${process.pid}`);
    await lock.release();
    await lock.release();
    expect(await readdir(directory)).toEqual([]);
    await (await lockDirectory(path)).release();
  });

  test('of a dead process is taken over', async () => {
    await writeFile(path, JSON.stringify({ ...(await ownLock()), pid: deadPid() }));
    const lock = await lockDirectory(path);
    expect(JSON.parse(await readFile(path, 'utf8'))).toMatchObject({ pid: process.pid });
    await lock.release();
  });

  test('of a process that was killed and is not waited for by its parent is taken over', async () => {
    // The shell becomes a program that waits for no child.
    const script = 'sh -c "read line" <&3 & echo $! $(cut -d " " -f 22 /proc/$!/stat); exec sleep 60';
    const parent = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore', 'pipe'] });
    const [said] = (await once(parent.stdout as Readable, 'data')) as [Buffer];
    const [pid, started] = said.toString().trim().split(' ');
    await writeFile(path, JSON.stringify({ ...(await ownLock()), pid: Number(pid), started }));
    await expect(lockDirectory(path)).rejects.toThrow(`held by process ${pid}`);
    process.kill(Number(pid), 'SIGKILL');
    while (!(await readFile(`/proc/${pid}/stat`, 'latin1')).includes(') Z '));
    await (await lockDirectory(path)).release();
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  });

  test('of an earlier process that had our pid is taken over', async () => {
    await writeFile(path, JSON.stringify({ ...(await ownLock()), started: '1', id: 'other' }));
    await (await lockDirectory(path)).release();
  });

  test('that is no lock is taken over', async () => {
    await writeFile(path, '');
    await (await lockDirectory(path)).release();
  });

  test('of another container counts as dead once it is silent', async () => {
    await writeFile(path, JSON.stringify({ ...(await ownLock()), namespace: 'elsewhere', id: 'other' }));
    await (await lockDirectory(path, { silenceMs: 100 })).release();
  });

  test('of another container is respected while it beats', async () => {
    await writeFile(path, JSON.stringify({ ...(await ownLock()), namespace: 'elsewhere', host: 'pod-7', id: 'other' }));
    let time = 1_000_000;
    const beat = setInterval(() => {
      time++;
      utimes(path, time, time).catch(() => undefined);
    }, 20);
    await expect(lockDirectory(path, { silenceMs: 1000 })).rejects.toThrow('on pod-7');
    clearInterval(beat);
  });

  test('many that want a stale lock at once: one gets it', async () => {
    const stale = JSON.stringify({ ...(await ownLock()), pid: deadPid() });
    for (let round = 0; round < 20; round++) {
      await writeFile(path, stale);
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(path)));
      const taken = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      expect(taken).toHaveLength(1);
      expect(await readdir(directory)).toEqual(['database.lock']);
      await taken[0]?.release();
    }
  });

  test('release leaves the lock of a successor alone', async () => {
    const lock = await lockDirectory(path);
    await writeFile(path, JSON.stringify({ pid: 1, id: 'successor' }));
    await lock.release();
    expect(await readdir(directory)).toEqual(['database.lock']);
  });
});
