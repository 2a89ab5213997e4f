import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { DataDirectoryError, prepareDataDirectory } from '@pesit-node/service';

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'pesit-data-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

test('is made with all of its path, and kept from others', async () => {
  const path = join(root, 'a/b');
  await prepareDataDirectory(path);
  await prepareDataDirectory(path);
  const { mode } = await stat(path);
  expect(mode & 0o027).toBe(0);
});

test('two processes may make it at once', async () => {
  const path = join(root, 'a/b/c');
  await Promise.all(Array.from({ length: 8 }, () => prepareDataDirectory(path)));
  expect((await stat(path)).isDirectory()).toBe(true);
});

test('is marked, so that no service lets its partners into the data of another one', async () => {
  const path = join(root, 'a');
  await prepareDataDirectory(path);
  const text = await readFile(join(path, '.pesit-node'), 'utf8');
  expect(text).toContain('Remove this file once no service uses the directory');
  await prepareDataDirectory(path);
  expect(await readFile(join(path, '.pesit-node'), 'utf8')).toBe(text);
});

test('a directory that takes no new one', async () => {
  await expect(prepareDataDirectory('/proc/pesit-node/data')).rejects.toThrow(DataDirectoryError);
});

test.each(['file', 'file/below'])('%s is none: what is wrong, what was expected, what to do', async (name) => {
  await writeFile(join(root, 'file'), '');
  const path = join(root, name);
  const failed = prepareDataDirectory(path);
  await expect(failed).rejects.toThrow(DataDirectoryError);
  await expect(failed).rejects.toThrow(
    `data.directory ${path} cannot be used: it, or a part of its path, is a file. Expected a directory that the service may ` +
      'read and write: give it the rights, or choose another with --data.directory',
  );
});
