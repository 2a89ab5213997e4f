import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { afterEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import { LocalFileStores, nodeFiles } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';

import { refusedWith, until, useNode } from './support/node.js';

const FILES = 5000;

/** The real file system, with a count of what was asked of it, and a gate before the names of one directory. */
const asked = { looks: 0, readings: 0, held: '', waiting: 0 };
let open = (): void => undefined;
let gate = Promise.resolve();
const files: FileOperations = {
  ...nodeFiles,
  lstat: (path) => {
    asked.looks += 1;
    return nodeFiles.lstat(path);
  },
  readdir: async (path) => {
    asked.readings += 1;
    if (path === asked.held) {
      asked.waiting += 1;
      await gate;
    }
    return nodeFiles.readdir(path);
  },
};

const hold = (directory: string): void => {
  Object.assign(asked, { held: directory, waiting: 0 });
  gate = new Promise((resolve) => (open = resolve));
};

withDatabase((harness) => {
  const node = useNode(harness, { stores: new LocalFileStores({ files }) });

  /** Files of one second each, `0` the oldest, in a directory that was left alone for a while. */
  const offer = (fileId: string, count: number): string => {
    const directory = join(node().data, fileId, 'out');
    mkdirSync(directory, { recursive: true });
    for (let i = 0; i < count; i++) {
      const path = join(directory, `file-${i}`);
      writeFileSync(path, String(i));
      utimesSync(path, 1000 + i, 1000 + i);
    }
    utimesSync(directory, 1000, 1000);
    return directory;
  };

  afterEach(() => {
    open();
    asked.held = '';
  });

  describe('5,000 files to read', () => {
    test('the oldest each time, looking at all of them and asking the database for a part of them once', async () => {
      offer('OUT', FILES);
      const session = await node().connect();
      const statements: string[] = [];
      node().database.knex.on('query', ({ sql }: { sql: string }) => {
        if (sql.includes('from sent_files')) statements.push(sql);
      });
      const read = async () => {
        Object.assign(asked, { looks: 0, readings: 0 });
        return (await node().receive(session, 'OUT')).toString();
      };
      expect(await read()).toBe('0');
      expect(asked).toMatchObject({ looks: FILES + 4, readings: 1 });
      for (let i = 1; i < 20; i++) {
        expect(await read()).toBe(String(i));
        expect(asked).toMatchObject({ looks: 4, readings: 0 });
      }
      expect(statements).toHaveLength(20);
      // As if all but the newest had been read.
      await node().database.knex.raw(
        `insert into sent_files (partner_id, path, size, mtime_ns, transfer)
         select 'ACME', :directory || '/file-' || i, length(i::text), (1000 + i) * 1000000000::numeric, 1
         from generate_series(20, :last) i`,
        { directory: join(node().data, 'OUT/out'), last: FILES - 2 },
      );
      statements.length = 0;
      expect(await read()).toBe(String(FILES - 1));
      expect(asked.readings).toBe(0);
      expect(statements.length).toBeLessThanOrEqual(8);
      await expect(read()).rejects.toEqual(refusedWith('2-205'));
    });

    test('a partner whose look takes long waits for itself alone, with all its sessions', async () => {
      const slow = offer('OUT', 3);
      offer('BOTH', FILES);
      await node().partner('OTHER');
      const sessions = await Promise.all([node().connect(), node().connect(), node().connect()]);
      hold(slow);
      const reading = sessions.map((session) => node().receive(session, 'OUT'));
      await until(() => (asked.waiting > 0 ? true : undefined));
      const other = await node().connect({ requester: 'OTHER' });
      for (const expected of ['0', '1', '2']) expect((await node().receive(other, 'BOTH')).toString()).toBe(expected);
      expect(asked.waiting).toBe(1);
      open();
      expect((await Promise.all(reading)).map(String).sort()).toEqual(['0', '1', '2']);
      expect(asked.waiting).toBe(1);
    });
  });
});
