import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type { ArticleSource, Burst } from '@pesit-node/protocol';
import { StorageError } from '../errors.js';
import { FileSource } from '../file-source.js';
import type { FileStore, ReceivedFile } from '../file-store.js';
import { STAGING_DIRECTORY } from '../path-safety.js';
import { formatOf } from '../record-format.js';
import type { SendableFile } from '../sendable-file.js';

export interface StoreUnderTest {
  readonly store: FileStore;
  /** Puts a file there by other means. @param modified seconds since the epoch */
  readonly put: (name: string, content: string, modified?: number) => Promise<void>;
  /** Takes a file away by other means. */
  readonly remove: (name: string) => Promise<void>;
  /** The content under a name, seen by other means; undefined: nothing. */
  readonly contentOf: (name: string) => Promise<string | undefined>;
  /** A name that no peer may use to leave the store, besides those that are tried for every store. */
  readonly outside: string;
}

const BINARY = formatOf({ recordLength: 4096 });
const OUTSIDE = ['../x', 'a/../../x', '/etc/passwd', 'a\0b'];

/** Everything a `FileStore` promises. @param open an empty store, for one test */
export const describeFileStore = (kind: string, open: () => Promise<StoreUnderTest>): void => {
  describe(`a file store: ${kind}`, () => {
    let under: StoreUnderTest;
    let store: FileStore;

    beforeEach(async () => {
      under = await open();
      ({ store } = under);
    });

    const namesStaged = async () => readdir(join(store.staging, STAGING_DIRECTORY)).catch(() => []);

    describe('finds a file to send', () => {
      test('by its exact name, whatever the rest says', async () => {
        await under.put('older', '1', 1000);
        await under.put('PAYMENTS', '12345678', 2000);
        const none = { pattern: '*.csv', wanted: () => Promise.resolve(new Set<never>()), take: () => false };
        expect(await store.find({ exactName: 'PAYMENTS', ...none })).toMatchObject({
          name: 'PAYMENTS',
          size: 8,
          modified: new Date(2_000_000),
          mtimeNs: 2_000_000_000_000n,
        });
      });

      test('else the oldest that matches; of one age the first by name', async () => {
        await under.put('b.csv', 'b', 1000);
        await under.put('a.csv', 'a', 1000);
        await under.put('c.csv', 'c', 2000);
        await under.put('x.txt', 'x', 1);
        expect(await store.find({ exactName: 'NONE', pattern: '*.csv' })).toMatchObject({ name: 'a.csv' });
        expect(await store.find()).toMatchObject({ name: 'x.txt' });
        expect(await store.find({ pattern: '*.xml' })).toBeUndefined();
      });

      test('that is wanted and taken, from the oldest on', async () => {
        for (const [i, name] of ['a', 'b', 'c', 'd'].entries()) await under.put(name, name, 1000 + i);
        const offered: string[] = [];
        const wanted = (files: readonly SendableFile[]) =>
          Promise.resolve(new Set(files.filter(({ name }) => name !== 'a')));
        const take = ({ name }: SendableFile) => {
          offered.push(name);
          return name === 'c';
        };
        expect(await store.find({ wanted, take })).toMatchObject({ name: 'c' });
        expect(offered).toEqual(['b', 'c']);
        expect(await store.find({ take: () => false })).toBeUndefined();
      });

      test('again as soon as it is another version, and one that came', async () => {
        await under.put('a', 'a', 1000);
        const sent = new Set<string>();
        const of = ({ name, size, mtimeNs }: SendableFile) => `${name} ${size} ${mtimeNs}`;
        const wanted = (files: readonly SendableFile[]) =>
          Promise.resolve(new Set(files.filter((file) => !sent.has(of(file)))));
        const next = async () => {
          const file = await store.find({ wanted });
          if (file !== undefined) sent.add(of(file));
          return file?.name;
        };
        expect([await next(), await next()]).toEqual(['a', undefined]);
        await under.put('a', 'anew', 1000);
        expect([await next(), await next()]).toEqual(['a', undefined]);
        await under.put('b', 'b', 1);
        expect([await next(), await next()]).toEqual(['b', undefined]);
      });

      test('never a hidden one, nor one below it', async () => {
        await under.put('.hidden', 'x', 1);
        await under.put('below/file', 'x', 1);
        expect(await store.find()).toBeUndefined();
        for (const name of ['.hidden', 'below', 'below/file', '', '.', '..', ...OUTSIDE]) {
          expect(await store.find({ exactName: name, pattern: 'no file' })).toBeUndefined();
          expect(await store.findNamed(name)).toBeUndefined();
        }
      });

      test('by its name alone, if it matches', async () => {
        await under.put('a.txt', 'a');
        await under.put('b.txt', 'b');
        expect(await store.findNamed('b.txt')).toMatchObject({ name: 'b.txt', size: 1 });
        expect(await store.findNamed('b.txt', '*.csv')).toBeUndefined();
        expect(await store.findNamed('c.txt')).toBeUndefined();
      });
    });

    describe('knows what a name stands for', () => {
      test('a file, at any depth, by its name or its path; a directory; nothing', async () => {
        await under.put('below/file', 'four', 3000);
        const version = expect.objectContaining({ size: 4, mtimeNs: 3_000_000_000_000n }) as unknown;
        const file = await store.locate('below/file');
        expect(file).toEqual({ path: file.path, name: 'below/file', kind: 'file', version });
        expect(await store.locate(file.path)).toEqual(file);
        expect(await store.version(file.path)).toEqual(version);
        expect(await store.locate('below')).toMatchObject({ name: 'below', kind: 'directory', version: undefined });
        const nothing = await store.locate('nothing');
        expect(nothing).toMatchObject({ name: 'nothing', kind: 'nothing', version: undefined });
        expect(await store.version(nothing.path)).toBeUndefined();
      });

      test('but not of one that leads out: 2-226', async () => {
        for (const name of [...OUTSIDE, under.outside]) await refused('2-226', store.locate(name));
        await refused('2-226', store.version(under.outside));
        await refused('2-226', store.open(under.outside));
      });

      test('another version when it was written anew', async () => {
        await under.put('a', 'one', 1000);
        const { path } = (await store.findNamed('a')) as SendableFile;
        const before = await store.version(path);
        await under.put('a', 'two', 2000);
        expect(await store.version(path)).not.toEqual(before);
      });
    });

    describe('reads a file', () => {
      const opened = async (name: string) => store.open((await store.locate(name)).path);

      test('at any offset, into the buffers that are given; nothing behind its end', async () => {
        await under.put('a', '0123456789', 1000);
        const file = await opened('a');
        expect(file.version).toEqual(await store.version((await store.locate('a')).path));
        expect(await file.stat()).toEqual(file.version);
        const buffers = [Buffer.alloc(2, 'x'), Buffer.alloc(3, 'x')];
        expect(await file.readv(buffers, 4)).toBe(5);
        expect(buffers.map(String)).toEqual(['45', '678']);
        expect(await file.readv(buffers, 8)).toBe(2);
        expect(String(buffers[0])).toBe('89');
        expect(await file.readv(buffers, 0)).toBe(5);
        expect(buffers.map(String)).toEqual(['01', '234']);
        expect(await file.readv(buffers, 10)).toBe(0);
        expect(await file.readv(buffers, 11)).toBe(0);
        await file.close();
      });

      test('that is missing, or a directory: refused', async () => {
        await refused('2-205', opened('missing'));
        await under.put('below/file', 'x');
        await expect(opened('below')).rejects.toBeInstanceOf(StorageError);
      });

      test('two versions of it are never mixed', async () => {
        await under.put('a', 'before', 1000);
        const source = await FileSource.open((await store.locate('a')).path, BINARY, { store });
        await under.put('a', 'behind', 2000);
        const outcome = await read(source).catch((error: unknown) => (error as StorageError).diagnostic);
        expect(['before', '2-215']).toContain(outcome);
        await source.close();
      });

      test('as a source of articles: from the start, from a point of an earlier attempt, and that version alone', async () => {
        const content = 'abcdefghijklmnopqrstuvwxyz'.repeat(1000);
        await under.put('a', content, 1000);
        const { path } = (await store.find()) as SendableFile;
        const first = await FileSource.open(path, BINARY, { store });
        expect(await read(first)).toBe(content);
        expect(first.checksum).toBe('sha256:' + ALPHABET_THOUSANDFOLD);
        await first.close();
        const again = await FileSource.open(path, BINARY, { store, expected: first.version });
        const point = await again.startAt(2, [{ from: 0, interval: 8192, maxUnsegmentedArticle: 4096 }]);
        expect(point).toMatchObject({ number: 2, dataBytes: 16_384 });
        expect(await read(again)).toBe(content.slice(16_384));
        expect(again.checksum).toBe(first.checksum);
        await again.close();
        await under.put('a', content, 2000);
        await refused('2-215', FileSource.open(path, BINARY, { store, expected: first.version }), 'source changed');
      });
    });

    describe('receives a file', () => {
      const receive = () => store.receive({ key: 'k', format: BINARY });

      test('unseen until it is delivered, then whole', async () => {
        const file = await receive();
        write(file, 'first ');
        write(file, 'second');
        expect([file.articles, file.dataBytes]).toEqual([2, 12]);
        expect(await file.prepareDelivery()).toMatchObject({ size: 12 });
        expect(await store.find()).toBeUndefined();
        expect(await under.contentOf('a/b.dat')).toBeUndefined();
        const delivery = await file.deliver({ path: 'a/b.dat', overwrite: false });
        expect(delivery).toEqual({
          path: (await store.locate('a/b.dat')).path,
          size: 12,
          checksum: 'sha256:92088ec140fc553e4b1ede202edccb65a807bbf8a38d765a3ad38013c0f13688',
        });
        expect(await under.contentOf('a/b.dat')).toBe('first second');
        expect(await store.version(delivery.path)).toMatchObject({ size: 12 });
        await file.recorded();
        await file.discard();
        expect(await under.contentOf('a/b.dat')).toBe('first second');
        expect(await namesStaged()).toEqual([]);
      });

      test('over no other, unless it may: 2-204, and it is still staged', async () => {
        await under.put('a', 'there before');
        const file = await receive();
        write(file, 'received');
        await refused('2-204', file.deliver({ path: 'a', overwrite: false }), 'name taken');
        expect(await under.contentOf('a')).toBe('there before');
        await file.deliver({ path: 'b', overwrite: false });
        expect(await under.contentOf('b')).toBe('received');
        const other = await receive();
        write(other, 'over it');
        await other.deliver({ path: 'a', overwrite: true });
        expect(await under.contentOf('a')).toBe('over it');
        expect(await namesStaged()).toEqual([]);
      });

      test('not out of the store, nor among the staged ones: 2-226', async () => {
        const file = await receive();
        write(file, 'received');
        for (const path of ['../x', '/x', 'a/../../x', 'a\0b', '', `${STAGING_DIRECTORY}/x`]) {
          await refused('2-226', file.deliver({ path, overwrite: true }));
        }
        await file.discard();
        expect(await namesStaged()).toEqual([]);
      });

      test('and takes it back when it cannot be recorded', async () => {
        const file = await receive();
        write(file, 'received');
        await file.deliver({ path: 'a', overwrite: false, marked: true });
        expect(await file.takeBack()).toBe('taken back');
        expect(await under.contentOf('a')).toBeUndefined();
        await file.recorded();
        expect(await namesStaged()).toEqual([]);
        const again = await receive();
        write(again, 'again');
        await again.deliver({ path: 'a', overwrite: false, marked: true });
        await again.recorded();
        expect(await under.contentOf('a')).toBe('again');
      });

      test('but not one that was fetched, nor another of its name, nor one that overwrote', async () => {
        const fetched = await receive();
        write(fetched, 'fetched');
        await fetched.deliver({ path: 'a', overwrite: false, marked: true });
        await under.remove('a');
        expect(await fetched.takeBack()).toBe('fetched');
        const replaced = await receive();
        write(replaced, 'replaced');
        await replaced.deliver({ path: 'b', overwrite: false, marked: true });
        await under.remove('b');
        await under.put('b', 'of another');
        expect(await replaced.takeBack()).toBe('fetched');
        expect(await under.contentOf('b')).toBe('of another');
        const over = await receive();
        write(over, 'over it');
        await over.deliver({ path: 'b', overwrite: true, marked: true });
        expect(await over.takeBack()).toBe('stays');
        expect(await under.contentOf('b')).toBe('over it');
        await over.recorded();
        expect(await namesStaged()).toEqual([]);
      });

      test('when the final path is admitted', async () => {
        const file = await receive();
        write(file, 'received');
        const asked: string[] = [];
        const refusal = new StorageError('not there', { fault: 'local', diagnostic: '2-226', peerText: 'not there' });
        const admit = (final: string) => {
          asked.push(final);
          return Promise.reject(refusal);
        };
        await expect(file.deliver({ path: 'a', overwrite: true, admit })).rejects.toBe(refusal);
        expect(asked).toEqual([(await store.locate('a')).path]);
        expect(await under.contentOf('a')).toBeUndefined();
        await file.discard();
      });

      test('continuing from its newest point in another attempt', async () => {
        const file = await receive();
        write(file, 'kept');
        await file.checkpoint({ number: 1, dataBytes: 4, articles: 1 });
        write(file, ' lost');
        expect(await file.lastPoint()).toMatchObject({ number: 1 });
        await refused('2-207', receive(), 'staged file in use');
        await file.release();
        const { file: resumed, point } = await store.resume({ key: 'k', format: BINARY });
        expect(point).toMatchObject({ number: 1, dataBytes: 4, articles: 1 });
        write(resumed, ' and more');
        await resumed.deliver({ path: 'a', overwrite: false });
        expect(await under.contentOf('a')).toBe('kept and more');
      });

      test('from the start where nothing is staged, and back to a point within an attempt', async () => {
        const { file, point } = await store.resume({ key: 'k', format: BINARY });
        expect(point.number).toBe(0);
        write(file, 'a');
        await file.checkpoint({ number: 1, dataBytes: 1, articles: 1 });
        write(file, 'wrong');
        await file.goBack?.({ number: 1, dataBytes: 1, articles: 1 });
        write(file, 'b');
        await file.deliver({ path: 'x', overwrite: false });
        expect(await under.contentOf('x')).toBe('ab');
      });

      test('or not at all: nothing is left', async () => {
        const file = await receive();
        write(file, 'received');
        await file.discard();
        expect(await namesStaged()).toEqual([]);
        expect(await store.find()).toBeUndefined();
      });
    });
  });
};

/** SHA-256 of the alphabet a thousand times, by `sha256sum`. */
const ALPHABET_THOUSANDFOLD = '9bae04df8ee130bb0a94596b84b4ab161a2abf8a94c4e30523249fad5754ae27';

const write = (file: ReceivedFile, text: string): void => {
  const article = Buffer.from(text);
  file.write({ parts: [article], ends: [1], bytes: article.length });
};

const refused = async (diagnostic: string, work: Promise<unknown>, condition?: string): Promise<void> => {
  await expect(work).rejects.toMatchObject({ diagnostic, condition, peerText: expect.any(String) as unknown });
};

/** The rest of a source, a burst of one article after the other. */
const read = async (source: ArticleSource): Promise<string> => {
  const articles: Buffer[] = [];
  for (;;) {
    const slots: Buffer[] = [];
    const burst: Burst = {
      reserve: (length) => slots.length === 0 && slots.push(Buffer.alloc(length)) > 0,
      slots,
      lastPoint: 0,
      maxUnsegmentedArticle: 4096,
    };
    const more = await source.fill(burst);
    articles.push(...slots);
    if (!more) return Buffer.concat(articles).toString('latin1');
  }
};
