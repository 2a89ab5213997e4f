import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { filesIn, mountedSandbox, rejection, sandbox } from './support/sandbox.js';

let keys = 0;

async function stagedWith(content: string, receiveDirectory: string, files = nodeFiles): Promise<StagedFile> {
  const key = `key-${++keys}`;
  const staged = await StagedFile.create({ receiveDirectory, key, format: formatOf({}), files });
  staged.write(batchOf(content));
  return staged;
}

const osError = (code: string) => Object.assign(new Error(`${code}: from the test`), { code });
const withoutHardLinks: FileOperations = { ...nodeFiles, link: () => Promise.reject(osError('EPERM')) };

describe.each([
  ['with hard links', nodeFiles],
  ['without hard links', withoutHardLinks],
])('a file system %s', (_, files) => {
  test('never overwrites: 2-204, the old file untouched, the new one may have another name', async () => {
    const directory = sandbox();
    writeFileSync(join(directory, 'out'), 'old');
    const staged = await stagedWith('new', directory, files);
    const error = await rejection(staged.deliver({ path: 'out', overwrite: false }));
    expect(error).toMatchObject({ diagnostic: '2-204', fault: 'local', peerText: 'a file of this name exists' });
    expect(error.message).toContain(join(directory, 'out'));
    expect(readFileSync(join(directory, 'out'), 'utf8')).toBe('old');
    await staged.deliver({ path: 'other', overwrite: false });
    expect(readFileSync(join(directory, 'other'), 'utf8')).toBe('new');
    expect(filesIn(directory)).toEqual(['other', 'out']);
  });

  test('of many deliveries at once to one name exactly one wins', async () => {
    const directory = sandbox();
    for (let round = 0; round < 5; round++) {
      const staged = await Promise.all(
        ['0', '1', '2', '3', '4', '5'].map((content) => stagedWith(content, directory, files)),
      );
      const path = `day/out-${round}`;
      const results = await Promise.allSettled(staged.map((file) => file.deliver({ path, overwrite: false })));
      const winners = results.flatMap(({ status }, i) => (status === 'fulfilled' ? [String(i)] : []));
      expect(winners).toHaveLength(1);
      for (const result of results) {
        if (result.status === 'rejected') expect(result.reason).toMatchObject({ diagnostic: '2-204' });
      }
      expect(readFileSync(join(directory, path), 'utf8')).toBe(winners[0]);
      await Promise.all(staged.map((file) => file.discard()));
    }
    expect(filesIn(directory)).toHaveLength(5);
  });

  test('overwrites when told to, also a file that is being delivered', async () => {
    const directory = sandbox();
    writeFileSync(join(directory, 'out'), 'old');
    const staged = await Promise.all(['a', 'b'].map((content) => stagedWith(content, directory, files)));
    await Promise.all(staged.map((file) => file.deliver({ path: 'out', overwrite: true })));
    expect(['a', 'b']).toContain(readFileSync(join(directory, 'out'), 'utf8'));
    expect(filesIn(directory)).toEqual(['out']);
  });

  test('a link at the final name is not followed: refused, or itself replaced', async () => {
    const directory = sandbox();
    const outside = sandbox();
    const victim = join(outside, 'victim');
    writeFileSync(victim, 'precious');
    for (const target of [victim, join(outside, 'missing')]) {
      symlinkSync(target, join(directory, 'out'));
      const staged = await stagedWith('new', directory, files);
      await expect(staged.deliver({ path: 'out', overwrite: false })).rejects.toMatchObject({ diagnostic: '2-204' });
      expect(readlinkSync(join(directory, 'out'))).toBe(target);
      await staged.deliver({ path: 'out', overwrite: true });
      expect(lstatSync(join(directory, 'out')).isFile()).toBe(true);
      rmSync(join(directory, 'out'));
    }
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(filesIn(outside)).toEqual(['victim']);
  });
});

