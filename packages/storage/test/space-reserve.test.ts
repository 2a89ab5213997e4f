import { describe, expect, test } from '@jest/globals';
import { SpaceReserve, StagedFile, formatOf } from '../src/index.js';
import { batchOf } from './support/articles.js';
import { rejection, sandbox } from './support/sandbox.js';

const MB = 1024 * 1024;
const reserveOf = (bytes: number, free: () => number) =>
  new SpaceReserve({ bytes: () => bytes, free: () => Promise.resolve(free()) });

describe('something new', () => {
  test.each([
    ['one byte beside the reserve', 100, 101, undefined],
    ['the reserve alone', 100, 100, '2-201'],
    ['less than the reserve', 100, 1, '2-201'],
    ['nothing, and no reserve: the disk itself will say so', 0, 0, undefined],
  ])('%s is free', async (_name, bytes, free, diagnostic) => {
    const admitted = reserveOf(bytes, () => free).admit('/data/in');
    if (diagnostic === undefined) expect(await admitted).toEqual({ free, reserve: bytes, usable: free - bytes });
    else {
      expect(await rejection(admitted)).toMatchObject({
        ...{ diagnostic, fault: 'local', peerText: 'too little space is free for now: try again later' },
        message: expect.stringMatching(
          /^\d+ bytes are free on the volume of \/data\/in, and 100 must stay \(storage\.reserve\)/,
        ),
      });
    }
  });

  test('the real volume is asked', async () => {
    const { free } = await new SpaceReserve({ bytes: () => 1 }).admit(sandbox());
    expect(free).toBeGreaterThan(0);
    const all = new SpaceReserve({ bytes: () => Number.MAX_SAFE_INTEGER });
    expect(await rejection(all.admit(sandbox()))).toMatchObject({ diagnostic: '2-201' });
  });
});

test('a file that grows is stopped with 2-219 within 16 MB, and goes on from its point when there is space', async () => {
  let free = 1000 * MB;
  const reserve = reserveOf(500 * MB, () => free);
  const directory = sandbox();
  const options = { receiveDirectory: directory, key: 'k', format: formatOf({ recordLength: 65_535 }) };
  const file = await StagedFile.create({ ...options, growth: { watch: reserve.watch(directory) } });
  const failed = new Promise((resolve) => (file.onFailure = resolve));
  const block = batchOf(Buffer.alloc(65_535));
  const write = async (bytes: number): Promise<void> => {
    for (const end = file.size + bytes; file.size < end;) if (!file.write(block)) await file.drained();
  };
  await write(17 * MB);
  await file.checkpoint({ number: 1, dataBytes: file.dataBytes, articles: file.articles });
  const { size } = file;
  free = 500 * MB;
  const more = rejection(write(17 * MB));
  expect(await failed).toMatchObject({ diagnostic: '2-219', condition: 'disk full' });
  expect(await more).toMatchObject({ diagnostic: '2-219' });
  await file.release();
  const { point, file: again } = await StagedFile.resume(options);
  expect(point).toMatchObject({ number: 1, fileOffset: size });
  await again.discard();
});
