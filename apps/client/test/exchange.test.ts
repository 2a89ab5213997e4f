import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { startPartner } from './support/partner.js';
import type { Partner, PartnerOptions } from './support/partner.js';
import { empty, expectNoSecrets, openDatabase, startService } from './support/service.js';
import type { Service, ServiceOptions } from './support/service.js';
import { until } from './support/world.js';

afterAll(expectNoSecrets);

const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
const lines = (text: string): Buffer => Buffer.from(text);

withDatabase((harness) => {
  let database: TestDatabase;
  let service: Service;
  let partner: Partner;
  const closers: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    database = await openDatabase(harness);
  });
  beforeEach(() => empty(database));
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  /** A partner, the service, and the partner as remote server `bank`. */
  const start = async (options: PartnerOptions = {}, serviceOptions: ServiceOptions = {}, server: object = {}) => {
    const newPartner = await startPartner(options);
    partner = newPartner;
    closers.push(() => newPartner.close());
    const newService = await startService(database, serviceOptions);
    service = newService;
    closers.push(() => newService.stop());
    const { status } = await service.api.post('/servers', {
      ...{
        name: 'bank',
        host: '127.0.0.1',
        port: partner.port,
        serverId: 'BANKSRV',
        clientId: 'NODE1',
        password: 'pz#8kQ!v',
      },
      ...server,
    });
    expect(status).toBe(201);
  };
  const receivedFiles = async (): Promise<string[]> =>
    (await readdir(join(service.data, 'received'), { recursive: true })).filter((name) => name !== '.pesit').sort();

  describe('sending', () => {
    test('fileContent: spooled, sent, and recorded with everything', async () => {
      await start();
      const content = randomBytes(10_000);
      const { status, body, headers } = await service.api.post('/transfers/send?wait=90', {
        serverId: 1,
        remoteFilename: 'report.csv',
        partnerId: 'ACME',
        virtualFile: 'REPORTS',
        fileContent: content.toString('base64'),
      });
      expect(body.errorMessage).toBeNull();
      expect(status).toBe(200);
      expect(headers['location']).toBe(`/api/v1/transfers/${body.id}`);
      const { advice, ...record } = body;
      // On a loaded machine the round trip alone is worth one.
      expect([null, expect.any(String)]).toContainEqual(advice);
      expect(record).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        transferId: body.id,
        type: 'FILE',
        status: 'COMPLETED',
        direction: 'SEND',
        filename: 'report.csv',
        remoteFilename: 'report.csv',
        virtualFile: 'REPORTS',
        partnerId: 'ACME',
        serverId: 1,
        serverName: 'bank',
        size: 10_000,
        bytesTransferred: 10_000,
        articles: 3,
        createdTime: expect.stringMatching(/Z$/),
        startTime: expect.stringMatching(/Z$/),
        endTime: expect.stringMatching(/Z$/),
        duration: expect.any(Number),
        checksum: sha256(content),
        localPath: join(service.data, 'send/spool', body.id),
        diagnostic: '0-000',
        errorCode: null,
        errorMessage: null,
        pesitTransferId: 1,
        attempts: 1,
        nextAttemptAt: null,
        ...{ expiresAt: null, notBefore: null, ordered: false, priority: 1 },
        nameConfirmed: null,
        contentKept: false,
        createdBy: 'admin',
        statusReason: null,
        restartable: false,
        syncPoint: null,
        node: 'test-node',
        roundTrip: expect.any(Number),
        announcedSize: null,
        label: null,
        freeMessage: null,
        diagnosticComplement: null,
        answerFreeMessage: null,
        originalSender: null,
        finalReceiver: null,
        creationDate: expect.stringMatching(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d$/),
      });
      expect(partner.written).toHaveLength(1);
      expect(partner.written[0]!.content.equals(content)).toBe(true);
      expect(partner.connects[0]).toMatchObject({
        requester: 'ACME',
        server: 'BANKSRV',
        accessControl: 'pz#8kQ!v',
        version: 2,
        accessType: 2,
        syncPoints: { intervalKb: 256, window: 4 },
      });
      expect(partner.creates[0]).toMatchObject({
        fileIdentifier: { fileType: 0, fileName: 'REPORTS' },
        transferId: 1,
        dataCode: 2,
        maxEntitySize: 32_768,
        logicalAttributes: { recordFormat: 0x80, recordLength: 4096, fileLabel: 'report.csv' },
        physicalAttributes: { reservationUnit: 0, maxReservation: 10 },
        historicalAttributes: { creationDate: expect.stringMatching(/^\d{12}$/) },
      });
      expect((await service.api.get(`/transfers/${body.id}`)).body).toEqual({
        ...body,
        ...{ diagnosticText: 'success', whatToDo: null },
        points: expect.objectContaining({ last: 0, dataBytes: null }),
        terms: expect.objectContaining({ fromPoint: 0 }),
        attemptList: [expect.objectContaining({ number: 1, status: 'COMPLETED', bytesTransferred: 10_000 })],
      });
      // Written beside the transfer, not before its end.
      await until(async () => (await service.api.get('/servers/1')).body.status !== 'UNKNOWN');
      expect((await service.api.get('/servers/1')).body).toMatchObject({
        status: 'CONNECTED',
        statusReason: null,
        lastContact: expect.stringMatching(/Z$/),
      });
    });

    test('filename: a file of the send tree, with every option on the wire', async () => {
      await start({ syncPoints: { intervalKb: 64, window: 2 } });
      await writeFile(join(service.data, 'send/a.txt'), 'one\ntwo\r\nthree');
      const { body } = await service.api.post('/transfers/send?wait=90', {
        server: 'bank',
        filename: 'a.txt',
        virtualFile: 'TEXTS',
        remoteFilename: 'b.txt',
        label: 'LABEL-7',
        text: true,
        recordLength: 80,
        recordFormat: 128,
        freeMessage: 'hello',
        originalSender: 'ORIGIN',
        finalReceiver: 'FINAL',
        syncInterval: 10,
        syncWindow: 1,
        maxEntitySize: 4096,
      });
      expect(body).toMatchObject({ status: 'COMPLETED', filename: 'a.txt', partnerId: 'NODE1', articles: 3, size: 14 });
      expect(partner.written[0]!.articles).toEqual([lines('one'), lines('two'), lines('three')]);
      expect(partner.connects[0]).toMatchObject({ requester: 'NODE1', syncPoints: { intervalKb: 10, window: 1 } });
      expect(partner.creates[0]).toMatchObject({
        fileIdentifier: { fileName: 'TEXTS' },
        dataCode: 0,
        maxEntitySize: 4096,
        originalSender: 'ORIGIN',
        finalReceiver: 'FINAL',
        freeMessage: Buffer.from('hello'),
        logicalAttributes: { recordFormat: 0x80, recordLength: 80, fileLabel: 'LABEL-7' },
      });
    });

    test('without virtualFile, remoteFilename is PI 12; settings of the server count where the request says nothing', async () => {
      const settings = { recordLength: 5, recordFormat: 0, maxEntitySize: 1024, syncInterval: 0 };
      await start({}, {}, settings);
      const { body } = await service.api.post('/transfers/send?wait=90', {
        server: 'bank',
        remoteFilename: 'PLAIN',
        fileContent: Buffer.from('0123456789').toString('base64'),
      });
      expect(body).toMatchObject({ status: 'COMPLETED', articles: 2 });
      expect(partner.connects[0]!.syncPoints).toBeUndefined();
      expect(partner.creates[0]).toMatchObject({
        fileIdentifier: { fileName: 'PLAIN' },
        maxEntitySize: 1024,
        logicalAttributes: { recordFormat: 0, recordLength: 5, fileLabel: 'PLAIN' },
      });
    });

    test('syncPointsEnabled false: no PI 7', async () => {
      await start();
      const request = { server: 'bank', remoteFilename: 'X', fileContent: 'AAAA', syncPointsEnabled: false };
      expect((await service.api.post('/transfers/send?wait=90', request)).body.status).toBe('COMPLETED');
      expect(partner.connects[0]!.syncPoints).toBeUndefined();
    });

    test.each([0, 1, 4096, 1_000_003])('%i bytes arrive whole', async (size) => {
      await start();
      const content = randomBytes(size);
      const { body } = await service.api.post('/transfers/send?wait=90', {
        ...{ server: 'bank', remoteFilename: 'X', fileContent: content.toString('base64') },
      });
      expect(body).toMatchObject({ status: 'COMPLETED', size, bytesTransferred: size, checksum: sha256(content) });
      expect(partner.written[0]!.content.equals(content)).toBe(true);
    });

    test('an octet-stream upload of 20 MB in chunks', async () => {
      await start();
      const content = randomBytes(20_000_000);
      const query = 'server=bank&virtualFile=BIG&remoteFilename=big.bin&recordLength=32000&text=false&wait=90';
      const { status, body } = await service.api
        .raw('post', `/transfers/send?${query}`)
        .set('Content-Type', 'application/octet-stream')
        .send(content);
      expect([status, body.status]).toEqual([200, 'COMPLETED']);
      expect(body).toMatchObject({ size: 20_000_000, checksum: sha256(content), filename: 'big.bin' });
      expect(partner.written[0]!.content.equals(content)).toBe(true);
      expect(partner.creates[0]).toMatchObject({ logicalAttributes: { recordLength: 32_000 } });
    });

    test('a form with a file of 20 MB behind its fields, and the same again under its key', async () => {
      await start();
      const content = randomBytes(20_000_000);
      const send = () =>
        service.api
          .raw('post', '/transfers/send?wait=90')
          .set('Idempotency-Key', 'form-1')
          .field({
            server: 'bank',
            virtualFile: 'BIG',
            remoteFilename: 'big.bin',
            recordLength: '32000',
            text: 'false',
          })
          .attach('file', content, { filename: 'other.bin' });
      const { status, body } = await send();
      expect([status, body.status]).toEqual([200, 'COMPLETED']);
      expect(body).toMatchObject({ size: 20_000_000, checksum: sha256(content), filename: 'big.bin' });
      expect(partner.written[0]!.content.equals(content)).toBe(true);
      expect(partner.creates[0]).toMatchObject({ logicalAttributes: { recordLength: 32_000 } });
      expect((await send()).body.id).toBe(body.id);
      expect(partner.written).toHaveLength(1);
    });

    test('raw dialect', async () => {
      await start({ tcpipHeader: 'raw' }, {}, { tcpipHeader: 'raw' });
      const { body } = await service.api.post('/transfers/send?wait=90', {
        ...{ server: 'bank', remoteFilename: 'X', fileContent: 'AAAA' },
      });
      expect(body.status).toBe('COMPLETED');
    });
  });

  describe('receiving', () => {
    test('a file, its record, and its content', async () => {
      const content = randomBytes(123_456);
      await start({ files: { OUT: content } });
      const { status, body } = await service.api.post('/transfers/receive?wait=90', {
        serverId: 1,
        remoteFilename: 'data.bin',
        partnerId: 'ACME',
        virtualFile: 'OUT',
      });
      expect(body.errorMessage).toBeNull();
      expect(status).toBe(200);
      expect(body).toMatchObject({
        status: 'COMPLETED',
        direction: 'RECEIVE',
        filename: 'data.bin',
        remoteFilename: 'data.bin',
        virtualFile: 'OUT',
        partnerId: 'ACME',
        size: 123_456,
        bytesTransferred: 123_456,
        articles: 124,
        checksum: sha256(content),
        localPath: join(service.data, 'received/data.bin'),
        pesitTransferId: 1000,
      });
      expect(partner.selects[0]).toMatchObject({
        fileIdentifier: { fileType: 0, fileName: 'OUT' },
        transferId: 0,
        attributesWanted: 0xe0,
        maxEntitySize: 32_768,
      });
      expect((await readFile(body.localPath as string)).equals(content)).toBe(true);
      expect(await receivedFiles()).toEqual(['data.bin']);
      const download = await service.api.raw('get', `/transfers/${body.id}/content`).buffer(true);
      expect(download.status).toBe(200);
      expect(download.headers).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-length': '123456',
        'content-disposition': 'attachment; filename=data.bin',
      });
      expect((download.body as Buffer).equals(content)).toBe(true);
      const part = await service.api
        .raw('get', `/transfers/${body.id}/content`)
        .set('Range', 'bytes=10-19')
        .buffer(true);
      expect([part.status, (part.body as Buffer).equals(content.subarray(10, 20))]).toEqual([206, true]);
      const beyond = await service.api.raw('get', `/transfers/${body.id}/content`).set('Range', 'bytes=200000-');
      expect([beyond.status, beyond.body.error]).toEqual([416, 'RANGE_NOT_SATISFIABLE']);
      // RFC 9110 §15.5.17: how long it is, for who asked beyond its end.
      expect(beyond.headers).toMatchObject({ 'content-range': 'bytes */123456' });
      expect(beyond.headers['content-type']).toMatch(/^application\/json/);
      expect(beyond.headers['content-disposition']).toBeUndefined();
      expect(beyond.body.message).toContain('123456');
      await rm(body.localPath as string);
      const gone = await service.api.get(`/transfers/${body.id}/content`);
      expect([gone.status, gone.body.error]).toEqual([404, 'FILE_NOT_FOUND']);
    });

    test('into a data directory behind a link, and out of it again', async () => {
      const parent = await mkdtemp(join(tmpdir(), 'pesit-client-'));
      closers.push(() => rm(parent, { recursive: true }));
      await mkdir(join(parent, 'real'));
      await symlink('real', join(parent, 'link'));
      await start({ files: { OUT: Buffer.from('content') } }, { data: join(parent, 'link') });
      const { body } = await service.api.post('/transfers/receive?wait=90', { server: 'bank', virtualFile: 'OUT' });
      expect(body).toMatchObject({ status: 'COMPLETED', localPath: join(parent, 'real/received/OUT') });
      const download = await service.api.raw('get', `/transfers/${body.id}/content`).buffer(true);
      expect(String(download.body)).toBe('content');
    });

    test('a name that is taken is never overwritten, unless asked for', async () => {
      await start({ files: { OUT: Buffer.from('new') } });
      const receive = (more: object = {}) =>
        service.api.post('/transfers/receive?wait=90', { server: 'bank', virtualFile: 'OUT', ...more });
      const path = join(service.data, 'received/OUT');
      await writeFile(path, 'old');
      const second = await receive();
      expect(second.body).toMatchObject({ status: 'COMPLETED', localPath: `${path}_${second.body.id}` });
      expect(second.body).toMatchObject({ filename: `OUT_${second.body.id}`, virtualFile: 'OUT' });
      const replayed = (await service.api.post(`/transfers/${second.body.id}/replay?wait=90`)).body;
      // It asks for what the first one asked for.
      expect(replayed).toMatchObject({ status: 'COMPLETED', filename: `OUT_${replayed.id}` });
      await rm(path);
      const third = (await service.api.post(`/transfers/${second.body.id}/replay?wait=90`)).body;
      expect(third).toMatchObject({ status: 'COMPLETED', filename: 'OUT', localPath: path });
      await writeFile(path, 'old');
      expect(await readFile(path, 'utf8')).toBe('old');
      const taken = await receive({ localName: 'OUT' });
      expect([taken.status, taken.body.error]).toEqual([409, 'CONFLICT']);
      const replaced = await receive({ localName: 'OUT', overwrite: true });
      expect(replaced.body).toMatchObject({ status: 'COMPLETED', localPath: path });
      expect(await readFile(path, 'utf8')).toBe('new');
      const named = await receive({ localName: 'näme.txt' });
      expect(named.body.localPath).toBe(join(service.data, 'received/näme.txt'));
    });

    test.each([
      ['../../etc/passwd', undefined, 'passwd'],
      ['/abs/dir/', undefined, 'dir'],
      ['..', undefined, '__'],
      ['.pesit', undefined, '_pesit'],
      ['C:\\x\\y.txt', undefined, 'y.txt'],
      [undefined, '../label', 'label'],
      [undefined, undefined, 'OUT'],
    ])('remoteFilename %p, PI 37 %p: stored as %p', async (remoteFilename, label, name) => {
      await start({ files: { OUT: Buffer.from('x') }, ...(label === undefined ? {} : { label }) });
      const { body } = await service.api.post('/transfers/receive?wait=90', {
        ...{ server: 'bank', virtualFile: 'OUT', remoteFilename },
      });
      expect(body).toMatchObject({ status: 'COMPLETED', localPath: join(service.data, 'received', name) });
      // What was asked for is in remoteFilename and virtualFile.
      expect(body).toMatchObject({ filename: name, remoteFilename: remoteFilename ?? null, virtualFile: 'OUT' });
    });

    test('text: articles become lines', async () => {
      await start({ files: { OUT: Buffer.from('aabbc') }, recordLength: 2 });
      const { body } = await service.api.post('/transfers/receive?wait=90', {
        ...{ server: 'bank', virtualFile: 'OUT', text: true },
      });
      expect(await readFile(body.localPath as string, 'utf8')).toBe('aa\nbb\nc\n');
    });

    test('an empty file', async () => {
      await start({ files: { OUT: Buffer.alloc(0) } });
      const { body } = await service.api.post('/transfers/receive?wait=90', { server: 'bank', virtualFile: 'OUT' });
      expect(body).toMatchObject({ status: 'COMPLETED', size: 0, articles: 0 });
      expect((await readFile(body.localPath as string)).length).toBe(0);
    });
  });

  describe('test-connection', () => {
    test('a real CONNECT and RELEASE', async () => {
      await start();
      const { status, body } = await service.api.post('/servers/1/test');
      expect([status, body]).toEqual([
        200,
        {
          success: true,
          latency: expect.any(Number),
          serverVersion: 2,
          roundTrip: expect.any(Number),
          advice: expect.stringContaining('ask the partner for'),
          tls: null,
          message: 'bank accepted a session of NODE1 with BANKSRV',
          negotiated: {
            version: 2,
            syncInterval: 32,
            syncWindow: 4,
            accessType: 2,
            dialect: 'length-prefixed',
            crc: false,
            resync: false,
          },
        },
      ]);
      expect(partner.ended).toEqual([undefined]);
      expect((await service.api.get('/servers/1')).body.status).toBe('CONNECTED');
    });
  });
});
