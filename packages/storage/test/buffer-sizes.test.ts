/** Reads and writes of files that are bounded: the content is the same. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { FileSource, LocalFileStore, StagedFile, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations } from '../src/index.js';
import { batchOf, drain } from './support/articles.js';
import { sandbox } from './support/sandbox.js';

/** The real file system, which notes the bytes of each read and write of a file of that name. */
const measured = (name: RegExp): { readonly files: FileOperations; readonly sizes: number[] } => {
  const sizes: number[] = [];
  const files: FileOperations = {
    ...nodeFiles,
    open: async (path, flags, mode) => {
      const file = await nodeFiles.open(path, flags, mode);
      if (!name.test(path)) return file;
      const noted = async (bytes: Promise<number>): Promise<number> => {
        sizes.push(await bytes);
        return bytes;
      };
      return {
        readv: (buffers, position) => noted(file.readv(buffers, position)),
        writev: (buffers, position) => noted(file.writev(buffers, position)),
        datasync: () => file.datasync(),
        sync: () => file.sync(),
        truncate: (size) => file.truncate(size),
        stat: () => file.stat(),
        close: () => file.close(),
      };
    },
  };
  return { files, sizes };
};

test('a received file is written in pieces of that size, articles that are longer cut', async () => {
  const directory = sandbox();
  const { files, sizes } = measured(/\.part$/);
  const format = formatOf({ recordLength: 30_000 });
  const staged = await StagedFile.create({ receiveDirectory: directory, key: 'k', format, files, writeSize: 5000 });
  const articles = [20_000, 100, 100, 12_345, 30_000].map((length, index) => Buffer.alloc(length, index + 1));
  for (const article of articles) if (!staged.write(batchOf(article))) await staged.drained();
  await staged.deliver({ path: 'done', overwrite: false });
  expect(readFileSync(join(directory, 'done')).equals(Buffer.concat(articles))).toBe(true);
  expect([Math.max(...sizes), sizes.reduce((sum, size) => sum + size, 0)]).toEqual([5000, 62_545]);
});

test('a partner waits for the disk when twice as much waits', async () => {
  const format = formatOf({ recordLength: 1000 });
  const staged = await StagedFile.create({ receiveDirectory: sandbox(), key: 'k', format, writeSize: 5000 });
  const article = batchOf(Buffer.alloc(1000));
  const taken = Array.from({ length: 10 }, () => staged.write(article));
  expect(taken).toEqual([...Array<boolean>(9).fill(true), false]);
  await staged.discard();
});

test('a text file is read in pieces of that size', async () => {
  const path = join(sandbox(), 'text');
  const lines = Array.from({ length: 2000 }, (_, index) => `line ${index}`);
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
  const { files, sizes } = measured(/text$/);
  const format = formatOf({ recordLength: 100, text: true });
  const source = await FileSource.open(path, format, { store: new LocalFileStore('/', { files }), readSize: 4096 });
  const sent = (await drain(source)).articles.map(String);
  await source.close();
  expect(sent).toEqual(lines);
  expect([Math.max(...sizes), sizes.length > 4]).toEqual([4096, true]);
});

test('so is the part before a restart point, for its hash', async () => {
  const path = join(sandbox(), 'binary');
  writeFileSync(path, Buffer.alloc(50_000, 7));
  const { files, sizes } = measured(/binary$/);
  const source = await FileSource.open(path, formatOf({ recordLength: 1000 }), {
    store: new LocalFileStore('/', { files }),
    readSize: 4096,
  });
  const pacing = { from: 0, interval: 10_000, maxUnsegmentedArticle: 1000 };
  expect(await source.startAt(3, [pacing])).toMatchObject({ fileOffset: 30_000 });
  await source.close();
  expect([Math.max(...sizes), sizes.length]).toEqual([4096, 8]);
});
