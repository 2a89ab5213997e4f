import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, renameSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { FileSource, LocalFileStore, formatOf, nodeFiles } from '../src/index.js';
import type { FileOperations, RecordFormat } from '../src/index.js';
import { FakeBurst, drain } from './support/articles.js';
import type { BurstLimits } from './support/articles.js';
import { rejection, sandbox } from './support/sandbox.js';

const formats = {
  BU: (recordLength: number) => formatOf({ recordLength }),
  BV: (recordLength: number) => formatOf({ recordFormat: 128, recordLength }),
  BF: (recordLength: number) => formatOf({ recordFormat: 0, recordLength }),
  TV: (recordLength: number) => formatOf({ text: true, recordFormat: 128, recordLength }),
  TF: (recordLength: number) => formatOf({ text: true, recordFormat: 0, recordLength }),
};

function fileWith(content: string | Buffer): string {
  const path = join(sandbox(), 'source');
  writeFileSync(path, content, 'latin1');
  return path;
}

async function articlesOf(content: string, format: RecordFormat, limits: BurstLimits = {}): Promise<string[]> {
  const source = await FileSource.open(fileWith(content), format);
  const { articles } = await drain(source, limits);
  expect(source.checksum).toBe(`sha256:${createHash('sha256').update(content, 'latin1').digest('hex')}`);
  await source.close();
  return articles.map((article) => article.toString('latin1'));
}

describe('the articles of a file (pesit-e.md §6)', () => {
  test.each<[keyof typeof formats, number, string, string[]]>([
    ['BU', 4, 'abcdefghij', ['abcd', 'efgh', 'ij']],
    ['BU', 4, 'abcdefgh', ['abcd', 'efgh']],
    ['BU', 4, '', []],
    ['BU', 4, 'a\r\n\n', ['a\r\n\n']],
    ['BV', 3, 'abcd', ['abc', 'd']],
    ['BF', 4, 'abcdefgh', ['abcd', 'efgh']],
    ['BF', 4, '', []],
    ['TV', 10, 'one\ntwo\n', ['one', 'two']],
    ['TV', 10, 'one\r\ntwo\r\n', ['one', 'two']],
    ['TV', 10, 'one\ntwo', ['one', 'two']],
    ['TV', 10, '\n\r\n\n', [' ', ' ', ' ']],
    ['TV', 10, 'a\n\nb\n', ['a', ' ', 'b']],
    ['TV', 10, '', []],
    ['TV', 10, '\n', [' ']],
    ['TV', 10, 'a\rb\n', ['a\rb']],
    ['TV', 10, 'a\r\r\n', ['a\r']],
    ['TV', 10, 'a\r', ['a\r']],
    ['TV', 10, 'p1\f\np2\x1a', ['p1\f', 'p2\x1a']],
    ['TV', 10, ' a \n', [' a ']],
    ['TV', 4, 'abcd\r\nefgh\n', ['abcd', 'efgh']],
    ['TF', 4, 'ab\ncd  \n\nefgh', ['ab  ', 'cd  ', '    ', 'efgh']],
    ['TF', 4, '', []],
    ['TF', 4, 'é\n', ['é   ']],
  ])('%s of %i: %j → %j', async (name, recordLength, content, articles) => {
    expect(await articlesOf(content, formats[name](recordLength))).toEqual(articles);
    // One article a burst, and every article in slots of two bytes.
    expect(await articlesOf(content, formats[name](recordLength), { capacity: 1 })).toEqual(articles);
    if (name !== 'BU' && name !== 'BV') {
      expect(await articlesOf(content, formats[name](recordLength), { maxUnsegmentedArticle: 2 })).toEqual(articles);
    }
  });

  test('BU and BV articles are never longer than what travels unsegmented', async () => {
    expect(await articlesOf('abcdefg', formats.BU(100), { maxUnsegmentedArticle: 3 })).toEqual(['abc', 'def', 'g']);
    expect(await articlesOf('abcdefg', formats.BV(100), { maxUnsegmentedArticle: 3 })).toEqual(['abc', 'def', 'g']);
  });

  test('lines across the blocks in which the file is read', async () => {
    const lines = Array.from({ length: 9000 }, (_, i) => `${i}:`.padEnd(i % 97, 'x'));
    expect(await articlesOf(lines.join('\r\n'), formats.TV(97), { capacity: 50_000 })).toEqual(lines);
    const long = ['a', 'b', 'c', 'd'].map((letter, i) => letter.repeat(65_535 - i));
    const many = [...long, ...long, ...long];
    expect(await articlesOf(many.join('\n'), formats.TV(65_535), { capacity: 200_000 })).toEqual(many);
  });

  test('a line end cut in two by the blocks', async () => {
    for (const before of [262_143, 262_144, 262_145]) {
      const line = 'y'.repeat(1000);
      const head = 'x'.repeat(before % 1000 || 1000);
      const lines = [head, ...Array<string>(Math.ceil(before / 1002)).fill(line), 'end'];
      expect(await articlesOf(lines.join('\r\n'), formats.TV(1000), { capacity: 1e6 })).toEqual(lines);
    }
  });
});

