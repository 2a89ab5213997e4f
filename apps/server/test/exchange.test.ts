import { mkdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, until, useNode } from './support/node.js';

withDatabase((harness) => {
  const node = useNode(harness);

  describe('a partner writes', () => {
    test.each([0, 1, 4096, 1_000_000])('a file of %i bytes', async (size) => {
      const content = bytes(size);
      const session = await node().connect();
      await node().send(session, 'IN', content, { fileLabel: 'report.csv', freeMessage: Buffer.from('hello') });
      expect(await node().received('IN')).toEqual([content]);
      const [record, ...more] = await node().history();
      expect(more).toEqual([]);
      expect(record).toMatchObject({
        partnerId: 'ACME',
        direction: 'RECEIVE',
        virtualFileId: 'IN',
        status: 'COMPLETED',
        type: 'FILE',
        size,
        bytesTransferred: size,
        articles: Math.ceil(size / 4096),
        transferId: 101,
        listener: 'NODE1',
        node: 'node-a',
        remoteAddress: '127.0.0.1',
        attempts: 1,
        restartable: false,
        checksum: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        diagnostic: '0-000',
        errorMessage: null,
        label: 'report.csv',
        freeMessage: 'hello',
      });
      expect(await node().call('get', `/api/v1/transfers/${record!.id}`)).toMatchObject({
        ...record,
        ...{ diagnosticText: 'success', whatToDo: null, attemptList: [{ number: 1, bytesTransferred: size }] },
      });
      expect(await node().call('get', '/api/v1/config/partners/ACME')).toMatchObject({
        transferCount: 1,
        lastConnection: expect.stringMatching(/^\d{4}-/),
      });
      expect(await node().call('get', '/api/v1/servers/NODE1/status')).toMatchObject({
        status: 'RUNNING',
        activeConnections: 1,
        totalTransfers: 1,
      });
    });

    test('several files in one session, also after one that was refused', async () => {
      const session = await node().connect();
      const contents = [bytes(10), bytes(200_000), bytes(3)];
      for (const content of contents) {
        await node().send(session, 'IN', content);
        await expect(node().send(session, 'NOWHERE', content)).rejects.toEqual(refusedWith('2-226'));
      }
      expect((await node().received('IN')).map(({ length }) => length).sort()).toEqual([10, 200_000, 3]);
      expect((await node().history()).map(({ status }) => status)).toEqual(
        ['COMPLETED', 'FAILED', 'COMPLETED', 'FAILED', 'COMPLETED', 'FAILED'].reverse(),
      );
    });

    test('under the name of the pattern, in its sub-directories', async () => {
      await node().virtualFile('DAILY', { receiveFilenamePattern: '${partner}/${virtualFile}-${transferId}.txt' });
      const session = await node().connect();
      await node().send(session, 'DAILY', Buffer.from('abc'), { transferId: 7 });
      expect(await readFile(join(node().data, 'DAILY/in/ACME/DAILY-7.txt'), 'utf8')).toBe('abc');
      expect((await node().history())[0]!['filename']).toBe('ACME/DAILY-7.txt');
    });

    test('into the directory of the listener, or the default, when the virtual file has none', async () => {
      await node().call('post', '/api/v1/config/files', { fileId: 'PLAIN', receiveFilenamePattern: 'plain-${uuid}' });
      const session = await node().connect();
      await node().send(session, 'PLAIN', Buffer.from('abc'));
      expect(await node().files('from-partners')).toEqual([expect.stringMatching(/^plain-/)]);
      await node().call('put', '/api/v1/servers/NODE1', { receiveDirectory: 'of-listener' });
      const later = await node().connect();
      await node().send(later, 'PLAIN', Buffer.from('abc'));
      expect(await node().files('of-listener')).toHaveLength(1);
    });

    test('text, which becomes lines', async () => {
      await node().virtualFile('TEXT', { text: true, receiveFilenamePattern: 'text' });
      const session = await node().connect();
      await node().send(session, 'TEXT', Buffer.from('one\ntwo\n'), {}, { text: true });
      expect(await readFile(join(node().data, 'TEXT/in/text'), 'utf8')).toBe('one\ntwo\n');
    });
  });

  describe('a partner may not write', () => {
    const refused = async (diagnostic: string, fileName: string, more: object = {}, words = /./) => {
      const session = await node().connect();
      await expect(node().send(session, fileName, bytes(10), more)).rejects.toEqual(refusedWith(diagnostic));
      expect(session.usable).toBe(true);
      const [record] = await node().history();
      expect(record).toMatchObject({ status: 'FAILED', diagnostic, errorMessage: expect.stringMatching(words) });
      return record!;
    };

    test('an unknown virtual file: 2-226', () => refused('2-226', 'NOWHERE', {}, /NOWHERE.*not configured/));

    test('a disabled virtual file: 2-226', async () => {
      await node().call('put', '/api/v1/config/files/IN', { enabled: false });
      await refused('2-226', 'IN', {}, /disabled/);
    });

    test('a virtual file for reading: 2-226', () => refused('2-226', 'OUT', {}, /direction SEND/));

    test('without the right to: 2-226', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { accessType: 'READ' });
      await refused('2-226', 'IN', {}, /may not write/);
    });

    test('a name that does not match the pattern: 2-226, by the label or by the resulting name', async () => {
      await node().virtualFile('CSV', { filenamePattern: '*.csv', receiveFilenamePattern: '${uuid}.csv' });
      await refused('2-226', 'CSV', { fileLabel: 'a.txt' }, /a\.txt.*\*\.csv/);
      await refused('2-226', 'CSV', { fileLabel: 'dir.csv/a.txt' });
      const session = await node().connect();
      await node().send(session, 'CSV', bytes(1), { fileLabel: '/home/x/a.csv' });
      await node().send(session, 'CSV', bytes(1));
      await node().call('put', '/api/v1/config/files/CSV', { receiveFilenamePattern: '${uuid}.txt' });
      await refused('2-226', 'CSV');
    });

    test('a file type other than 0: 2-226', () =>
      refused('2-226', 'IN', { fileIdentifier: { fileType: 1, fileName: 'IN' } }, /file type 1/));

    test('longer records than the virtual file takes: 2-220; none set, none refused', async () => {
      await node().virtualFile('SHORT', { recordLength: 80 });
      await refused('2-220', 'SHORT', { recordLength: 81 });
      const session = await node().connect();
      await node().send(session, 'IN', bytes(50_000), { recordLength: 30_000 });
    });

    test('fixed records to a variable file: 2-226', async () => {
      await node().virtualFile('VARIABLE', { recordFormat: 128 });
      await refused('2-226', 'VARIABLE', { recordFormat: 0 });
    });

    test('a name that exists: 2-204, unless overwrite', async () => {
      await node().virtualFile('ONE', { receiveFilenamePattern: 'one' });
      const session = await node().connect();
      await node().send(session, 'ONE', Buffer.from('first'));
      await refused('2-204', 'ONE', {}, /one exists already/);
      expect(await readFile(join(node().data, 'ONE/in/one'), 'utf8')).toBe('first');
      await node().call('put', '/api/v1/config/files/ONE', { overwrite: true });
      await node().send(session, 'ONE', Buffer.from('second'));
      expect(await readFile(join(node().data, 'ONE/in/one'), 'utf8')).toBe('second');
    });

    test('into a directory that is missing: 2-211', async () => {
      await rm(join(node().data, 'IN'), { recursive: true });
      await refused('2-211', 'IN', {}, /no such file or directory/);
    });

    test('into what is no directory: 2-211', async () => {
      await rm(join(node().data, 'IN/in'), { recursive: true });
      await writeFile(join(node().data, 'IN/in'), '');
      await refused('2-211', 'IN');
    });

    test('more than the disk has room for: 2-206', () =>
      refused('2-206', 'IN', { maxReservationKb: 0xffff_ffff }, /are free in/));
  });

  describe('a partner reads', () => {
    const offer = async (name: string, content: Buffer | string, secondsOld = 0): Promise<string> => {
      const path = join(node().data, 'OUT/out', name);
      await writeFile(path, content);
      const time = Date.now() / 1000 - secondsOld;
      await utimes(path, time, time);
      return path;
    };

    test.each([0, 1, 4096, 1_000_000])('a file of %i bytes', async (size) => {
      const content = bytes(size);
      await offer('data.bin', content);
      const session = await node().connect();
      expect((await node().receive(session, 'OUT')).equals(content)).toBe(true);
      const [record] = await node().history();
      expect(record).toMatchObject({
        direction: 'SEND',
        status: 'COMPLETED',
        filename: 'data.bin',
        virtualFileId: 'OUT',
        size,
        bytesTransferred: size,
        checksum: expect.stringMatching(/^sha256:/),
      });
      expect(record!['transferId']).toBeGreaterThan(0);
      expect(await node().call('get', '/api/v1/config/partners/ACME')).toMatchObject({ transferCount: 1 });
    });

    test('the oldest that it does not have yet, each once, until it changes', async () => {
      await offer('b', 'second', 10);
      await offer('a', 'third', 5);
      await offer('c', 'first', 20);
      const session = await node().connect();
      const read = async () => (await node().receive(session, 'OUT')).toString();
      expect([await read(), await read(), await read()]).toEqual(['first', 'second', 'third']);
      await expect(read()).rejects.toEqual(refusedWith('2-205'));
      await offer('b', 'changed', 9);
      expect(await read()).toBe('changed');
      await expect(read()).rejects.toEqual(refusedWith('2-205'));
      await node().call('post', '/api/v1/config/partners', { partnerId: 'OTHER', password: 'w0rd-9#x' });
      const other = await node().connect({ requester: 'OTHER', password: 'w0rd-9#x' });
      expect((await node().receive(other, 'OUT')).toString()).toBe('first');
    });

    test('the file named PI 12, as often as it likes', async () => {
      await offer('old', 'old', 100);
      await offer('OUT', 'named');
      const session = await node().connect();
      expect((await node().receive(session, 'OUT')).toString()).toBe('named');
      expect((await node().receive(session, 'OUT')).toString()).toBe('named');
    });

    test('one file that sendFile names', async () => {
      const path = await offer('only.txt', 'only');
      await node().call('put', '/api/v1/config/files/OUT', { sendFile: path });
      const session = await node().connect();
      expect((await node().receive(session, 'OUT')).toString()).toBe('only');
    });

    test('what matches the pattern', async () => {
      await offer('a.txt', 'no', 10);
      await offer('b.csv', 'yes');
      await node().call('put', '/api/v1/config/files/OUT', { filenamePattern: '*.csv' });
      const session = await node().connect();
      expect((await node().receive(session, 'OUT')).toString()).toBe('yes');
    });

    test('different files in sessions at the same time', async () => {
      await offer('1', bytes(300_000), 10);
      await offer('2', bytes(200_000), 5);
      const sessions = await Promise.all([node().connect(), node().connect()]);
      const read = await Promise.all(sessions.map((session) => node().receive(session, 'OUT')));
      expect(read.map(({ length }) => length).sort()).toEqual([200_000, 300_000]);
    });

    test('keeping the identifier that it chose, else one from the sequence, which begins anew behind 2^24 - 1', async () => {
      await offer('1', 'x', 3);
      await offer('2', 'x', 2);
      await offer('3', 'x', 1);
      const session = await node().connect();
      await node().receive(session, 'OUT', { transferId: 4711 });
      await node().database.knex.raw("select setval('transfer_ids', 16777214)");
      await node().receive(session, 'OUT');
      await node().receive(session, 'OUT');
      expect((await node().history()).map(({ transferId }) => transferId)).toEqual([1, 16_777_215, 4711]);
    });
  });

  describe('a partner may not read', () => {
    const refused = async (diagnostic: string, fileName: string, words: RegExp) => {
      const session = await node().connect();
      await expect(node().receive(session, fileName)).rejects.toEqual(refusedWith(diagnostic));
      expect(session.usable).toBe(true);
      const [record] = await node().history();
      expect(record).toMatchObject({ status: 'FAILED', direction: 'SEND', diagnostic });
      expect(record!.errorMessage).toMatch(words);
    };

    test('an unknown virtual file: 2-205', () => refused('2-205', 'NOWHERE', /not configured/));

    test('a disabled virtual file: 2-205', async () => {
      await node().call('put', '/api/v1/config/files/OUT', { enabled: false });
      await refused('2-205', 'OUT', /disabled/);
    });

    test('a virtual file for writing: 2-226', () => refused('2-226', 'IN', /direction RECEIVE/));

    test('without the right to: 2-226', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { allowedOperations: ['WRITE'] });
      await refused('2-226', 'OUT', /may not read/);
    });

    test('where there is no file: 2-205', () => refused('2-205', 'OUT', /no file for ACME/));

    test('where there is no directory: 2-205', async () => {
      await rm(join(node().data, 'OUT'), { recursive: true });
      await refused('2-205', 'OUT', /OUT/);
    });

    test('an unfilled record: 2-200', async () => {
      await node().call('put', '/api/v1/config/files/OUT', { recordFormat: 0, recordLength: 80 });
      await mkdir(join(node().data, 'OUT/out'), { recursive: true });
      await writeFile(join(node().data, 'OUT/out/x'), bytes(81));
      await refused('2-200', 'OUT', /unfilled record/);
    });
  });
});

