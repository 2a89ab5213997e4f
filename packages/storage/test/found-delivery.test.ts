import { appendFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  DeliveryNotes,
  StagedFile,
  findDelivered,
  formatOf,
  freeEmptyName,
  hashOfFile,
  nodeFiles,
} from '../src/index.js';
import type { FileOperations } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { filesIn, rejection, sandbox } from './support/sandbox.js';

const format = formatOf({});
const ONE = 'sha256:7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed';

let root: string;

beforeEach(() => {
  root = sandbox();
});

const staged = async () => {
  const file = await StagedFile.create({ receiveDirectory: root, key: 'k', format });
  file.write(batchOf('one'));
  return file;
};

describe('the delivery of a dead process', () => {
  const intended = () => ({ paths: [join(root, 'a'), join(root, 'b')], size: 3, checksum: ONE });

  test('is not there while the file is staged', async () => {
    await (await staged()).release();
    expect(await findDelivered(root, 'k', intended())).toBeUndefined();
  });

  test('is found under the name that has the staged file, whatever else has the size', async () => {
    writeFileSync(join(root, 'a'), 'two');
    const file = await staged();
    await file.deliver({ path: 'b', overwrite: false, marked: true });
    expect(await findDelivered(root, 'k', intended())).toBe(join(root, 'b'));
  });

  test('is known by its mark when the file was fetched', async () => {
    const file = await staged();
    await file.deliver({ path: 'b', overwrite: false, marked: true });
    rmSync(join(root, 'b'));
    expect(await findDelivered(root, 'k', intended())).toBe(join(root, 'a'));
  });

  test('without mark and staged file the content decides', async () => {
    writeFileSync(join(root, 'a'), 'two');
    expect(await findDelivered(root, 'k', intended())).toBeUndefined();
    writeFileSync(join(root, 'b'), 'one');
    expect(await findDelivered(root, 'k', intended())).toBe(join(root, 'b'));
    appendFileSync(join(root, 'b'), '!');
    expect(await findDelivered(root, 'k', intended())).toBeUndefined();
  });
});

describe('the hash of a file', () => {
  test('of many blocks, as of one', async () => {
    writeFileSync(join(root, 'big'), Buffer.alloc(2_097_152 + 5, 'x'));
    writeFileSync(join(root, 'a'), 'one');
    expect(await hashOfFile(join(root, 'a'))).toBe(ONE);
    expect(await hashOfFile(join(root, 'big'))).toBe(
      'sha256:0b5fac9b6c8a68521e37b170ee15633cf1291a99fc36bc085558b4b726118cd4',
    );
  });

  test('ends with the reason of its signal, and follows no link', async () => {
    writeFileSync(join(root, 'a'), 'one');
    symlinkSync(join(root, 'a'), join(root, 'link'));
    const reason = new Error('cancelled');
    await expect(hashOfFile(join(root, 'a'), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(await rejection(hashOfFile(join(root, 'link')))).toMatchObject({ diagnostic: '2-213', got: 'ELOOP' });
  });
});

test('an empty name is freed, any other stays', async () => {
  writeFileSync(join(root, 'empty'), '');
  writeFileSync(join(root, 'full'), 'x');
  expect(await freeEmptyName(join(root, 'empty'))).toBe(true);
  expect(await freeEmptyName(join(root, 'full'))).toBe(false);
  expect(await freeEmptyName(join(root, 'none'))).toBe(false);
  expect(filesIn(root)).toEqual(['full']);
});

describe('notes of deliveries', () => {
  beforeEach(() => {
    mkdirSync(join(root, '.pesit'));
  });

  test('are written, read, listed and removed', async () => {
    const notes = new DeliveryNotes(root);
    await notes.write('k', '{"longer":"than the next"}', true);
    await notes.write('k', '{}', false);
    expect(await notes.read('k')).toBe('{}');
    expect((await notes.list()).map(({ key }) => key)).toEqual(['k']);
    await notes.remove('k');
    await notes.remove('k');
    expect(await notes.read('k')).toBeUndefined();
    expect(filesIn(root)).toEqual([]);
  });

  test('a durable one is on stable storage with its name when it resolves', async () => {
    const flushed: string[] = [];
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags, mode) => {
        const file = await nodeFiles.open(path, flags, mode);
        const flush = (how: 'datasync' | 'sync') => async () => {
          await file[how]();
          flushed.push(`${how} ${path}`);
        };
        return { ...file, datasync: flush('datasync'), sync: flush('sync') };
      },
    };
    await new DeliveryNotes(root, files).write('k', '{}', true);
    expect(flushed).toEqual([`datasync ${join(root, '.pesit/k.delivery')}`, `sync ${join(root, '.pesit')}`]);
  });

  test('a directory where nothing was ever staged has none', async () => {
    expect(await new DeliveryNotes(join(root, 'none')).list()).toEqual([]);
  });
});
