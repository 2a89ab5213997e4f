import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { StagedFile, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations, OpenFile } from '../src/index.js';
import { batchOf, piecesOf } from './support/articles.js';
import { filesIn, mountedSandbox, rejection, sandbox } from './support/sandbox.js';

const text = formatOf({ text: true, recordLength: 80 });
const binary = formatOf({ recordLength: 65_535 });

/** The real file system, but for one operation on the staged file. */
function failing(change: (file: OpenFile) => Partial<OpenFile>): FileOperations {
  return {
    ...nodeFiles,
    open: async (path, flags, mode) => {
      const file = await nodeFiles.open(path, flags, mode);
      return path.endsWith('.part') ? { ...file, ...change(file) } : file;
    },
  };
}

const osError = (code: string) => Object.assign(new Error(`${code}: from the test`), { code });

describe('a staged file', () => {
  test('is private until delivered, and then whole, with its hash', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'P1-42', format: text });
    expect(filesIn(directory)).toEqual([
      expect.stringMatching(/^\.pesit\/P1-42\.\d+-\d+-[0-9a-f]{12}\.lock$/),
      '.pesit/P1-42.part',
    ]);
    expect(statSync(join(directory, '.pesit')).mode & 0o777).toBe(0o700);
    expect(statSync(staged.stagedPath).mode & 0o777).toBe(0o600);
    expect(staged.write(batchOf('hello'))).toBe(true);
    expect(staged.write(piecesOf([], ['wor']))).toBe(true);
    expect(staged.write(piecesOf([['ld']]))).toBe(true);
    expect(staged).toMatchObject({ articles: 2, dataBytes: 10, size: 12 });
    const delivery = await staged.deliver({ path: 'in.txt', overwrite: false });
    expect(delivery).toEqual({
      path: join(directory, 'in.txt'),
      size: 12,
      // printf 'hello\nworld\n' | sha256sum
      checksum: 'sha256:4a1e67f2fe1d1cc7b31d0ca2ec441da4778203a036a77da10344c85e24ff0f92',
    });
    expect(readFileSync(delivery.path, 'utf8')).toBe('hello\nworld\n');
    expect(filesIn(directory)).toEqual(['in.txt']);
    expect(staged.bytesWritten).toBe(12);
  });

  test('releases the memory of each batch in order, and only when its bytes are written', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary });
    const released: number[] = [];
    const expected: Buffer[] = [];
    for (let i = 0; i < 200; i++) {
      const memory = Buffer.alloc(20_000, i);
      expected.push(Buffer.from(memory));
      const room = staged.write({ parts: [memory], ends: [1], bytes: memory.length }, () => {
        released.push(i);
        // What the next read of the socket would do.
        memory.fill(0xee);
      });
      if (!room) await staged.drained();
    }
    const { path } = await staged.deliver({ path: 'whole', overwrite: false });
    expect(released).toEqual(Array.from({ length: 200 }, (_, i) => i));
    expect(readFileSync(path).equals(Buffer.concat(expected))).toBe(true);
  });

  test('without a single article is an empty file', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text });
    const { checksum, size } = await staged.deliver({ path: 'empty', overwrite: false });
    expect(size).toBe(0);
    expect(checksum).toBe('sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
    expect(readFileSync(join(directory, 'empty')).length).toBe(0);
  });

  test('has no checksum when none is wanted', async () => {
    const staged = await StagedFile.create({ receiveDirectory: sandbox(), key: 'k', format: text, checksum: 'none' });
    staged.write(batchOf('x'));
    expect(await staged.prepareDelivery()).toEqual({ size: 2, checksum: undefined });
    await staged.discard();
  });

  test('takes megabytes with pauses, and never holds more than its mark and one batch', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary });
    const expected: Buffer[] = [];
    let pauses = 0;
    for (let i = 0; i < 200; i++) {
      const block = Buffer.alloc(50_000, i);
      expected.push(block);
      if (!staged.write(batchOf(block))) {
        pauses += 1;
        expect(staged.size - staged.bytesWritten).toBeLessThanOrEqual(1024 * 1024 + 50_000);
        await staged.drained();
        expect(staged.size - staged.bytesWritten).toBeLessThan(1024 * 1024);
      }
    }
    expect(pauses).toBeGreaterThan(0);
    const { path } = await staged.deliver({ path: 'big', overwrite: false });
    expect(readFileSync(path).equals(Buffer.concat(expected))).toBe(true);
  });

  test('goes on after short writes of the operating system', async () => {
    const directory = sandbox();
    const files = failing((file) => ({
      writev: (buffers, position) => file.writev([buffers[0]!.subarray(0, 7)], position),
    }));
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text, files });
    staged.write(batchOf('a line of more than seven bytes', 'another', 'x'.repeat(80)));
    const { path } = await staged.deliver({ path: 'out', overwrite: false });
    expect(readFileSync(path, 'utf8')).toBe(`a line of more than seven bytes\nanother\n${'x'.repeat(80)}\n`);
  });

  test('discarded leaves nothing, as often as it is asked, and at any time', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: binary });
    for (let i = 0; i < 40; i++) staged.write(batchOf(Buffer.alloc(60_000, i)));
    const pending = rejection(staged.checkpoint({ number: 1, dataBytes: 1, articles: 1 }));
    await Promise.all([staged.discard(), staged.discard()]);
    await staged.discard();
    expect(await pending).toMatchObject({ diagnostic: '2-216' });
    expect(filesIn(directory)).toEqual([]);
    expect(staged.write(batchOf('late'))).toBe(false);
    await expect(staged.deliver({ path: 'x', overwrite: false })).rejects.toMatchObject({ diagnostic: '2-216' });
    expect(filesIn(directory)).toEqual([]);
  });

  test('discard after delivery keeps the delivered file', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text });
    const delivering = staged.deliver({ path: 'kept', overwrite: false });
    await staged.discard();
    await delivering;
    await staged.discard();
    expect(filesIn(directory)).toEqual(['kept']);
  });
});