describe('bursts', () => {
  test('a closed window takes nothing and loses nothing', async () => {
    for (const name of ['BU', 'TV'] as const) {
      const source = await FileSource.open(fileWith('abc\ndef\n'), formats[name](4));
      const closed = new FakeBurst();
      closed.reserve = () => false;
      expect(await source.fill(closed)).toBe(true);
      expect(await source.fill(closed)).toBe(true);
      expect((await drain(source)).articles.join('|')).toBe(name === 'TV' ? 'abc|def' : 'abc\n|def\n');
      await source.close();
    }
  });

  test('an empty file: false at once, nothing reserved', async () => {
    for (const name of ['BU', 'BF', 'TV', 'TF'] as const) {
      const source = await FileSource.open(fileWith(''), formats[name](4));
      const burst = new FakeBurst();
      expect(await source.fill(burst)).toBe(false);
      expect(burst.slots).toEqual([]);
      expect(await source.fill(burst)).toBe(false);
      await source.close();
    }
  });

  test('false comes with the last article, not after it', async () => {
    const source = await FileSource.open(fileWith('abcdefgh'), formats.BU(4));
    const burst = new FakeBurst({ capacity: 8 });
    expect(await source.fill(burst)).toBe(false);
    expect(burst.articles().join('|')).toBe('abcd|efgh');
    await source.close();
  });

  test.each([100, 1000])(
    'one read a burst of binary data, however many articles of %i it takes',
    async (recordLength) => {
      const content = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i % 251));
      let reads = 0;
      const files: FileOperations = {
        ...nodeFiles,
        open: async (path, flags) => {
          const file = await nodeFiles.open(path, flags);
          return { ...file, readv: (buffers, position) => (reads++, file.readv(buffers, position)) };
        },
      };
      const source = await FileSource.open(fileWith(content), formats.BU(recordLength), {
        store: new LocalFileStore('/', { files }),
      });
      const { bursts, articles } = await drain(source, { capacity: 25_000, maxUnsegmentedArticle: 5000 });
      expect(Buffer.concat(articles).equals(content)).toBe(true);
      expect(bursts).toBe(4);
      expect(reads).toBe(4);
      await source.close();
    },
  );

  test.each([
    ['BU', 8],
    ['BU', 300],
    ['BF', 8],
    ['BF', 300],
    ['TV', 8],
  ] as const)('%s of %i: short reads are continued', async (name, recordLength) => {
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags) => {
        const file = await nodeFiles.open(path, flags);
        // Seldom a whole buffer, and sometimes more than one.
        const readv = async (buffers: readonly Buffer[], position: number) => {
          const bytes = Math.min(
            1 + ((position * 7) % 331),
            buffers.reduce((sum, { length }) => sum + length, 0),
          );
          const block = Buffer.alloc(bytes);
          const read = await file.readv([block], position);
          let from = 0;
          for (const buffer of buffers) from += block.copy(buffer, 0, from, Math.min(read, from + buffer.length));
          return read;
        };
        return { ...file, readv };
      },
    };
    const lines = Array.from({ length: 300 }, (_, i) => String(i).padStart(7, '.'));
    const content = lines.map((line) => `${line}\n`).join('');
    const source = await FileSource.open(fileWith(content), formats[name](recordLength), {
      store: new LocalFileStore('/', { files }),
    });
    const { articles } = await drain(source, { capacity: 1600, maxUnsegmentedArticle: 400 });
    expect(articles.join('')).toBe(name === 'TV' ? lines.join('') : content);
    expect(source.checksum).toBe(`sha256:${createHash('sha256').update(content).digest('hex')}`);
    await source.close();
  });
});

