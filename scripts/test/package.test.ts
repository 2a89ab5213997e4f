/** Tarballs of the apps: the archive as other programs read it, and what goes in. The apps from their tarballs: `npm run try-package`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';

interface Packed {
  readonly bytes: number;
  readonly sha256: string;
}
const library = (name: string): string => new URL(`../lib/${name}`, import.meta.url).href;
const { packFolder } = (await import(library('tar.mjs'))) as {
  packFolder: (directory: string, path: string, seconds: number) => Promise<Packed>;
};
const { isNeeded } = (await import(library('app-tree.mjs'))) as { isNeeded: (path: string) => boolean };
const { findTarball, unpack } = (await import(library('unpacked.mjs'))) as {
  findTarball: (directory: string, app: string) => string;
  unpack: (tarball: string, directory: string) => Promise<string>;
};

/** 2026-01-02T03:04:05Z */
const TIME = 1_767_323_045;
const LONG = `${'a'.repeat(60)}/${'b'.repeat(60)}/${'c'.repeat(99)}`;

let directory: string;
beforeEach(() => void (directory = mkdtempSync(join(tmpdir(), 'pesit-package-test-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const write = (path: string, content: string | Buffer): string => {
  const file = join(directory, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, content);
  return file;
};

describe('packFolder', () => {
  test('what it packs comes out of tar whole: contents, long names, the right to run', async () => {
    const contents = { 'tree/empty': '', 'tree/block': 'x'.repeat(512), 'tree/é/odd': 'y'.repeat(70_001), [LONG]: 'z' };
    for (const [path, content] of Object.entries(contents)) write(`in/${path}`, content);
    chmodSync(write('in/tree/program', '#!'), 0o700);
    const file = join(directory, 'out.tgz');

    const { bytes, sha256 } = await packFolder(join(directory, 'in'), file, TIME);
    const packed = readFileSync(file);
    expect([bytes, sha256]).toEqual([packed.length, createHash('sha256').update(packed).digest('hex')]);

    mkdirSync(join(directory, 'out'));
    execFileSync('tar', ['-xzpf', file, '-C', join(directory, 'out')]);
    for (const [path, content] of Object.entries(contents)) {
      expect(readFileSync(join(directory, 'out', path), 'utf8')).toBe(content);
    }
    const modeOf = (path: string): number => statSync(join(directory, 'out', path)).mode & 0o777;
    expect(['tree', 'tree/block', 'tree/program'].map(modeOf)).toEqual([0o755, 0o644, 0o755]);
    const listing = execFileSync('tar', ['--utc', '--full-time', '-tvzf', file], { encoding: 'utf8' });
    expect(listing).toContain('-rw-r--r-- 0/0               0 2026-01-02 03:04:05 tree/empty\n');
  });

  test('times, owners and the order of creation do not change a byte; contents do', async () => {
    const names = ['b', 'a', 'B', 'a/../c'];
    for (const name of names) write(`one/${name}`, name);
    for (const name of names.reverse()) {
      const file = write(`two/${name}`, name);
      chmodSync(file, 0o600);
      utimesSync(file, 1, 1);
    }
    const pack = (name: string): Promise<Packed> => packFolder(join(directory, name), join(directory, 'tgz'), TIME);
    const first = await pack('one');
    expect(await pack('two')).toEqual(first);
    write('two/b', 'changed');
    expect((await pack('two')).sha256).not.toBe(first.sha256);
  });

  test('a link is refused', async () => {
    mkdirSync(join(directory, 'in'));
    symlinkSync('/etc/passwd', join(directory, 'in/link'));
    await expect(packFolder(join(directory, 'in'), join(directory, 'tgz'), TIME)).rejects.toThrow(
      'in/link is neither a file nor a folder',
    );
  });
});

test.each([
  ['package.json', true],
  ['lib/index.js', true],
  ['dist/doc/directives.js', true],
  ['lib/test/helper.cjs', true],
  ['LICENSE.md', true],
  ['bin/wasm.wasm', true],
  ['README.md', false],
  ['index.d.ts', false],
  ['index.d.cts', false],
  ['src/index.ts', false],
  ['dist/index.js.map', false],
  ['test/index.js', false],
  ['Benchmarks/run.js', false],
  ['dist/parser.test.js', false],
  ['.github/FUNDING.yml', false],
  ['lib/.eslintrc', false],
])('of a package %s is packed: %s', (path, needed) => {
  expect(isNeeded(path)).toBe(needed);
});

describe('the tarballs of a folder', () => {
  const put = (name: string, content = 'x'): string => write(`dist/${name}`, content);

  test('the one of an app is found; none and several are said', () => {
    const dist = join(directory, 'dist');
    expect(() => findTarball(dist, 'server')).toThrow('holds no tarball of the server app: run npm run package first');
    const server = put('pesit-node-server-1.0.0.tgz');
    put('pesit-node-server-1.0.0.tgz.sha256');
    put('pesit-node-client-1.0.0.tgz');
    expect(findTarball(dist, 'server')).toBe(server);
    put('pesit-node-server-1.0.1.tgz');
    expect(() => findTarball(dist, 'server')).toThrow('pesit-node-server-1.0.0.tgz, pesit-node-server-1.0.1.tgz');
  });

  test('one that differs from the SHA-256 beside it is not unpacked', async () => {
    const tarball = put('pesit-node-server-1.0.0.tgz');
    put('pesit-node-server-1.0.0.tgz.sha256', `${'0'.repeat(64)}  pesit-node-server-1.0.0.tgz\n`);
    await expect(unpack(tarball, join(directory, 'out'))).rejects.toThrow(`${'0'.repeat(64)} stands beside it`);
    expect(readdirSync(directory)).toEqual(['dist']);
  });
});

test.each([
  [['--app', 'both'], '--app: expected server or client, got both'],
  [['--max-extension-days', '3'], 'is for a build for customers: give --vendor-key, too'],
  [['--shrink'], "Unknown option '--shrink'"],
])('npm run package -- %j is refused before anything is made', (args, words) => {
  const script = fileURLToPath(new URL('../package.mjs', import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  expect(status).toBe(1);
  expect(stderr).toContain(words);
});
