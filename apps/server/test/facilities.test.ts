import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describe, expect, test } from '@jest/globals';
import { PesitError, toEbcdic } from '@pesit-node/protocol';
import type { Parameters } from '@pesit-node/protocol';
import { withDatabase } from '@pesit-node/service/testing';

import { bytes, refusedWith, until, useNode } from './support/node.js';

const PRECONNECT_PASSWORD = 'PR3C0N#1';
const LINES = Buffer.from('a line\n'.repeat(60_000));

withDatabase((harness) => {
  const node = useNode(harness);

  const partner = () => node().call('get', '/api/v1/config/partners/ACME');

  describe('messages', () => {
    const request = { fileIdentifier: { fileType: 0xffff, fileName: 'IN' }, transferId: 33 };

    test('are records with their text', async () => {
      const session = await node().connect();
      await session.sendMessage({
        request: {
          ...request,
          message: Buffer.from('Grüße, zweimal\r\n'),
          creationDate: '261121093015',
          originalSender: 'FIRST',
          finalReceiver: 'LAST',
        },
      });
      const [record, ...more] = await node().history();
      expect(more).toEqual([]);
      expect(record).toMatchObject({
        type: 'MESSAGE',
        status: 'COMPLETED',
        diagnostic: '0-000',
        partnerId: 'ACME',
        direction: 'RECEIVE',
        virtualFileId: 'IN',
        transferId: 33,
        fileType: 0xffff,
        size: 18,
        creationDate: '2026-11-21T09:30:15',
        originalSender: 'FIRST',
        finalReceiver: 'LAST',
        endTime: expect.any(String),
      });
      expect(record).not.toHaveProperty('message');
      expect(await node().call('get', `/api/v1/transfers/${record!.id}`)).toMatchObject({
        ...record,
        message: 'Grüße, zweimal\r\n',
      });
      expect(await node().history('&type=MESSAGE')).toHaveLength(1);
      expect(await node().history('&type=FILE')).toHaveLength(0);
      await node().send(session, 'IN', bytes(10));
      expect(await partner()).toMatchObject({ transferCount: 1 });
    });

    test.each<[string, Buffer, number | undefined, string]>([
      ['EBCDIC', toEbcdic('HELLO'), 1, 'HELLO'],
      ['ISO 8859-1', Buffer.from('caf\xe9', 'latin1'), undefined, 'café'],
      ['bytes', Buffer.from([0, 1, 2]), 0, 'base64:AAEC'],
      ['nothing', Buffer.alloc(0), undefined, ''],
      ['64 KB', Buffer.alloc(65_536, 'x'), undefined, 'x'.repeat(65_536)],
    ])('of %s', async (_, message, dataCode, shown) => {
      const session = await node().connect();
      await session.sendMessage({ request: { ...request, message, dataCode } });
      const [record] = await node().history();
      expect((await node().call('get', `/api/v1/transfers/${record!.id}`))['message']).toBe(shown);
    });

    test('are replied to when a reply is asked for', async () => {
      const session = await node().connect();
      const asked = await session.sendMessage({
        request: { ...request, replyExpected: true, message: Buffer.from('?') },
      });
      const [record] = await node().history();
      expect(String(asked.reply)).toBe(`received as ${record!.id}`);
      const plain = await session.sendMessage({ request: { ...request, message: Buffer.from('.') } });
      expect(plain.reply).toBeUndefined();
    });

    test('are refused to a partner that may not send: 2-226', async () => {
      await node().call('put', '/api/v1/config/partners/ACME', { accessType: 'READ' });
      const session = await node().connect();
      await expect(session.sendMessage({ request })).rejects.toEqual(refusedWith('2-226'));
      expect(session.usable).toBe(true);
    });
  });

  describe('compression', () => {
    test.each(['horizontal', 'vertical', 'both'] as const)('%s, both ways', async (compression) => {
      await node().virtualFile('TEXT', {
        text: true,
        compression,
        recordLength: 80,
        receiveFilenamePattern: '${uuid}',
      });
      const session = await node().connect();
      const text = Buffer.from(`${'x'.repeat(70)}\n`.repeat(9000));
      await node().send(session, 'TEXT', text, { compression: 3, recordLength: 80 }, { text: true, recordLength: 80 });
      expect((await node().received('TEXT')).map((file) => file.equals(text))).toEqual([true]);
      const [record] = await node().history();
      expect(record).toMatchObject({ status: 'COMPLETED', compression, size: text.length, articles: 9000 });
      expect(record!['bytesTransferred']).toBeLessThan(text.length / 10);
      await writeFile(join(node().data, 'TEXT/out/data'), text);
      const read = await node().receive(session, 'TEXT', { compression: 3 });
      expect(read.length).toBe(9000 * 70);
      expect((await node().history())[0]).toMatchObject({ status: 'COMPLETED', compression, direction: 'SEND' });
    });

    test('is not used where the virtual file does not allow it', async () => {
      const session = await node().connect();
      await node().send(session, 'IN', LINES, { compression: 3 });
      expect((await node().history())[0]).toMatchObject({ compression: 'none', bytesTransferred: LINES.length });
    });

    test('a compressed file that was interrupted goes on, and one that is complete is recognised', async () => {
      await node().call('put', '/api/v1/config/files/IN', { compression: 'horizontal' });
      const session = await node().connect({ syncPoints: undefined });
      await node().send(session, 'IN', LINES, { transferId: 9, compression: 1 });
      await node().send(session, 'IN', LINES, { transferId: 9, compression: 1, restarted: true });
      await node().send(session, 'IN', LINES, { transferId: 9, restarted: true });
      expect(await node().received('IN')).toHaveLength(1);
      expect(await node().history()).toHaveLength(1);
    });
  });

  test.each([
    [{}, '001b 0010 0000 ..02 0003 6f6e65 0003 74776f 000bc004'],
    [{ multiArticle: false }, '001d 0009 0000 ..00 6f6e65 0009 0000 ..00 74776f 000bc004'],
    [{ concatenation: false }, '0010 0010 0000 ..02 0003 6f6e65 0003 74776f 000b 000bc004'],
  ])('%j of a partner that reads: two short articles, and the end of the data', async (layout, wanted) => {
    await node().call('put', '/api/v1/config/partners/ACME', layout);
    await node().virtualFile('TEXT', { text: true, recordLength: 80 });
    await writeFile(join(node().data, 'TEXT/out/data'), 'one\ntwo\n');
    const received: Buffer[] = [];
    const session = await node().connect();
    session.observe((direction, seen) => {
      if (direction === 'received') received.push(Buffer.from(seen));
    });
    expect((await node().receive(session, 'TEXT')).toString()).toBe('onetwo');
    expect(Buffer.concat(received).toString('hex')).toMatch(new RegExp(wanted.replaceAll(' ', '')));
  });

  describe('EBCDIC', () => {
    test('text is translated on its way in when PI 16 says so, and on its way out when the virtual file does', async () => {
      await node().virtualFile('TEXT', { text: true, receiveFilenamePattern: 'text' });
      const session = await node().connect();
      await node().send(session, 'TEXT', Buffer.from('ONE\nTWO\n'), { dataCode: 1 }, { text: true, codePage: '037' });
      expect(await readFile(join(node().data, 'TEXT/in/text'), 'utf8')).toBe('ONE\nTWO\n');
      await writeFile(join(node().data, 'TEXT/out/data'), 'ONE\nTWO\n');
      expect((await node().receive(session, 'TEXT')).toString()).toBe('ONETWO');
      await node().call('put', '/api/v1/config/files/TEXT', { ebcdic: true, codePage: '297' });
      await writeFile(join(node().data, 'TEXT/out/data'), 'a{b\n');
      const read = await node().receive(session, 'TEXT');
      expect(read.toString('hex')).toBe('815182');
    });

    test.each([
      ['a text file', { text: true }, 0],
      ['a text file in EBCDIC', { text: true, ebcdic: true }, 1],
      ['a binary file', {}, 2],
    ])('what a partner reads says so in PI 16: %s', async (_, settings, dataCode) => {
      await node().virtualFile('CODE', settings);
      await writeFile(join(node().data, 'CODE/out/data'), 'ONE\n');
      const session = await node().connect();
      const dataCodes: (number | undefined)[] = [];
      const request = { fileIdentifier: { fileType: 0, fileName: 'CODE' }, transferId: 0, maxEntitySize: 4096 };
      const open = (attributes: Parameters): Promise<never> => {
        dataCodes.push(attributes.dataCode);
        return Promise.reject(new PesitError('seen', { fault: 'local', diagnostic: '2-216' }));
      };
      await expect(session.receiveFile({ request, open, stored: () => Promise.resolve() })).rejects.toThrow('seen');
      expect(dataCodes).toEqual([dataCode]);
    });

    test('a binary file is taken as it is', async () => {
      const content = bytes(500);
      await node().send(await node().connect(), 'IN', content, { dataCode: 1 });
      expect(await node().received('IN')).toEqual([content]);
    });
  });

  describe('pre-connection', () => {
    const open = (preconnection?: { identifier: string; password: string }) => node().connect({ preconnection });

    const configure = () =>
      node().call('put', '/api/v1/config/partners/ACME', {
        preconnectId: 'XPRE',
        preconnectPassword: PRECONNECT_PASSWORD,
      });

    test('of a partner without one is acknowledged, whatever it says', async () => {
      const session = await open({ identifier: 'ANY', password: 'ANY' });
      expect(session.usable).toBe(true);
    });

    test('with the right identifier and password', async () => {
      await configure();
      const session = await open({ identifier: 'XPRE', password: PRECONNECT_PASSWORD });
      expect(session.usable).toBe(true);
    });

    test('with a wrong password: NAK0', async () => {
      await configure();
      await expect(open({ identifier: 'XPRE', password: 'wrong' })).rejects.toMatchObject({ diagnostic: '3-304' });
      const reasons = node()
        .log.entries()
        .map(({ reason }) => reason);
      expect(reasons.join()).toContain('the pre-connection of "XPRE" has a wrong password');
    });

    test.each([[undefined], [{ identifier: 'OTHER', password: PRECONNECT_PASSWORD }]])(
      'a partner that has to come by its own does not come by %j: 3-304',
      async (preconnection) => {
        await configure();
        await expect(open(preconnection)).rejects.toEqual(refusedWith('3-304'));
      },
    );

    test('shows no password anywhere', () => {
      const said = [...node().answers, ...node().log.lines].join('\n');
      expect(said).not.toContain(PRECONNECT_PASSWORD);
    });
  });

  describe('what was seen of a partner', () => {
    test('is nothing before its first session', async () => {
      expect(await partner()).toMatchObject({ lastSeen: null });
    });

    test('is shown by the names of the specification', async () => {
      const session = await node().connect({ crc: true });
      await node().send(session, 'IN', bytes(10), { maxEntitySize: 5000 });
      const seen = await until(async () => {
        const { lastSeen } = (await partner()) as { lastSeen: { maxEntitySize?: number } | null };
        return lastSeen?.maxEntitySize === undefined ? undefined : lastSeen;
      });
      expect(seen).toEqual({
        listener: 'NODE1',
        remoteAddress: '127.0.0.1',
        dialect: 'length-prefixed',
        preconnection: null,
        version: 2,
        syncPoints: { intervalKb: 64, window: 4 },
        resynchronisation: false,
        crc: true,
        accessType: 2,
        freeMessage: null,
        maxEntitySize: 5000,
        product: null,
      });
    });
  });
});
