import { lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  StagedFile,
  ensureReceiveDirectory,
  expandPattern,
  formatOf,
  freeSpace,
  isInsideRoots,
  LocalFileStore,
  nodeFiles,
  resolveInside,
  sanitiseValue,
  validatePattern,
} from '../src/index.js';
import { batchOf } from './support/articles.js';
import { filesIn, mountedSandbox, rejection, sandbox } from './support/sandbox.js';

function tree(): { root: string; outside: string } {
  const top = sandbox();
  const [root, outside] = [join(top, 'root'), join(top, 'root-outside')];
  mkdirSync(join(root, 'sub'), { recursive: true });
  mkdirSync(outside);
  writeFileSync(join(root, 'sub/file'), '');
  writeFileSync(join(outside, 'secret'), '');
  symlinkSync(outside, join(root, 'out'));
  symlinkSync('sub', join(root, 'in'));
  symlinkSync(join(outside, 'missing'), join(root, 'dangling'));
  symlinkSync('loop', join(root, 'loop'));
  return { root, outside };
}

describe('a path inside a directory', () => {
  test.each([
    ['sub/file', 'sub/file'],
    ['in/file', 'sub/file'],
    ['./sub/../sub/file', 'sub/file'],
    ['new/deep/name', 'new/deep/name'],
    ['in/new', 'sub/new'],
    ['.', ''],
    ['..name', '..name'],
  ])('%s is %s', async (relative, expected) => {
    const { root } = tree();
    expect(await resolveInside(root, relative)).toBe(join(root, expected));
    expect(await resolveInside(root, join(root, relative))).toBe(join(root, expected));
  });

  test.each([
    '..',
    '../root-outside/secret',
    'sub/../../root-outside',
    '/etc/passwd',
    'out/secret',
    'out',
    'out/new',
    'dangling',
    'dangling/x',
    'loop',
    'loop/x',
    'sub/file/x',
    'a\0b',
    'x'.repeat(300),
  ])('%j is refused', async (relative) => {
    const { root, outside } = tree();
    const error = await rejection(resolveInside(root, relative));
    expect(error).toMatchObject({ diagnostic: '2-226', fault: 'local' });
    expect(error.peerText).not.toContain(outside);
  });

  test('the directory may itself be reached by a link', async () => {
    const { root } = tree();
    symlinkSync(root, `${root}-link`);
    expect(await resolveInside(`${root}-link`, 'in/file')).toBe(join(root, 'sub/file'));
  });

  test('is asked for once for a directory, and twice for a file that is located in one', async () => {
    const { root } = tree();
    const asked: string[] = [];
    const realpath = (path: string) => {
      asked.push(path);
      return nodeFiles.realpath(path);
    };
    const files = { ...nodeFiles, realpath };
    expect(await resolveInside(root, '.', files)).toBe(root);
    expect(asked.splice(0)).toEqual([root]);
    const store = new LocalFileStore(`${root}-link`, { files });
    symlinkSync(root, `${root}-link`);
    expect(await store.locate('in/file')).toMatchObject({ path: join(root, 'sub/file'), kind: 'file' });
    expect(asked.splice(0)).toEqual([`${root}-link`, join(`${root}-link`, 'in/file')]);
    await (await store.open(join(root, 'sub/file'))).close();
    expect(asked.splice(0)).toEqual([`${root}-link`, join(root, 'sub')]);
  });
});

test('inside one of the roots, links followed on both sides, existing or not', async () => {
  const { root, outside } = tree();
  symlinkSync(root, `${root}-link`);
  for (const path of [root, join(root, 'sub'), join(root, 'new/dir'), `${root}-link/new`]) {
    expect([path, await isInsideRoots(path, ['/nonexistent', root])]).toEqual([path, true]);
    expect([path, await isInsideRoots(path, [`${root}-link`])]).toEqual([path, true]);
  }
  for (const path of [
    outside,
    join(root, 'out'),
    join(root, 'out/x'),
    join(root, 'dangling/x'),
    join(root, '..'),
    'sub',
    `${root}\0`,
  ]) {
    expect([path, await isInsideRoots(path, [root])]).toEqual([path, false]);
  }
  expect(await isInsideRoots('/anything', ['/'])).toBe(true);
  expect(await isInsideRoots(root, [])).toBe(false);
});

