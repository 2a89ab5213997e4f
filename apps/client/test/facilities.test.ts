import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import { refusal } from './support/partner.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const AT_ONCE = { attempts: 3, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };
/** Compresses well, in both ways, and differs from point to point. */
const LINES = Buffer.from(
  Array.from({ length: 6000 }, (_, n) => `${String(n * 7919).padStart(12, ' ')} ${'-'.repeat(n % 70)}\n`).join(''),
);

withDatabase((harness) => {
  const world = useWorld(harness);

  const sendFile = async (service: Service, content: Buffer, fields: object = {}) => {
    await writeFile(join(service.data, 'send/f'), content);
    const request = { server: 'bank', virtualFile: 'V', filename: 'f', ...fields };
    return (await service.api.post('/transfers/send?wait=90', request)).body;
  };

  describe('compression', () => {
    test.each(['horizontal', 'vertical', 'both'] as const)(
      '%s: fewer bytes, the same file, both ways',
      async (compression) => {
        const partner = await world.partner({ compression: 3, files: { X: LINES } });
        const service = await world.service();
        await world.remote(service, partner.port);
        const sent = await sendFile(service, LINES, { compression, recordLength: 500 });
        expect(sent).toMatchObject({ status: 'COMPLETED', size: LINES.length });
        expect(sent.bytesTransferred).toBeLessThan(LINES.length);
        expect(partner.written[0]!.content.equals(LINES)).toBe(true);
        const received = await world.receive(service, { compression });
        expect(received).toMatchObject({ status: 'COMPLETED', size: LINES.length });
        expect(received.bytesTransferred).toBeLessThan(LINES.length);
        expect((await readFile(received.localPath as string)).equals(LINES)).toBe(true);
      },
    );

    test('of the server, unless the request says otherwise; a partner that allows none gets none', async () => {
      const partner = await world.partner({ compression: 1 });
      const service = await world.service();
      await world.remote(service, partner.port, { compression: 'horizontal' });
      const bytes = async (fields: object) => (await sendFile(service, LINES, fields)).bytesTransferred as number;
      expect(await bytes({})).toBeLessThan(LINES.length);
      expect(await bytes({ compression: 'none' })).toBe(LINES.length);
      expect(await bytes({ compression: 'vertical' })).toBe(LINES.length);
    });

    test.each([
      ['cut in the data', [{ from: 'client', afterBytes: 40_000 }] as const, false],
      ['with its confirmation lost', [], true],
    ])('a transfer %s goes on from its last point, once', async (_name, cuts, loses) => {
      let ends = 0;
      const partner = await world.partner({
        ...{ compression: 3, restarts: true, syncPoints: { intervalKb: 4, window: 2 } },
        before: {
          endTransfer: () => {
            if (loses && ++ends === 1) proxy.drop();
          },
        },
      });
      const proxy = await world.proxy(partner.port, cuts);
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, proxy.port, { compression: 'both' });
      const record = await sendFile(service, LINES, { recordLength: 300 });
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2, pesitTransferId: 1, restartable: false });
      expect(partner.creates.map(({ restarted }) => restarted)).toEqual([undefined, 1]);
      expect(partner.written.map(({ content }) => content.equals(LINES))).toEqual([true]);
      expect(await world.filesIn(service, 'send')).toEqual(['f']);
    });
  });

  test.each<[layout: { multiArticle?: boolean; concatenation?: boolean }, dtfs: string[]]>([
    [{}, ['00100000010200036f6e65000374776f']],
    [{ multiArticle: false }, ['0009000001006f6e65', '00090000010074776f']],
    [{ multiArticle: false, concatenation: false }, ['0009000001006f6e65', '00090000010074776f']],
  ])('%j: the DTFs of two short articles', async (layout, dtfs) => {
    const server = await world.rawServer(GOOD);
    const service = await world.service();
    await world.remote(service, server.port, layout);
    const sent = await sendFile(service, Buffer.from('one\ntwo\n'), { text: true, recordLength: 80 });
    expect(sent).toMatchObject({ status: 'COMPLETED', articles: 2 });
    const data = server.arrived.filter(({ name }) => name === 'DTF' || name.startsWith('? 00'));
    // ID.DST is what the server gave itself.
    expect(
      data.map(({ fpdu }) => fpdu.toString('hex').replace(/^(.{8})../, (_, start: string) => `${start}01`)),
    ).toEqual(dtfs);
    // DTF.END shares their entity, or has its own.
    const entity = (name: string) => server.arrived.find((arrived) => arrived.name === name)?.entity;
    expect(entity('DTF') === entity('DTF.END')).toBe(layout.concatenation !== false);
  });

  describe('CRC and resynchronisation', () => {
    test('of the server or of the request: sessions with and without are not shared', async () => {
      const partner = await world.partner({ resynchronisation: true });
      const service = await world.service();
      await world.remote(service, partner.port);
      for (const fields of [{}, { crc: true }, { resync: true }, { crc: false }]) {
        expect((await world.send(service, fields)).status).toBe('COMPLETED');
      }
      expect(partner.connects.map(({ crc, resynchronisation }) => [crc, resynchronisation])).toEqual([
        [undefined, undefined],
        [1, undefined],
        [undefined, 1],
      ]);
      await service.api.put('/servers/1', { crc: true, resync: true });
      expect((await service.api.post('/servers/1/test')).body.negotiated).toMatchObject({ crc: true, resync: true });
    });
  });

  test('the pre-connection of the server, and what is wrong with it', async () => {
    const asked: unknown[] = [];
    const partner = await world.partner({
      preconnect: ({ marker, identifier, password }) => {
        asked.push([marker, identifier, password]);
        if (password !== 'Pre#Pass') return Promise.reject(refusal('3-304', 'no'));
        return Promise.resolve();
      },
    });
    const service = await world.service();
    await world.remote(service, partner.port, { preconnectId: 'NODE1', preconnectPassword: 'Pre#Pass' });
    expect((await world.send(service)).status).toBe('COMPLETED');
    await service.api.put('/servers/1', { preconnectPassword: 'Wr0ng#Pw' });
    expect(await world.send(service)).toMatchObject({
      status: 'FAILED',
      errorCode: 'AUTH_FAILED',
      diagnostic: '3-304',
    });
    expect((await service.api.post('/servers/1/test')).body).toMatchObject({
      success: false,
      errorCode: 'AUTH_FAILED',
    });
    expect(asked).toEqual([
      ['PESIT', 'NODE1', 'Pre#Pass'],
      ['PESIT', 'NODE1', 'Wr0ng#Pw'],
      ['PESIT', 'NODE1', 'Wr0ng#Pw'],
    ]);
  });

  test('what was negotiated is shown with the server, after a test and after a transfer', async () => {
    const partner = await world.partner({ syncPoints: { intervalKb: 16, window: 3 } });
    const service = await world.service();
    await world.remote(service, partner.port);
    const negotiated = {
      ...{ dialect: 'length-prefixed', version: 2, syncInterval: 16, syncWindow: 3 },
      ...{ accessType: 2, crc: false, resync: false },
    };
    expect((await service.api.post('/servers/1/test')).body.negotiated).toEqual(negotiated);
    expect((await service.api.get('/servers/1')).body).toMatchObject({ status: 'CONNECTED', negotiated });
    await service.api.put('/servers/1', { tcpipHeader: 'raw', syncInterval: 8 });
    await world.send(service);
    const changed = { ...negotiated, dialect: 'raw', syncInterval: 8 };
    await until(async () => (await service.api.get('/servers/1')).body.negotiated.dialect === 'raw');
    expect((await service.api.get('/servers/1')).body.negotiated).toEqual(changed);
  });

  test('what a server has shown of itself is kept: after a test, and the entity after a file', async () => {
    const answer = `ACONNECT 0601020703000000630b${Buffer.from('CFT 3.10   ').toString('hex')}`;
    const server = await world.rawServer({ ...GOOD, CONNECT: answer });
    const service = await world.service();
    await world.remote(service, server.port);
    await service.api.post('/servers/1/test');
    const seen = { version: 2, maxEntitySize: null, freeMessage: 'CFT 3.10', singleArticle: null, product: null };
    expect((await service.api.get('/servers/1')).body).toMatchObject({ lastSeen: seen });
    await world.send(service);
    await until(async () => (await service.api.get('/servers/1')).body.lastSeen.maxEntitySize === 4096);
  });

  test('the flags of an Axway product in PI 6 are not the version, but say whose they are', async () => {
    const server = await world.rawServer({ ...GOOD, CONNECT: 'ACONNECT 0601c20703000000630141' });
    const service = await world.service();
    await world.remote(service, server.port);
    expect((await service.api.post('/servers/1/test')).body).toMatchObject({ success: true, serverVersion: 2 });
    expect((await service.api.get('/servers/1')).body).toMatchObject({
      negotiated: { version: 2 },
      lastSeen: { version: 0xc2, product: 'an Axway product', freeMessage: 'A' },
    });
  });

  describe('EBCDIC', () => {
    const TEXT = 'ABC é\nxyz\n';
    const articles = (page: string): string[] => (page === '297' ? ['c1c2c340c0', 'a7a8a9'] : ['c1c2c34051', 'a7a8a9']);

    test.each(['037', '297'])('lines in code page %s, both ways', async (codePage) => {
      const lines = articles(codePage).map((hex) => Buffer.from(hex, 'hex'));
      const partner = await world.partner({ files: { X: lines[0]! }, dataCode: 1 });
      const service = await world.service();
      await world.remote(service, partner.port, { text: true, codePage });
      await sendFile(service, Buffer.from(TEXT, 'latin1'), { ebcdic: true });
      expect(partner.creates[0]).toMatchObject({ dataCode: 1 });
      expect(partner.written[0]!.articles.map((article) => article.toString('hex'))).toEqual(articles(codePage));
      const received = await world.receive(service);
      expect((await readFile(received.localPath as string)).toString('latin1')).toBe('ABC é\n');
    });

    test('a binary file is never translated', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port, { ebcdic: true });
      await sendFile(service, Buffer.from(TEXT));
      expect(partner.creates[0]).toMatchObject({ dataCode: 2 });
      expect(partner.written[0]!.content.toString()).toBe(TEXT);
    });
  });

  describe('free text and attributes', () => {
    test('sent as they are given, opaque bytes too, and shown in the record', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      const fields = {
        label: 'L',
        originalSender: 'FIRST',
        finalReceiver: 'LAST',
        freeMessage: 'base64:AP+A',
        creationDate: '1999-12-31T23:59:58',
      };
      expect(await world.send(service, fields)).toMatchObject({ ...fields, status: 'COMPLETED' });
      expect(partner.creates[0]).toMatchObject({
        ...{ originalSender: 'FIRST', finalReceiver: 'LAST', freeMessage: Buffer.from([0, 255, 128]) },
        logicalAttributes: { fileLabel: 'L' },
        historicalAttributes: { creationDate: '991231235958' },
      });
      const { creationDate } = await world.send(service);
      const [, ...parts] = /^20(..)-(..)-(..)T(..):(..):(..)$/.exec(creationDate as string) ?? [];
      expect(partner.creates[1]).toMatchObject({ historicalAttributes: { creationDate: parts.join('') } });
    });

    test('received from the partner', async () => {
      const partner = await world.partner({
        ...{ files: { X: Buffer.from('x') }, label: 'their name', freeMessage: Buffer.from([0, 1]) },
        creationDate: '240229120000',
      });
      const service = await world.service();
      await world.remote(service, partner.port);
      const asked = { originalSender: 'FIRST', finalReceiver: 'LAST', freeMessage: 'hello' };
      expect(await world.receive(service, asked)).toMatchObject({
        ...{ label: 'their name', freeMessage: 'base64:AAE=', originalSender: 'FIRST', finalReceiver: 'LAST' },
        creationDate: '2024-02-29T12:00:00',
      });
      expect(partner.selects[0]).toMatchObject({ ...asked, freeMessage: Buffer.from('hello') });
    });

    test('of maximal lengths and of every byte, there and back', async () => {
      const every = Buffer.from(Array.from({ length: 254 }, (_, n) => n + 2));
      const opaque = `base64:${every.toString('base64')}`;
      const partner = await world.partner({
        files: { X: Buffer.from('x') },
        label: 'é'.repeat(80),
        freeMessage: every,
      });
      const service = await world.service();
      await world.remote(service, partner.port);
      const names = { originalSender: 'F'.repeat(24), finalReceiver: 'L'.repeat(24) };
      const asked = { ...names, freeMessage: opaque };
      expect(await world.send(service, { ...asked, label: 'l'.repeat(80) })).toMatchObject({
        ...{ ...asked, label: 'l'.repeat(80), status: 'COMPLETED' },
      });
      expect(partner.creates[0]).toMatchObject({
        ...{ ...names, freeMessage: every, logicalAttributes: { fileLabel: 'l'.repeat(80) } },
      });
      expect(await world.receive(service, { ...names, freeMessage: 'déjà vu' })).toMatchObject({
        ...{ ...names, freeMessage: opaque, label: 'é'.repeat(80), status: 'COMPLETED' },
      });
      expect(partner.selects[0]).toMatchObject({ ...names, freeMessage: Buffer.from('déjà vu') });
      // As it was given.
      expect((await world.send(service, { freeMessage: 'déjà vu' })).freeMessage).toBe('déjà vu');
      for (const [field, value] of [
        ['freeMessage', 'é'.repeat(128)],
        ['label', 'l'.repeat(81)],
        ['originalSender', 'F'.repeat(25)],
        ['finalReceiver', 'L'.repeat(25)],
      ] as const) {
        const { status, body } = await service.api.post('/transfers/send', {
          ...{ server: 'bank', virtualFile: 'FILE', fileContent: 'eA==', [field]: value },
        });
        expect([status, body.details[0].field]).toEqual([400, field]);
      }
    });

    test.each([
      ['1d0773746f72656437', 'stored7'],
      ['1d03ff0041', 'base64:/wBB'],
      [`1dff1000${'e9'.repeat(4096)}`, `base64:${Buffer.alloc(254, 0xe9).toString('base64')}`],
    ])('PI 29 beside a success and PI 99 of the answer are kept: %.20s', async (complement, shown) => {
      const server = await world.rawServer({
        ...GOOD,
        CREATE: 'ACK(CREATE) 0203000000190210006303686921',
        'TRANS.END': `ACK(TRANS.END) 0203000000${complement}`,
      });
      const service = await world.service();
      await world.remote(service, server.port);
      const kept = { status: 'COMPLETED', diagnostic: '0-000', diagnosticComplement: shown };
      expect(await world.send(service)).toMatchObject({ ...kept, freeMessage: null, answerFreeMessage: 'hi!' });
      expect(await world.receive(service)).toMatchObject({ ...kept, answerFreeMessage: null });
      // The session goes on: what was said to one file is not said to the next.
      const quiet = await world.rawServer(GOOD);
      await service.api.put('/servers/1', { port: quiet.port, password: null });
      expect(await world.send(service)).toMatchObject({ diagnosticComplement: null, answerFreeMessage: null });
    });

    test('PI 29 of a refusal is kept as it came', async () => {
      const server = await world.rawServer({ ...GOOD, CREATE: 'ACK(CREATE) 02030200e21d06c3a920796f75' });
      const service = await world.service();
      await world.remote(service, server.port);
      const refused = { status: 'FAILED', diagnostic: '2-226', diagnosticComplement: 'é you' };
      expect(await world.send(service)).toMatchObject(refused);
    });

    test('of a partner who puts control characters, NUL too, into them: made readable, and the file is received', async () => {
      const attributes = ['1e0c1f0180200203e8', '2503610062', '28062901002a0101', '320e330c32343032300a393132000000'];
      const select = ['ACK(SELECT) 0203000000', '09060b01000c0158', '0d0105', '19021000', ...attributes];
      const server = await world.rawServer({ ...GOOD, SELECT: [...select, '3d03410042', '3e02430d'].join('') });
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.receive(service)).toMatchObject({
        ...{ status: 'COMPLETED', attempts: 1, size: 3, label: 'a.b', creationDate: '24020.912...' },
        ...{ originalSender: 'A.B', finalReceiver: 'C.' },
      });
    });
  });

  describe('messages', () => {
    const MESSAGE = { server: 'bank', virtualFile: 'TALK', message: 'are you there?' };

    test('the answer of the request is the answer of the partner', async () => {
      const heard: unknown[] = [];
      const partner = await world.partner({
        message: ({ fileIdentifier, transferId, message, attributesWanted, historicalAttributes }) => {
          const date = historicalAttributes?.creationDate;
          heard.push([fileIdentifier?.fileName, transferId, message?.toString(), attributesWanted, date]);
          return Promise.resolve({ reply: Buffer.from('yes') });
        },
      });
      const service = await world.service();
      await world.remote(service, partner.port);
      const { status, body } = await service.api.post('/transfers/message', {
        ...{ ...MESSAGE, expectReply: true, creationDate: '2026-11-21T09:30:15' },
      });
      expect([status, body]).toMatchObject([
        200,
        { type: 'MESSAGE', status: 'COMPLETED', reply: 'yes', message: 'are you there?', direction: 'SEND', size: 14 },
      ]);
      const silent = await service.api.post('/transfers/message', { ...MESSAGE, message: 'x'.repeat(65_536) });
      expect(silent.body).toMatchObject({ status: 'COMPLETED', reply: null, size: 65_536 });
      expect(heard).toEqual([
        ['TALK', 1, 'are you there?', 1, '261121093015'],
        ['TALK', 2, 'x'.repeat(65_536), undefined, undefined],
      ]);
      const { body: listed } = await service.api.get('/transfers?type=MESSAGE');
      expect(listed.totalElements).toBe(2);
      expect((await service.api.get('/transfers?type=FILE')).body.totalElements).toBe(0);
      const replayed = await service.api.post(`/transfers/${body.id}/replay?wait=90`);
      expect(replayed.body).toMatchObject({ type: 'MESSAGE', status: 'COMPLETED', reply: 'yes' });
    });

    test('PI 11 and PI 13 of the file that it acknowledges, and a reply in EBCDIC', async () => {
      const heard: unknown[] = [];
      const partner = await world.partner({
        message: ({ fileIdentifier, transferId }) => {
          heard.push([fileIdentifier?.fileType, transferId]);
          return Promise.resolve({ reply: Buffer.from('e885a2', 'hex'), dataCode: 1 });
        },
      });
      const service = await world.service();
      await world.remote(service, partner.port);
      const own = await service.api.post('/transfers/message', { ...MESSAGE, expectReply: true });
      expect(own.body).toMatchObject({ fileType: 65_535, pesitTransferId: 1, reply: 'Yes' });
      const asked = { fileType: 0, pesitTransferId: 16_777_215 };
      const { body } = await service.api.post('/transfers/message', { ...MESSAGE, ...asked });
      expect(body).toMatchObject({ status: 'COMPLETED', ...asked });
      const replayed = await service.api.post(`/transfers/${body.id}/replay?wait=90`);
      expect(replayed.body).toMatchObject({ status: 'COMPLETED', ...asked });
      expect(heard).toEqual([
        [65_535, 1],
        [0, 16_777_215],
        [0, 16_777_215],
      ]);
    });

    test('a partner that takes none: FAILED 2-209', async () => {
      const partner = await world.partner();
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, partner.port);
      const { status, body } = await service.api.post('/transfers/message', MESSAGE);
      expect([status, body]).toMatchObject([200, { status: 'FAILED', diagnostic: '2-209', attempts: 1 }]);
    });

    test('no answer: FAILED, and not sent again by itself', async () => {
      const server = await world.rawServer({ ...GOOD, MSG: 'close' });
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, server.port);
      const { body } = await service.api.post('/transfers/message', MESSAGE);
      expect(body).toMatchObject({ status: 'FAILED', diagnostic: '3-310', restartable: false });
      expect(body.errorMessage).toContain('does not send it again by itself');
      expect(server.sessions).toBe(1);
    });

    test('not delivered for want of a session: tried again', async () => {
      let connects = 0;
      const partner = await world.partner({
        message: () => Promise.resolve(undefined),
        before: {
          connect: () => {
            if (++connects === 1) throw new PesitError('no', { fault: 'local', diagnostic: '3-302' });
          },
        },
      });
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, partner.port);
      expect((await service.api.post('/transfers/message', MESSAGE)).body).toMatchObject({
        ...{ status: 'COMPLETED', attempts: 2 },
      });
    });

    test('that waits can be cancelled, and one whose process died is not sent again', async () => {
      const held = deferred();
      const partner = await world.partner({ message: () => held.promise.then(() => undefined) });
      const service = await world.service();
      await world.remote(service, partner.port);
      const { status, body } = await service.api.post('/transfers/message?wait=0', MESSAGE);
      expect([status, body.status]).toEqual([202, 'PENDING']);
      await until(async () => (await service.transfers.find(body.id as string))?.status === 'IN_PROGRESS');
      await world
        .database()
        .knex('transfers')
        .update({ lease_until: new Date(0) });
      expect(await service.transfers.requeueOrphans('expired', 5, 'gone')).toMatchObject([
        { id: body.id, status: 'FAILED' },
      ]);
      held.resolve();
    });

    test.each([
      ['virtualFile', { virtualFile: undefined }],
      ['message', { message: undefined }],
      ['message', { message: 'a\u0000' }],
      ['message', { message: 'base64:A' }],
      ['message', { message: 'x'.repeat(65_537) }],
      ['expectReply', { expectReply: 'yes' }],
      ['fileType', { fileType: 65_536 }],
      ['pesitTransferId', { pesitTransferId: 0 }],
      ['server', { server: undefined }],
      ['filename', { filename: 'f' }],
    ])('a wrong %s is a 400', async (field, wrong) => {
      const service = await world.service();
      await world.remote(service, 1);
      const { status, body } = await service.api.post('/transfers/message', { ...MESSAGE, ...wrong });
      const fields = body.details.map((detail: { readonly field: string }) => detail.field);
      expect([status, fields]).toEqual([400, [field]]);
    });
  });
});