test('text read a byte at a time: every place where a block can end', async () => {
  const files: FileOperations = {
    ...nodeFiles,
    open: async (path, flags) => {
      const file = await nodeFiles.open(path, flags);
      return { ...file, readv: ([first], position) => file.readv([first!.subarray(0, 1)], position) };
    },
  };
  const source = await FileSource.open(fileWith('abcd\r\n\r\nefgh\r\n\nij'), formats.TV(4), {
    store: new LocalFileStore('/', { files }),
  });
  expect((await drain(source)).articles.join('|')).toBe('abcd| |efgh| |ij');
  await source.close();
});

describe('the table of points', () => {
  test('BU: where each point lies in the file', async () => {
    const source = await FileSource.open(fileWith('x'.repeat(100)), formats.BU(7));
    const { lastPoint } = await drain(source, { interval: 20, capacity: 30 });
    // Two articles of 7 fit into 20: a point every 14 bytes; the last 2 bytes fit behind the sixth.
    expect(lastPoint).toBe(6);
    expect([0, 1, 2, 6, 7, -1].map((number) => source.points.offsetOf(number))).toEqual([
      0,
      14,
      28,
      84,
      undefined,
      undefined,
    ]);
    expect(source.points.last).toBe(6);
    await source.close();
  });

  test('TV: file bytes, line ends included', async () => {
    const source = await FileSource.open(fileWith('aaaa\r\nbbbb\n\ncccc\ndd'), formats.TV(10));
    await drain(source, { interval: 5, capacity: 6 });
    expect([1, 2, 3].map((number) => source.points.offsetOf(number))).toEqual([6, 12, 17]);
    await source.close();
  });

  test('a point placed by the very call that had no room for the article is not lost', async () => {
    const source = await FileSource.open(fileWith('abcdefgh'), formats.BU(4));
    const burst = new FakeBurst({ interval: 4, capacity: 4 });
    expect(await source.fill(burst)).toBe(true);
    expect(burst.lastPoint).toBe(1);
    expect(source.points.offsetOf(1)).toBe(4);
    await source.close();
  });
});