describe('the receive directory', () => {
  test('as it should be', async () => {
    const directory = sandbox();
    await ensureReceiveDirectory(directory);
    expect(filesIn(directory)).toEqual([]);
    expect(await freeSpace(directory)).toBeGreaterThan(0);
  });

  test('missing, a file: 2-211, the path only for the operator', async () => {
    const { root } = tree();
    for (const path of [join(root, 'missing'), join(root, 'sub/file'), join(root, 'sub/file/x')]) {
      const error = await rejection(ensureReceiveDirectory(path));
      expect(error).toMatchObject({ diagnostic: '2-211', fault: 'local' });
      expect(error.message).toContain(path);
      expect(error.peerText).not.toContain(root);
    }
  });

  test('read-only: 2-211', async () => {
    const mounted = mountedSandbox('size=1m');
    if (!mounted) return;
    expect(await freeSpace(mounted.path)).toBe(1024 * 1024);
    mounted.remount('ro');
    expect(await rejection(ensureReceiveDirectory(mounted.path))).toMatchObject({ diagnostic: '2-211', got: 'EROFS' });
  });

  test('no volume to ask', async () => {
    expect(await rejection(freeSpace(join(sandbox(), 'missing')))).toMatchObject({
      diagnostic: '2-211',
      fault: 'local',
    });
  });
});

/** What an attacker would put in PI 12, PI 3, PI 37 or what a careless administrator would configure. */
const nasty = fc.oneof(
  fc.constantFrom(
    '..',
    '../',
    '../..',
    '/',
    '//',
    '\\',
    '..\\',
    '\0',
    '.',
    '.pesit',
    'out',
    'out/x',
    '/etc/passwd',
    'in',
    '${partner}',
    '${',
    '%2e%2e%2f',
    '..%c0%af',
    '\u2215',
    '\u202e',
    'CON',
    '~',
    '~/x',
    '-rf',
    '$(id)',
    'a\nb',
    ' ',
    '\ufffd',
    'C:\\x',
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 300 }),
);
const hostile = fc.array(nasty, { maxLength: 4 }).map((pieces) => pieces.join(''));
const names = fc.record({ partner: hostile, virtualFile: hostile, transferId: hostile, uuid: hostile });
const patterns = fc
  .array(
    fc.oneof(
      fc.constantFrom('${partner}', '${virtualFile}', '${transferId}', '${uuid}', '${date}', '/', 'x', '.'),
      nasty,
    ),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .map((pieces) => pieces.join(''));

test('whatever a peer sends and an administrator configures, the name is a clean path below the directory', () => {
  fc.assert(
    fc.property(patterns, names, (pattern, values) => {
      if (validatePattern(pattern) !== undefined) return;
      const path = expandPattern(pattern, values, new Date(0));
      const segments = path.split('/');
      expect(segments).toHaveLength(pattern.split('/').length);
      for (const segment of segments) {
        expect(segment).not.toMatch(/^\.|^$|[\0\p{Cc}]/u);
        expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(255);
      }
    }),
    { numRuns: 3000 },
  );
});

test('a sanitised value is stable: it is not changed again', () => {
  fc.assert(fc.property(hostile, (value) => expect(sanitiseValue(sanitiseValue(value))).toBe(sanitiseValue(value))));
});

test('on a real disk with links that lead out: delivered inside, or refused with nothing created anywhere', async () => {
  const { root, outside } = tree();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.oneof(patterns, hostile), names, fc.boolean(), async (pattern, values, overwrite) => {
      const usable = validatePattern(pattern) === undefined;
      const path = usable ? expandPattern(pattern, values, new Date(0)) : pattern;
      const staged = await StagedFile.create({ receiveDirectory: root, key: `k${++run}`, format: formatOf({}) });
      staged.write(batchOf('payload'));
      try {
        const delivery = await staged.deliver({ path, overwrite });
        expect(delivery.path.startsWith(root + sep)).toBe(true);
        expect(delivery.path.startsWith(join(root, '.pesit') + sep)).toBe(false);
        expect(lstatSync(delivery.path).isFile()).toBe(true);
        expect(readFileSync(delivery.path, 'utf8')).toBe('payload');
        rmSync(delivery.path);
      } catch (error) {
        expect(error).toMatchObject({ fault: 'local', diagnostic: expect.stringMatching(/^2-2(04|11|26)$/) });
      }
      await staged.discard();
      expect(filesIn(outside)).toEqual(['secret']);
      expect(filesIn(join(root, '.pesit'))).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
