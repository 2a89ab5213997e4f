import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { THIS_BOOT, THIS_PROCESS, isRunning } from '../src/index.js';

test('this process runs, and is named as proc(5) has it', () => {
  const stat = readFileSync('/proc/self/stat', 'latin1').replace(/^.*\) /s, '');
  expect(THIS_PROCESS).toEqual({
    pid: process.pid,
    started: stat.split(' ')[19],
    machine: expect.stringMatching(/^[0-9a-f]{12}$/),
  });
  expect(isRunning(THIS_PROCESS)).toBe(true);
  expect(THIS_BOOT).toMatch(/^[0-9a-f]{12}$/);
});

test('another one that has the pid of a process now is not that process', () => {
  expect(isRunning({ ...THIS_PROCESS, started: String(Number(THIS_PROCESS.started) - 1) })).toBe(false);
});

test('a process that was killed does not run', async () => {
  const child = spawn('sleep', ['1000']);
  await once(child, 'spawn');
  const pid = child.pid!;
  const started = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /s, '')
    .split(' ')[19]!;
  expect(isRunning({ pid, started })).toBe(true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isRunning({ pid, started })).toBe(false);
});