describe('a staged file that cannot be created', () => {
  test('key in use: 2-207, and the other one is left alone', async () => {
    const directory = sandbox();
    const first = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text });
    await expect(StagedFile.create({ receiveDirectory: directory, key: 'k', format: text })).rejects.toMatchObject({
      diagnostic: '2-207',
      fault: 'local',
    });
    await first.deliver({ path: 'first', overwrite: false });
  });

  test.each(['', '../x', 'a/b', '.hidden', 'a\0b', 'x'.repeat(201)])('key %j is a programming error', async (key) => {
    await expect(StagedFile.create({ receiveDirectory: sandbox(), key, format: text })).rejects.toThrow(TypeError);
  });

  test('directory missing: 2-211, full path for the operator, none for the peer', async () => {
    const directory = join(sandbox(), 'missing');
    const error = await rejection(StagedFile.create({ receiveDirectory: directory, key: 'k', format: text }));
    expect(error).toMatchObject({ diagnostic: '2-211', fault: 'local' });
    expect(error.message).toContain(directory);
    expect(error.peerText).toBe('cannot create a file in the receive directory: no such file or directory');
  });

  test('the staging directory is a link to somewhere else: 2-211, nothing is written there', async () => {
    const directory = sandbox();
    const outside = sandbox();
    symlinkSync(outside, join(directory, '.pesit'));
    await expect(StagedFile.create({ receiveDirectory: directory, key: 'k', format: text })).rejects.toMatchObject({
      diagnostic: '2-211',
      got: 'link',
    });
    expect(filesIn(outside)).toEqual([]);
  });

  test('read-only file system: 2-211', async () => {
    const mounted = mountedSandbox('size=1m');
    if (!mounted) return;
    mounted.remount('ro');
    await expect(StagedFile.create({ receiveDirectory: mounted.path, key: 'k', format: text })).rejects.toMatchObject({
      diagnostic: '2-211',
      got: 'EROFS',
    });
  });

  test.each([
    ['EACCES', '2-211'],
    ['EROFS', '2-211'],
    ['ENOSPC', '2-219'],
    ['EDQUOT', '2-219'],
    ['EMFILE', '2-201'],
    ['EIO', '2-213'],
    ['ELOOP', '2-211'],
  ])('%s is %s', async (code, diagnostic) => {
    const files: FileOperations = {
      ...nodeFiles,
      open: (path, flags, mode) =>
        path.endsWith('.part') ? Promise.reject(osError(code)) : nodeFiles.open(path, flags, mode),
    };
    await expect(
      StagedFile.create({ receiveDirectory: sandbox(), key: 'k', format: text, files }),
    ).rejects.toMatchObject({ diagnostic, fault: 'local', cause: expect.objectContaining({ code }) });
  });
});

