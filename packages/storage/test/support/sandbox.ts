import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import type { PesitError } from '@pesit-node/protocol';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

/** A directory of its own for one test, real path, removed afterwards. */
export function sandbox(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'pesit-storage-')));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A memory file system of one test; undefined, and a line that says so, where this account cannot mount. */
export function mountedSandbox(options: string): { path: string; remount: (options: string) => void } | undefined {
  const path = join(sandbox(), 'mounted');
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path], { stdio: 'pipe' });
  } catch {
    console.log('left out: this account cannot mount a tmpfs, so a real full or read-only disk was not tried');
    return undefined;
  }
  cleanups.push(() => execFileSync('umount', ['-l', path]));
  return { path, remount: (changed) => execFileSync('mount', ['-o', `remount,${changed}`, path]) };
}

/** Every file below a directory, relative, sorted. */
export function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}

/** The error that a promise rejects with; fails when it does not. */
export async function rejection(promise: Promise<unknown>): Promise<PesitError & { peerText: string }> {
  try {
    await promise;
  } catch (error) {
    return error as PesitError & { peerText: string };
  }
  throw new Error('expected a rejection');
}
