/** Whatever fails here, the peer reads a text about it, and no path of this machine (PI 29). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { FileSource, LocalFileStore, StagedFile, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations, OpenFile } from '../src/index.js';
import { FakeBurst, batchOf } from './support/articles.js';
import { sandbox } from './support/sandbox.js';

const text = formatOf({ text: true, recordLength: 80 });
/** Those of the table of remedies, and one that nobody has thought of. */
const CODES = ['EACCES', 'EBUSY', 'EIO', 'ELOOP', 'ENOENT', 'ENOSPC', 'EROFS', 'ESTALE', 'EUCLEAN'];

/** The real file system, whose operation number `nth` fails, from 0; `done` counts them. */
function failingAt(nth: number, code: string): { files: FileOperations; done: () => number; open: Set<string> } {
  let count = 0;
  const open = new Set<string>();
  const guarded = <T extends object>(operations: T, where: string): T =>
    Object.fromEntries(
      Object.entries(operations).map(([name, operation]: [string, unknown]) => [
        name,
        typeof operation !== 'function'
          ? operation
          : async (...values: unknown[]): Promise<unknown> => {
              if (name === 'close') open.delete(where);
              else if (count++ === nth) {
                throw Object.assign(new Error(`${code}: no luck, ${name} '${where || String(values[0])}'`), { code });
              }
              const result: unknown = await (operation as (...all: unknown[]) => Promise<unknown>)(...values);
              if (name !== 'open') return result;
              const file = `${String(values[0])} ${open.size} ${count}`;
              open.add(file);
              return guarded(result as OpenFile, file);
            },
      ]),
    ) as T;
  return { files: guarded(nodeFiles, ''), done: () => count, open };
}

/** A file that is received, interrupted, goes on, goes back to a point and is delivered below a directory of its own. */
async function receive(directory: string, files: FileOperations): Promise<void> {
  const options = { receiveDirectory: directory, key: 'k', format: text, files };
  const point = { number: 1, dataBytes: 3, articles: 1 };
  const staged = await StagedFile.create(options);
  try {
    staged.write(batchOf('one'));
    await staged.checkpoint(point);
  } finally {
    await staged.release();
  }
  const { file } = await StagedFile.resume(options);
  try {
    file.write(batchOf('two'));
    await file.checkpoint({ number: 2, dataBytes: 6, articles: 2 });
    await file.goBack(point);
    file.write(batchOf('six'));
    await file.deliver({ path: 'sub/out', overwrite: false, marked: true });
  } finally {
    await file.discard();
  }
}

/** A file that is sent from its second point on. */
async function send(directory: string, files: FileOperations): Promise<void> {
  const path = join(directory, 'x');
  writeFileSync(path, 'one\ntwo\nsix\n');
  const source = await FileSource.open(path, text, { store: new LocalFileStore('/', { files }) });
  try {
    await source.fill(new FakeBurst());
    await source.hashed();
  } finally {
    await source.close();
  }
}

describe.each([
  ['a file that is received', receive],
  ['a file that is sent', send],
])('%s', (_, run) => {
  test.each(CODES)('%s of any operation', async (code) => {
    const whole = failingAt(-1, code);
    await run(sandbox(), whole.files);
    let failures = 0;
    for (let nth = 0; nth < whole.done(); nth += 1) {
      const directory = sandbox();
      const { files, open } = failingAt(nth, code);
      const error = await run(directory, files).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect([nth, [...open]]).toEqual([nth, []]);
      if (error === undefined) continue;
      failures += 1;
      expect(error).toBeInstanceOf(PesitError);
      const { peerText = '' } = error as PesitError;
      // `input/output` is no path.
      const told = { nth, peerText, path: /(?:^|[\s'"(])\/.*|\.pesit/.exec(peerText)?.[0] };
      expect(told).toEqual({ nth, peerText: expect.stringMatching(/^.{10,}$/), path: undefined });
    }
    expect(failures).toBeGreaterThan(whole.done() / 3);
  });
});
