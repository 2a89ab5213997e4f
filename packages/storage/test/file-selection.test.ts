import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { findFileToSend } from '../src/file-selection.js';
import { FileSource, formatOf } from '../src/index.js';
import type { SendableFile } from '../src/index.js';
import { rejection, sandbox } from './support/sandbox.js';

/** A directory with files of the given ages in seconds since the epoch. */
function directoryWith(files: Readonly<Record<string, number>>): string {
  const directory = sandbox();
  for (const [name, modified] of Object.entries(files)) {
    writeFileSync(join(directory, name), name);
    utimesSync(join(directory, name), modified, modified);
  }
  return directory;
}

const NONE = { wanted: () => Promise.resolve(new Set<never>()) };

describe('the file that answers a SELECT', () => {
  test('named exactly PI 12, whatever the pattern says', async () => {
    const directory = directoryWith({ OLD: 100, PAYMENTS: 200 });
    const file = await findFileToSend(directory, { exactName: 'PAYMENTS', pattern: '*.csv', ...NONE });
    expect(file).toEqual({
      name: 'PAYMENTS',
      path: join(directory, 'PAYMENTS'),
      size: 8,
      modified: new Date(200_000),
      mtimeNs: 200_000_000_000n,
    });
  });

  test('else the oldest that matches; of one age the first by name', async () => {
    const directory = directoryWith({ 'b.csv': 100, 'a.csv': 100, 'c.csv': 200, 'x.txt': 1 });
    expect(await findFileToSend(directory, { exactName: 'NONE', pattern: '*.csv' })).toMatchObject({ name: 'a.csv' });
    expect(await findFileToSend(directory)).toMatchObject({ name: 'x.txt' });
    expect(await findFileToSend(directory, { pattern: '*.xml' })).toBeUndefined();
  });

  test('that is wanted and taken: asked in batches and one by one, from the oldest on, and no further than needed', async () => {
    const directory = directoryWith({ d: 4, c: 3, b: 2, a: 1 });
    const batches: string[][] = [];
    const offered: string[] = [];
    const wanted = (files: readonly SendableFile[]) => {
      batches.push(files.map(({ name }) => name));
      return Promise.resolve(new Set(files.filter(({ name }) => name !== 'a')));
    };
    const take = ({ name }: SendableFile) => {
      offered.push(name);
      return name === 'c';
    };
    expect(await findFileToSend(directory, { wanted, take })).toMatchObject({ name: 'c' });
    expect(batches).toEqual([['a', 'b', 'c', 'd']]);
    expect(offered).toEqual(['b', 'c']);
    expect(await findFileToSend(directory, NONE)).toBeUndefined();
    expect(await findFileToSend(directory, { take: () => false })).toBeUndefined();
  });

  test('never one with a dot, a directory, or a link that leads out', async () => {
    const directory = directoryWith({ '.hidden': 1, seen: 100 });
    const outside = directoryWith({ secret: 1 });
    mkdirSync(join(directory, '.pesit'));
    mkdirSync(join(directory, 'directory'));
    symlinkSync(join(outside, 'secret'), join(directory, 'secret'));
    symlinkSync(outside, join(directory, 'out'));
    symlinkSync('missing', join(directory, 'dangling'));
    expect(await findFileToSend(directory, { take: ({ name }) => name !== 'seen' })).toBeUndefined();
    for (const exactName of ['.hidden', '.pesit', 'directory', 'secret', 'out/secret', '../x', '..', '.', '', 'a\0b']) {
      expect(await findFileToSend(directory, { exactName, pattern: 'no file' })).toBeUndefined();
    }
  });

  test('a link that stays inside is the file that it leads to, and can be opened', async () => {
    const directory = directoryWith({ 'data-2026': 100 });
    symlinkSync('data-2026', join(directory, 'CURRENT'));
    const file = await findFileToSend(directory, { exactName: 'CURRENT' });
    expect(file).toMatchObject({ name: 'CURRENT', path: join(directory, 'data-2026') });
    await (await FileSource.open(file!.path, formatOf({}))).close();
  });

  test('a directory that is one file is that file', async () => {
    const path = join(directoryWith({ one: 5 }), 'one');
    expect(await findFileToSend(path, { exactName: 'OTHER', pattern: '*.csv' })).toMatchObject({ name: 'one', path });
  });

  test('a missing directory: 2-205, the path only for the operator', async () => {
    const path = join(sandbox(), 'missing');
    const error = await rejection(findFileToSend(path));
    expect(error).toMatchObject({ diagnostic: '2-205', fault: 'local' });
    expect(error.message).toContain(path);
    expect(error.peerText).toBe('cannot open the send directory: no such file or directory');
  });

  test('an error of those who are asked comes through as it is', async () => {
    const broken = Object.assign(new Error('database is away'), { code: 'ECONNREFUSED' });
    const directory = directoryWith({ a: 1 });
    expect(await rejection(findFileToSend(directory, { wanted: () => Promise.reject(broken) }))).toBe(broken);
  });
});