describe('without hard links', () => {
  test('a rename that fails takes back the name that was reserved', async () => {
    const directory = sandbox();
    const files = { ...withoutHardLinks, rename: () => Promise.reject(osError('EIO')) };
    const staged = await stagedWith('new', directory, files);
    await expect(staged.deliver({ path: 'out', overwrite: false })).rejects.toMatchObject({ fault: 'local' });
    await staged.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('a file that came to the reserved name meanwhile is kept', async () => {
    const directory = sandbox();
    const final = join(directory, 'out');
    const files: FileOperations = {
      ...withoutHardLinks,
      lstat: async (path) => {
        if (path === final) writeFileSync(final, 'from somebody else');
        return nodeFiles.lstat(path);
      },
    };
    const staged = await stagedWith('new', directory, files);
    await expect(staged.deliver({ path: 'out', overwrite: false })).rejects.toMatchObject({ diagnostic: '2-204' });
    expect(readFileSync(final, 'utf8')).toBe('from somebody else');
    await staged.discard();
  });
});

describe('sub-directories', () => {
  test('are created for this service alone', async () => {
    const directory = sandbox();
    const staged = await stagedWith('x', directory);
    const { path } = await staged.deliver({ path: '2026/11/21/out', overwrite: false });
    expect(path).toBe(join(directory, '2026/11/21/out'));
    expect(statSync(join(directory, '2026/11')).mode & 0o777).toBe(0o700);
  });

  test('may be links that stay inside', async () => {
    const directory = sandbox();
    mkdirSync(join(directory, 'real'));
    symlinkSync('real', join(directory, 'alias'));
    const staged = await stagedWith('x', directory);
    const { path } = await staged.deliver({ path: 'alias/deep/out', overwrite: false });
    expect(path).toBe(join(directory, 'real/deep/out'));
  });

  test.each(['way', 'way/deeper'])(
    'a link on %s that leads outside is refused, nothing is created there',
    async (on) => {
      const directory = sandbox();
      const outside = sandbox();
      symlinkSync(outside, join(directory, 'way'));
      const staged = await stagedWith('x', directory);
      const error = await rejection(staged.deliver({ path: `${on}/out`, overwrite: true }));
      expect(error).toMatchObject({ diagnostic: '2-226' });
      expect(error.peerText).not.toContain(outside);
      await staged.discard();
      expect(filesIn(outside)).toEqual([]);
      expect(existsSync(join(outside, 'deeper'))).toBe(false);
    },
  );

  test('a link into the staging directory is refused', async () => {
    const directory = sandbox();
    symlinkSync('.pesit', join(directory, 'way'));
    const staged = await stagedWith('x', directory);
    await expect(staged.deliver({ path: 'way/out', overwrite: false })).rejects.toMatchObject({ diagnostic: '2-226' });
    await staged.discard();
    expect(filesIn(directory)).toEqual(['way']);
  });

  test.each(['../out', '/tmp/out', 'a/../../out', 'a//out', './out', 'a/', '', 'a\0b', '.pesit/out', '.PESIT/x'])(
    'path %j is refused',
    async (path) => {
      const directory = sandbox();
      const staged = await stagedWith('x', directory);
      await expect(staged.deliver({ path, overwrite: true })).rejects.toMatchObject({ diagnostic: '2-226' });
      await staged.discard();
      expect(filesIn(directory)).toEqual([]);
    },
  );

  test('a file where a directory is needed, a directory where the file goes: 2-211', async () => {
    const directory = sandbox();
    writeFileSync(join(directory, 'file'), '');
    mkdirSync(join(directory, 'directory'));
    const staged = await stagedWith('x', directory);
    await expect(staged.deliver({ path: 'file/out', overwrite: true })).rejects.toMatchObject({ diagnostic: '2-211' });
    await expect(staged.deliver({ path: 'directory', overwrite: true })).rejects.toMatchObject({ diagnostic: '2-211' });
    await expect(staged.deliver({ path: 'directory', overwrite: false })).rejects.toMatchObject({
      diagnostic: '2-204',
    });
    await staged.discard();
  });

  test('on another volume: 2-211, and the reason', async () => {
    const mounted = mountedSandbox('size=1m');
    if (!mounted) return;
    const directory = join(mounted.path, '..');
    const staged = await stagedWith('x', directory);
    const error = await rejection(staged.deliver({ path: 'mounted/out', overwrite: false }));
    expect(error).toMatchObject({ diagnostic: '2-211', got: 'EXDEV' });
    expect(error.message).toContain('one volume');
    await staged.discard();
  });
});

test('a receive directory that is itself a link is the directory it leads to', async () => {
  const directory = sandbox();
  mkdirSync(join(directory, 'real'));
  symlinkSync('real', join(directory, 'alias'));
  const staged = await stagedWith('x', join(directory, 'alias'));
  expect(await staged.deliver({ path: 'out', overwrite: false })).toMatchObject({ path: join(directory, 'real/out') });
});

test('a receive directory that a link to elsewhere has replaced: 2-211, and nothing is made there', async () => {
  const directory = sandbox();
  const elsewhere = sandbox();
  const received = join(directory, 'received');
  mkdirSync(received);
  const staged = await stagedWith('x', received);
  renameSync(received, join(directory, 'away'));
  symlinkSync(elsewhere, received);
  for (const path of ['out', 'sub/directory/out']) {
    await expect(staged.deliver({ path, overwrite: false })).rejects.toMatchObject({
      diagnostic: '2-211',
      message: expect.stringContaining('no such file or directory'),
    });
  }
  expect(readdirSync(elsewhere)).toEqual([]);
  rmSync(received);
  renameSync(join(directory, 'away'), received);
  expect(await staged.deliver({ path: 'sub/out', overwrite: false })).toMatchObject({
    path: join(received, 'sub/out'),
  });
});

test('a second deliver answers like the first', async () => {
  const directory = sandbox();
  const staged = await stagedWith('x', directory);
  const first = await staged.deliver({ path: 'out', overwrite: false });
  expect(await staged.deliver({ path: 'out', overwrite: false })).toEqual(first);
});