describe('a staged file that fails', () => {
  test('a full disk: 2-219, told once, all who wait hear it, nothing is left', async () => {
    const mounted = mountedSandbox('size=1m');
    if (!mounted) return;
    const staged = await StagedFile.create({ receiveDirectory: mounted.path, key: 'k', format: binary });
    const failures: Error[] = [];
    const failed = new Promise<void>((resolve) => {
      staged.onFailure = (error) => {
        failures.push(error);
        resolve();
      };
    });
    const filling = (async () => {
      for (let i = 0; i < 100; i++) if (!staged.write(batchOf(Buffer.alloc(60_000)))) await staged.drained();
    })();
    const waiting = [filling, staged.checkpoint({ number: 1, dataBytes: 1, articles: 1 })].map(rejection);
    await failed;
    for (const error of await Promise.all(waiting))
      expect(error).toMatchObject({ diagnostic: '2-219', fault: 'local' });
    expect(await rejection(staged.deliver({ path: 'x', overwrite: false }))).toMatchObject({ diagnostic: '2-219' });
    await expect(staged.drained()).rejects.toMatchObject({ diagnostic: '2-219' });
    expect(staged.write(batchOf('more'))).toBe(false);
    expect(failures).toHaveLength(1);
    expect(failures[0]!.message).toContain('free space or enlarge the volume');
    await staged.discard();
    expect(filesIn(mounted.path)).toEqual([]);
  });

  test.each([
    ['writev', 'ENOSPC', '2-219'],
    ['writev', 'EDQUOT', '2-219'],
    ['writev', 'EIO', '2-213'],
    ['datasync', 'EIO', '2-213'],
    ['datasync', 'ENOSPC', '2-219'],
  ] as const)('%s %s: %s', async (operation, code, diagnostic) => {
    const directory = sandbox();
    const files = failing(() => ({ [operation]: () => Promise.reject(osError(code)) }));
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text, files });
    const failures: Error[] = [];
    staged.onFailure = (error) => failures.push(error);
    staged.write(batchOf('x'));
    const points = [1, 2].map((number) => rejection(staged.checkpoint({ number, dataBytes: 1, articles: 1 })));
    for (const error of await Promise.all(points)) {
      expect(error).toMatchObject({ diagnostic, fault: 'local', cause: expect.objectContaining({ code }) });
      expect(error.peerText).not.toContain(directory);
    }
    await expect(staged.deliver({ path: 'x', overwrite: false })).rejects.toMatchObject({ diagnostic });
    await expect(staged.drained()).rejects.toMatchObject({ diagnostic });
    expect(failures).toHaveLength(1);
    await staged.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('an article too long: the peer is at fault, and the session is not called from inside write', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text });
    const told = new Promise<Error>((resolve) => (staged.onFailure = resolve));
    let inside = true;
    void told.then(() => expect(inside).toBe(false));
    expect(staged.write(batchOf('x'.repeat(81)))).toBe(false);
    inside = false;
    expect(await told).toMatchObject({ diagnostic: '2-220', fault: 'remote' });
    await staged.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('data that end inside an article are not delivered', async () => {
    const directory = sandbox();
    const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format: text });
    staged.write(piecesOf([], ['half']));
    await expect(staged.deliver({ path: 'x', overwrite: false })).rejects.toMatchObject({
      diagnostic: '3-311',
      fault: 'remote',
    });
    await staged.discard();
    expect(filesIn(directory)).toEqual([]);
  });
});

test('a staging directory that is a file is refused', async () => {
  const directory = sandbox();
  writeFileSync(join(directory, '.pesit'), '');
  await expect(StagedFile.create({ receiveDirectory: directory, key: 'k', format: text })).rejects.toMatchObject({
    diagnostic: '2-211',
    got: 'file',
  });
});

test('many files at once share one staging directory', async () => {
  const directory = sandbox();
  mkdirSync(join(directory, '.pesit'));
  await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      const staged = await StagedFile.create({ receiveDirectory: directory, key: `k${i}`, format: text });
      staged.write(batchOf(`content ${i}`));
      await staged.checkpoint({ number: 1, dataBytes: 1, articles: 1 });
      await staged.deliver({ path: `day/file-${i}`, overwrite: false });
    }),
  );
  expect(filesIn(directory)).toHaveLength(20);
  expect(readFileSync(join(directory, 'day/file-7'), 'utf8')).toBe('content 7\n');
});
