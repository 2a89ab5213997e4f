import { mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { makeDirectories } from '@pesit-node/ground';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pesit-directories-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

test('makes what is missing, with the mode, and says which was the first; again nothing', async () => {
  expect(await makeDirectories(join(root, 'a/b/c'), 0o700)).toBe(join(root, 'a'));
  for (const path of ['a', 'a/b', 'a/b/c']) expect((await stat(join(root, path))).mode & 0o777).toBe(0o700);
  expect(await makeDirectories(join(root, 'a/b/c'), 0o750)).toBeUndefined();
  expect(await makeDirectories('/', 0o700)).toBeUndefined();
});

test('two at once', async () => {
  const made = await Promise.all([1, 2, 3].map(() => makeDirectories(join(root, 'x/y/z'), 0o700)));
  expect(made.length).toBe(3);
  expect(await readdir(join(root, 'x/y'))).toEqual(['z']);
});

test('a file in its place, or in its path, and a link to nowhere', async () => {
  await writeFile(join(root, 'file'), '');
  await symlink(join(root, 'nowhere'), join(root, 'link'));
  await expect(makeDirectories(join(root, 'file'), 0o700)).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makeDirectories(join(root, 'file/a'), 0o700)).rejects.toMatchObject({ code: 'ENOTDIR' });
  await expect(makeDirectories(join(root, 'link'), 0o700)).rejects.toMatchObject({ code: 'ENOENT' });
});

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux.each(['/proc/x', '/proc/x/y'])('%s is refused, and not tried for ever', async (path) => {
  await expect(makeDirectories(path, 0o700)).rejects.toMatchObject({ code: expect.stringMatching(/^E(NOENT|ACCES)$/) });
});
