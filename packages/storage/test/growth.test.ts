/** How large a file may become while it is received, and what is asked meanwhile. */
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { StagedFile, formatOf } from '../src/index.js';
import type { GrowthRules } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { filesIn, rejection, sandbox } from './support/sandbox.js';

const text = formatOf({ text: true, recordLength: 80 });
const tooLarge = () => new PesitError('too large', { fault: 'remote', diagnostic: '2-224' });
const noRoom = () => new PesitError('no room', { fault: 'local', diagnostic: '2-219' });

/** A staged file, and what it fails with. */
const staged = async (growth: GrowthRules, key = 'k', receiveDirectory = sandbox()) => {
  const file = await StagedFile.create({ receiveDirectory, key, format: text, growth });
  return { file, failed: failureOf(file), directory: receiveDirectory };
};

const failureOf = (file: StagedFile): Promise<Error> => new Promise((resolve) => (file.onFailure = resolve));

describe('a limit', () => {
  test('is of the bytes on the disk, ends of lines included', async () => {
    const { file } = await staged({ limit: { bytes: 12, exceeded: tooLarge } });
    file.write(batchOf('hello', 'world'));
    expect(await file.deliver({ path: 'whole', overwrite: false })).toMatchObject({ size: 12 });
    const { file: other, failed, directory } = await staged({ limit: { bytes: 11, exceeded: tooLarge } });
    expect(other.write(batchOf('hello', 'world'))).toBe(false);
    expect(await failed).toMatchObject({ diagnostic: '2-224' });
    expect(await rejection(other.prepareDelivery())).toMatchObject({ diagnostic: '2-224' });
    await other.discard();
    expect(filesIn(directory)).toEqual([]);
  });

  test('counts what an earlier attempt has left', async () => {
    const { file, directory } = await staged({});
    file.write(batchOf('hello'));
    await file.checkpoint({ number: 1, dataBytes: 5, articles: 1 });
    await file.release();
    const growth = { limit: { bytes: 11, exceeded: tooLarge } };
    const resumed = await StagedFile.resume({ receiveDirectory: directory, key: 'k', format: text, growth });
    const failed = failureOf(resumed.file);
    resumed.file.write(batchOf('world'));
    expect(await failed).toMatchObject({ diagnostic: '2-224' });
    await resumed.file.discard();
  });
});

describe('a watch', () => {
  const LINE = 'x'.repeat(79);

  test('asks each time that so many bytes have come, never twice at a time', async () => {
    const asked: number[] = [];
    let answer: () => void = () => undefined;
    const check = () =>
      new Promise<void>((resolve) => {
        asked.push(file.size);
        answer = resolve;
      });
    const { file } = await staged({ watch: { everyBytes: 160, check } });
    const lines = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) file.write(batchOf(LINE));
      await Promise.resolve();
    };
    await lines(1);
    expect(asked).toEqual([]);
    await lines(10);
    expect(asked).toEqual([160]);
    answer();
    // The next byte after the answer.
    await new Promise(setImmediate);
    await lines(1);
    expect(asked).toEqual([160, 960]);
    answer();
    await file.discard();
  });

  test('that says no ends the transfer; what was acknowledged stays for a restart', async () => {
    const watch = { everyBytes: 160, check: () => Promise.reject(noRoom()) };
    const { file, failed, directory } = await staged({ watch });
    file.write(batchOf(LINE));
    await file.checkpoint({ number: 1, dataBytes: 79, articles: 1 });
    file.write(batchOf(LINE));
    expect(await failed).toMatchObject({ diagnostic: '2-219' });
    expect(file.write(batchOf(LINE))).toBe(false);
    await file.release();
    const { point, file: again } = await StagedFile.resume({ receiveDirectory: directory, key: 'k', format: text });
    expect(point).toMatchObject({ number: 1, fileOffset: 80 });
    await again.discard();
  });

  test('that says no when all has come changes nothing', async () => {
    let refuse: () => void = () => undefined;
    const check = () => new Promise<void>((_, reject) => (refuse = () => reject(noRoom())));
    const { file } = await staged({ watch: { everyBytes: 80, check } });
    file.write(batchOf(LINE));
    await file.prepareDelivery();
    refuse();
    await new Promise(setImmediate);
    expect(await file.deliver({ path: 'whole', overwrite: false })).toMatchObject({ size: 80 });
  });
});