describe('what cannot be sent', () => {
  test('a missing file: 2-205', async () => {
    const path = join(sandbox(), 'missing');
    const error = await rejection(FileSource.open(path, formats.BU(4)));
    expect(error).toMatchObject({ diagnostic: '2-205', fault: 'local' });
    expect(error.message).toContain(path);
    expect(error.peerText).toBe('cannot open the file to send: no such file or directory');
  });

  test.each(['directory', 'link', 'other'])('a %s: 2-211', async (kind) => {
    const directory = sandbox();
    const path = join(directory, kind);
    if (kind === 'directory') mkdirSync(path);
    if (kind === 'link') symlinkSync(fileWith('x'), path);
    // A FIFO that nobody writes: an ordinary open would wait for ever.
    if (kind === 'other') execFileSync('mkfifo', [path]);
    expect(await rejection(FileSource.open(path, formats.BU(4)))).toMatchObject({ diagnostic: '2-211', got: kind });
  });

  test('a device: 2-211', async () => {
    expect(await rejection(FileSource.open('/dev/null', formats.BU(4)))).toMatchObject({ diagnostic: '2-211' });
  });

  test('BF, unfilled record: refused before anything is sent', async () => {
    const error = await rejection(FileSource.open(fileWith('abcdefghij'), formats.BF(4)));
    expect(error).toMatchObject({ diagnostic: '2-200', fault: 'local', expected: 'a multiple of 4', got: '10' });
    expect(error.peerText).toBe(
      'unfilled record: 10 bytes are no multiple of the record length 4, the last record has 2',
    );
  });

  test.each<[keyof typeof formats, string]>([
    ['TV', 'ok\nabcde\n'],
    ['TF', 'ok\nabcde'],
    ['TV', 'ok\nabcd\r'],
    ['TV', `ok\n${'x'.repeat(600_000)}`],
    ['TF', `ok\n${'x'.repeat(600_000)}\n`],
  ])('%s: a line longer than the record length: 2-220 with its number', async (name, content) => {
    const source = await FileSource.open(fileWith(content), formats[name](4));
    const error = await rejection(drain(source, { capacity: 1 }));
    expect(error).toMatchObject({ diagnostic: '2-220', fault: 'local', peerText: expect.stringContaining('line 2 ') });
    await source.close();
  });

  test('an endless line is refused without reading the file', async () => {
    let read = 0;
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags) => {
        const file = await nodeFiles.open(path, flags);
        return {
          ...file,
          readv: async (buffers, position) => {
            const bytes = await file.readv(buffers, position);
            read += bytes;
            return bytes;
          },
        };
      },
    };
    const path = fileWith('');
    truncateSync(path, 1024 ** 3);
    const source = await FileSource.open(path, formats.TV(80), { store: new LocalFileStore('/', { files }) });
    await rejection(drain(source));
    expect(read).toBeLessThan(300_000);
    await source.close();
  });
});

describe('a source that changes while it is sent: 2-215, and why', () => {
  const content = `${'abcd'.padEnd(99, 'x')}\n`.repeat(10_000);
  const changes: [string, (path: string) => void, RegExp][] = [
    ['grows', (path) => appendFileSync(path, 'more'), /1000000 bytes expected, 1000004 found/],
    ['shrinks', (path) => truncateSync(path, 700_000), /1000000 bytes expected, 700000 found/],
    ['is touched', (path) => utimesSync(path, 1, 1), /modification time/],
  ];
  for (const name of ['BU', 'BF', 'TV', 'TF'] as const) {
    test.each(changes)(`${name}: it %s`, async (_, change, reason) => {
      const path = fileWith(content);
      const source = await FileSource.open(path, formats[name](100));
      expect(await source.fill(new FakeBurst({ capacity: 1000 }))).toBe(true);
      change(path);
      const error = await rejection(drain(source, { capacity: 100_000 }));
      expect(error).toMatchObject({ diagnostic: '2-215', fault: 'local', message: expect.stringMatching(reason) });
      expect(error.peerText).not.toContain(path);
      expect(source.checksum).toBeUndefined();
      await source.close();
    });
  }

  test('another file renamed over it changes nothing: the opened one is sent', async () => {
    const path = fileWith('first');
    const source = await FileSource.open(path, formats.BU(10));
    writeFileSync(`${path}.new`, 'second');
    renameSync(`${path}.new`, path);
    expect((await drain(source)).articles.join()).toBe('first');
    await source.close();
  });

  test('a read that fails is 2-213', async () => {
    const broken = () => Promise.reject(Object.assign(new Error('bad sector'), { code: 'EIO' }));
    const files: FileOperations = {
      ...nodeFiles,
      open: async (path, flags) => ({ ...(await nodeFiles.open(path, flags)), readv: broken }),
    };
    for (const name of ['BU', 'TV'] as const) {
      const source = await FileSource.open(fileWith('x'), formats[name](10), {
        store: new LocalFileStore('/', { files }),
      });
      expect(await rejection(drain(source))).toMatchObject({ diagnostic: '2-213', fault: 'local', got: 'EIO' });
      await source.close();
    }
  });
});

test('close may be called again', async () => {
  const source = await FileSource.open(fileWith('x'), formats.BU(10), { checksum: 'none' });
  expect(source).toMatchObject({ size: 1, checksum: undefined });
  expect(source.modified.getTime()).toBeGreaterThan(0);
  await drain(source);
  expect(source.checksum).toBeUndefined();
  await Promise.all([source.close(), source.close()]);
  await source.close();
});