/** What a node does by itself from time to time, and could do just while a test counts, is put off. */
withDatabase((harness) => {
  const HOUR = 3_600_000;
  const node = useNode(harness, { licenseTimes: { refreshEveryMs: HOUR }, progressMs: HOUR });

  test('a small file is written with three statements: what it may, that it begins, that it is complete', async () => {
    const session = await node().connect();
    await node().send(session, 'IN', bytes(10));
    // Of the first file alone: what it has shown of the partner. Of the start: the first sweep.
    await until(async () => {
      const { lastSeen } = (await node().call('get', '/api/v1/config/partners/ACME')) as {
        lastSeen: { readonly maxEntitySize?: number } | null;
      };
      return lastSeen?.maxEntitySize;
    });
    await node().node.housekeeping.stop();
    const { knex } = node().database;
    const statements: string[] = [];
    const record = ({ sql }: { sql: string }): number => statements.push(sql);
    knex.on('query', record);
    await node().send(session, 'IN', bytes(10));
    knex.off('query', record);
    const words = [/^\s*select f\.file_id/, /^\s*insert into transfers/, /^\s*with open as/];
    expect(statements.filter((sql) => words.some((word) => word.test(sql)))).toHaveLength(3);
    const others = statements.filter((sql) => !words.some((word) => word.test(sql)));
    // Of the node, not of the file: the watch over the database, the leases.
    expect(others.filter((sql) => /transfers|partners|virtual_files/.test(sql))).toEqual([]);
  });
});
