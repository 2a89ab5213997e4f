import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { beforeEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import { MemoryObjectStore } from '@pesit-node/storage/testing';

import { bytes, refusedWith, useNode } from './support/node.js';

/** One for each directory: files are staged there, and nothing else is. */
const objects = new Map<string, MemoryObjectStore>();
const storeAt = (location: string): MemoryObjectStore => {
  const store = objects.get(location) ?? new MemoryObjectStore(location, `${location}/`);
  objects.set(location, store);
  return store;
};

withDatabase((harness) => {
  const node = useNode(harness, { stores: { at: storeAt } });
  const storeOf = (path: string): MemoryObjectStore => storeAt(join(node().data, path));

  beforeEach(async () => {
    objects.clear();
    await mkdir(join(node().data, 'OUT/out'), { recursive: true });
  });

  /** Virtual files whose files are objects: nothing of the exchange needs to know. */
  describe('a partner', () => {
    test('reads objects, the oldest that is new to it each time', async () => {
      const content = bytes(300_000);
      storeOf('OUT/out').store('newer', Buffer.from('newer'), 2000);
      storeOf('OUT/out').store('older', content, 1000);
      const session = await node().connect();
      expect((await node().receive(session, 'OUT')).equals(content)).toBe(true);
      expect((await node().receive(session, 'OUT')).toString()).toBe('newer');
      await expect(node().receive(session, 'OUT')).rejects.toEqual(refusedWith('2-205'));
      storeOf('OUT/out').store('older', Buffer.from('put anew'), 1000);
      expect((await node().receive(session, 'OUT')).toString()).toBe('put anew');
      expect((await node().receive(session, 'OUT/newer')).toString()).toBe('newer');
    });

    test('writes objects, each put whole when it has come whole', async () => {
      const content = bytes(300_000);
      const session = await node().connect();
      await node().send(session, 'IN', content);
      const record = await node().ended();
      expect(record).toMatchObject({ status: 'COMPLETED', size: 300_000 });
      expect(storeOf('IN/in').contentOf(String(record['filename']))?.equals(content)).toBe(true);
      const directory = join(node().data, 'IN/in');
      expect([await readdir(directory), await readdir(join(directory, '.pesit'))]).toEqual([['.pesit'], []]);
    });

    test('is told when a put fails, and nothing is left of it that counts as received', async () => {
      const session = await node().connect();
      storeOf('IN/in').failure = { error: new Error('no answer'), isStored: false };
      await expect(node().send(session, 'IN', bytes(100))).rejects.toEqual(refusedWith('2-211'));
      const record = await node().ended();
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-211' });
      expect(storeOf('IN/in').contentOf(String(record['filename']))).toBeUndefined();
    });
  });
});
