import { mkdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { FileSource, LocalFileStore, LocalFileStores, formatOf } from '../src/index.js';
import { MemoryObjectStore, describeFileStore } from '../src/testing/index.js';
import type { StoreUnderTest } from '../src/testing/index.js';
import { drain } from './support/articles.js';
import { filesIn, rejection, sandbox } from './support/sandbox.js';

const text = (read: () => Buffer): string | undefined => {
  try {
    return read().toString();
  } catch {
    return undefined;
  }
};

/** @param root under which the store is known; the files lie in `directory` */
const local = (directory: string, root = directory): StoreUnderTest => ({
  store: new LocalFileStores().at(root),
  put: (name, content, modified = 1000) => {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    utimesSync(path, modified, modified);
    return Promise.resolve();
  },
  remove: (name) => {
    rmSync(join(directory, name));
    return Promise.resolve();
  },
  contentOf: (name) => Promise.resolve(text(() => readFileSync(join(directory, name)))),
  outside: join(dirname(directory), 'other'),
});

describeFileStore('a local directory', () => Promise.resolve(local(sandbox())));

describeFileStore('a local directory behind a link', () => {
  const link = join(sandbox(), 'link');
  const directory = sandbox();
  symlinkSync(directory, link);
  return Promise.resolve(local(directory, link));
});

describeFileStore('objects that are put whole, without rename', () => {
  const store = new MemoryObjectStore(sandbox());
  return Promise.resolve({
    store,
    put: (name, content, modified) => {
      store.store(name, Buffer.from(content), modified);
      return Promise.resolve();
    },
    remove: (name) => {
      store.forget(name);
      return Promise.resolve();
    },
    contentOf: (name) => Promise.resolve(store.contentOf(name)?.toString()),
    outside: 'object://other/x',
  });
});

test('what they can do', () => {
  const all = { renameIsAtomic: true, rangedReads: true, partialWritesSurvive: true, serverSideMove: true };
  expect(new LocalFileStore('/').capabilities).toEqual(all);
  const none = { renameIsAtomic: false, partialWritesSurvive: false, serverSideMove: false };
  expect(new MemoryObjectStore('/').capabilities).toEqual({ ...none, rangedReads: true });
});

describe('the local disk', () => {
  const directoryWith = (...names: string[]): string => {
    const directory = sandbox();
    for (const name of names) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), name);
    }
    return directory;
  };

  test('no link leads out, whether to a file or on the way to one: 2-226, or 2-211 in the last place', async () => {
    const outside = directoryWith('secret', 'below/secret');
    const directory = directoryWith('own');
    symlinkSync(join(outside, 'secret'), join(directory, 'secret'));
    symlinkSync(join(outside, 'below'), join(directory, 'below'));
    symlinkSync('own', join(directory, 'alias'));
    const store = new LocalFileStore(directory);
    for (const name of ['secret', 'below/secret', join(outside, 'secret')]) {
      expect(await rejection(store.locate(name))).toMatchObject({ diagnostic: '2-226' });
    }
    for (const path of [join(directory, 'below/secret'), join(outside, 'secret')]) {
      expect(await rejection(store.open(path))).toMatchObject({ diagnostic: '2-226' });
      expect(await rejection(store.version(path))).toMatchObject({ diagnostic: '2-226' });
    }
    for (const name of ['secret', 'alias']) {
      expect(await rejection(store.open(join(directory, name)))).toMatchObject({ diagnostic: '2-211' });
    }
    expect(await store.locate('alias')).toMatchObject({ path: join(directory, 'own'), name: 'own' });
  });

  test('a store that is one file: it and no other', async () => {
    const directory = directoryWith('one', 'other');
    const path = join(directory, 'one');
    const store = new LocalFileStore(path);
    expect(await store.find({ exactName: 'x', pattern: '*.csv' })).toMatchObject({ name: 'one', path });
    await (await store.open(path)).close();
    expect(await rejection(store.open(join(directory, 'other')))).toMatchObject({ diagnostic: '2-226' });
  });

  test('a directory is no file, nor is a missing store: nothing is left open', async () => {
    const directory = directoryWith('below/file');
    const store = new LocalFileStore(directory);
    expect(await rejection(store.open(join(directory, 'below')))).toMatchObject({ diagnostic: '2-211' });
    const missing = new LocalFileStore(join(directory, 'missing'));
    expect(await rejection(missing.open(join(directory, 'missing/x')))).toMatchObject({ diagnostic: '2-205' });
    expect(await rejection(missing.find())).toMatchObject({ diagnostic: '2-205' });
  });
});

describe('objects', () => {
  const received = async (store: MemoryObjectStore) => {
    const file = await store.receive({ key: 'k', format: formatOf({}) });
    const article = Buffer.from('received');
    file.write({ parts: [article], ends: [1], bytes: article.length });
    return file;
  };

  test('a restart reads what is left and no byte before it', async () => {
    const store = new MemoryObjectStore(sandbox());
    store.store('a', Buffer.alloc(100_000, 'x'));
    const { path } = await store.locate('a');
    const source = await FileSource.open(path, formatOf({ recordLength: 1000 }), { store, checksum: 'none' });
    await source.startAt(9, [{ from: 0, interval: 10_000, maxUnsegmentedArticle: 1000 }]);
    await drain(source, { capacity: 5000, maxUnsegmentedArticle: 1000 });
    const first = Math.min(...store.ranges.map(([position]) => position));
    expect(first).toBe(90_000);
    expect(store.ranges.reduce((sum, [, bytes]) => sum + bytes, 0)).toBe(10_000);
    await source.close();
  });

  test('a put that fails leaves the file staged: it can be delivered again, or released for another attempt', async () => {
    const store = new MemoryObjectStore(sandbox());
    const file = await received(store);
    store.failure = { error: new Error('no answer'), isStored: false };
    expect(await rejection(file.deliver({ path: 'a', overwrite: false }))).toMatchObject({ diagnostic: '2-211' });
    expect(store.contentOf('a')).toBeUndefined();
    await file.deliver({ path: 'a', overwrite: false });
    expect(store.contentOf('a')?.toString()).toBe('received');
    expect(filesIn(store.staging)).toEqual([]);
  });

  test('a put whose answer is lost: the object is not put twice, and its version says whose it is', async () => {
    const store = new MemoryObjectStore(sandbox());
    const file = await received(store);
    store.failure = { error: new Error('no answer'), isStored: true };
    expect(await rejection(file.deliver({ path: 'a', overwrite: false }))).toMatchObject({ diagnostic: '2-211' });
    expect(await rejection(file.deliver({ path: 'a', overwrite: false }))).toMatchObject({ diagnostic: '2-204' });
    const { size } = await file.prepareDelivery();
    expect(await store.version((await store.locate('a')).path)).toMatchObject({ size });
    await file.discard();
  });
});
