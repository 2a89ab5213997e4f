import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import type { Script } from './support/raw-server.js';
import { expectNoSecrets } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

/** A port on which nobody listens. */
const closedPort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

const DIAGNOSTIC = (code: string): string => {
  const [type = '', reason = ''] = code.split('-');
  return `0203${type.padStart(2, '0')}${Number(reason).toString(16).padStart(4, '0')}`;
};

withDatabase((harness) => {
  const world = useWorld(harness);

  describe('a partner that refuses the connection', () => {
    test.each([
      ['3-301', 'PARTNER_UNKNOWN', 'check partner and server identifiers'],
      ['3-304', 'AUTH_FAILED', 'check identifier, password'],
      ['3-308', 'TRANSFER_FAILED', 'use PeSIT E'],
    ])('%s: transfer and test say %s, with words', async (diagnostic, errorCode, advice) => {
      const server = await world.rawServer({ ...GOOD, CONNECT: `RCONNECT ${DIAGNOSTIC(diagnostic)}1d046e6f7065` });
      const service = await world.service();
      const id = await world.remote(service, server.port);
      const record = await world.send(service);
      expect(record).toMatchObject({ status: 'FAILED', diagnostic, errorCode, bytesTransferred: 0, attempts: 1 });
      expect(record.errorMessage).toContain(advice);
      expect(record.errorMessage).toContain('(nope)');
      const { status, body } = await service.api.post(`/servers/${id}/test`);
      expect([status, body]).toMatchObject([
        200,
        { success: false, errorCode, diagnostic, latency: expect.any(Number) },
      ]);
      expect(body.message).toContain(advice);
      const { body: shown } = await service.api.get(`/servers/${id}`);
      expect(shown).toMatchObject({ status: 'REFUSED', statusReason: body.message });
      expect(service.log.entries()).toContainEqual(
        expect.objectContaining({
          ...{ msg: 'transfer failed', transferId: record.id, errorCode },
          diagnostic: expect.stringMatching(new RegExp(`^${diagnostic} [a-z]`)),
        }),
      );
    });

    test.each([
      ['3-303', 'wait'],
      ['3-309', 'wait, or raise maxConnections'],
      ['3-322', 'wait'],
    ])('%s, come again later: the transfer waits and says so, with words', async (diagnostic, advice) => {
      const server = await world.rawServer({ ...GOOD, CONNECT: `RCONNECT ${DIAGNOSTIC(diagnostic)}1d046e6f7065` });
      const service = await world.service({
        settings: { retry: { attempts: 1, initialDelay: 600_000, maxDelay: 600_000, multiplier: 1, jitter: 0 } },
      });
      const id = await world.remote(service, server.port);
      const { body: queued } = await service.api.post('/transfers/send', {
        ...{ server: 'bank', virtualFile: 'FILE', fileContent: CONTENT },
      });
      const record = async () => (await service.api.get(`/transfers/${queued.id}`)).body;
      await until(async () => (await record()).nextAttemptAt !== null);
      const waiting = await record();
      expect(waiting).toMatchObject({ status: 'PENDING', diagnostic, errorCode: 'CONNECTION_FAILED', attempts: 0 });
      expect(waiting).toMatchObject({ endTime: null, restartable: false });
      expect(Date.parse(waiting.nextAttemptAt as string) - Date.now()).toBeGreaterThan(500_000);
      expect(waiting.errorMessage).toContain(advice);
      const { body } = await service.api.post(`/servers/${id}/test`);
      expect(body).toMatchObject({ success: false, errorCode: 'CONNECTION_FAILED', diagnostic });
      expect(body.message).toContain(advice);
      expect((await service.api.get(`/servers/${id}`)).body).toMatchObject({ status: 'REFUSED' });
    });
  });

  describe('a partner that cannot be reached', () => {
    test('nobody listens: CONNECTION_FAILED, UNREACHABLE', async () => {
      const service = await world.service();
      await world.remote(service, await closedPort());
      const record = await world.send(service);
      expect(record).toMatchObject({ status: 'FAILED', errorCode: 'CONNECTION_FAILED', diagnostic: '3-310' });
      expect(record.errorMessage).toContain('nobody listens there');
      const { body } = await service.api.post('/servers/1/test');
      expect(body).toMatchObject({ success: false, errorCode: 'CONNECTION_FAILED', diagnostic: '3-310' });
      expect((await service.api.get('/servers/1')).body).toMatchObject({ status: 'UNREACHABLE' });
    });

    test('silence after CONNECT: TIMEOUT', async () => {
      const server = await world.rawServer({});
      const service = await world.service({ settings: { connectTimeout: 100, readTimeout: 100 } });
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({ status: 'FAILED', errorCode: 'TIMEOUT', diagnostic: '3-317' });
      expect((await service.api.post('/servers/1/test')).body).toMatchObject({ success: false, errorCode: 'TIMEOUT' });
      expect((await service.api.get('/servers/1')).body).toMatchObject({ status: 'UNREACHABLE' });
    });

    test.each(['CREATE', 'ORF', 'WRITE', 'TRANS.END'])('silence after %s: TIMEOUT', async (name) => {
      const server = await world.rawServer({ ...GOOD, [name]: '' });
      const service = await world.service({ settings: { readTimeout: 100 } });
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({ status: 'FAILED', errorCode: 'TIMEOUT', diagnostic: '3-317' });
      expect(server.names()).toContain('ABORT');
    });

    test('what answers is not PeSIT: an error that says what came', async () => {
      const server = await world.rawServer({ CONNECT: 'raw 485454502f312e31203430300d0a0d0a' });
      const service = await world.service({ settings: { readTimeout: 300 } });
      await world.remote(service, server.port);
      const record = await world.send(service);
      expect(record).toMatchObject({ status: 'FAILED' });
      expect(['TRANSFER_FAILED', 'TIMEOUT']).toContain(record.errorCode);
    });
  });

  describe('a partner that refuses the file', () => {
    test.each([
      ['CREATE', '2-226', 'TRANSFER_FAILED'],
      ['CREATE', '2-204', 'TRANSFER_FAILED'],
      ['ORF', '2-211', 'TRANSFER_FAILED'],
      ['WRITE', '2-211', 'TRANSFER_FAILED'],
      ['TRANS.END', '3-319', 'TRANSFER_FAILED'],
      ['TRANS.END', '2-219', 'TRANSFER_FAILED'],
    ])('%s answered %s: %s, and the session serves the next file', async (name, diagnostic, errorCode) => {
      const server = await world.rawServer((asked, _session, count) =>
        asked === name && count === 1
          ? { ...GOOD, [name]: String(GOOD[name]).replace('0203000000', DIAGNOSTIC(diagnostic)) }
          : GOOD,
      );
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({ status: 'FAILED', errorCode, diagnostic });
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
      expect(server.sessions).toBe(1);
    });

    test('an unknown file to read is FILE_NOT_FOUND, and nothing is left behind', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await world.receive(service, { virtualFile: 'NOWHERE' });
      expect(record).toMatchObject({ status: 'FAILED', errorCode: 'FILE_NOT_FOUND', diagnostic: '2-205' });
      expect(record.errorMessage).toContain('there is no NOWHERE');
      expect(await world.filesIn(service, 'received')).toEqual([]);
      const { status, body } = await service.api.get(`/transfers/${record.id}/content`);
      expect([status, body.error]).toEqual([409, 'CONFLICT']);
    });
  });

  describe('a connection that is cut instead of an answer', () => {
    const sending = ['CONNECT', 'CREATE', 'ORF', 'WRITE', 'DTF.END', 'TRANS.END'];
    test.each(sending)('sending, at %s: FAILED 3-310', async (name) => {
      const server = await world.rawServer({ ...GOOD, [name]: 'close' });
      const service = await world.service();
      await world.remote(service, server.port);
      const record = await world.send(service);
      expect(record).toMatchObject({
        status: 'FAILED',
        diagnostic: '3-310',
        errorCode: name === 'CONNECT' ? 'CONNECTION_FAILED' : 'TRANSFER_FAILED',
      });
      expect(server.sessions).toBe(1);
    });

    const receiving = ['SELECT', 'ORF', 'READ', 'TRANS.END'];
    test.each(receiving)('receiving, at %s: FAILED, no staged file', async (name) => {
      const server = await world.rawServer({ ...GOOD, [name]: 'close' });
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.receive(service)).toMatchObject({ status: 'FAILED', diagnostic: '3-310', localPath: null });
      expect(await world.filesIn(service, 'received')).toEqual([]);
    });

    test('receiving, in the middle of the data: FAILED, no staged file, the figures so far', async () => {
      const data = (GOOD['READ'] as readonly string[]).slice(0, 2);
      const server = await world.rawServer({ ...GOOD, READ: [...data, 'DTF 6162'], SYN: 'close' });
      const service = await world.service({ settings: { readTimeout: 200 } });
      await world.remote(service, server.port);
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'FAILED', errorCode: 'TIMEOUT', bytesTransferred: 4, articles: 2 });
      expect(await world.filesIn(service, 'received')).toEqual([]);
    });

    // The partner has confirmed the end: the file is there, whatever becomes of the connection.
    test.each(['CRF', 'DESELECT'])('after ACK(TRANS.END), at %s: COMPLETED', async (name) => {
      const server = await world.rawServer({ ...GOOD, [name]: 'close' });
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED', diagnostic: '0-000' });
      expect(await world.receive(service)).toMatchObject({ status: 'COMPLETED', size: 3 });
    });
  });

  describe('a partner with peculiar figures', () => {
    const COUNTS = (bytes: string, articles: string): Script => ({
      ...GOOD,
      'TRANS.END': `ACK(TRANS.END) 0203000000${bytes}${articles}`,
    });
    test.each([
      ['right counts', 'COMPLETED', '0-000', COUNTS('1b010b', '1c0101')],
      ['a wrong PI 28 beside a right PI 27', 'COMPLETED', '0-000', COUNTS('1b010b', '1c0163')],
      ['a wrong PI 28 alone', 'COMPLETED', '0-000', COUNTS('', '1c0163')],
      ['a wrong PI 27', 'FAILED', '3-319', COUNTS('1b010a', '1c0101')],
    ])('ACK(TRANS.END) with %s: %s', async (_name, status, diagnostic, script) => {
      const server = await world.rawServer(script);
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({ status, diagnostic });
    });

    test('PI 7 larger than asked: what was asked stays, and it is logged', async () => {
      const server = await world.rawServer({ ...GOOD, CONNECT: 'ACONNECT 0601020703400010' });
      const service = await world.service();
      await world.remote(service, server.port, { syncInterval: 32, syncWindow: 2 });
      const { body } = await service.api.post('/servers/1/test');
      expect(body.negotiated).toMatchObject({ syncInterval: 32, syncWindow: 2 });
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED' });
      expect(service.log.lines.join('')).toContain('PI 7 is larger than what was asked');
    });

    test('an ACK(SELECT) that announces more than the volume has: 2-219, and the file is deselected', async () => {
      const select = String(GOOD['SELECT']).replace('2806290100' + '2a0101', '2809290100' + '2a04ffffffff');
      const server = await world.rawServer({ ...GOOD, SELECT: select });
      const service = await world.service();
      await world.remote(service, server.port);
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-219', errorCode: 'TRANSFER_FAILED' });
      expect(server.names()).toContain('DESELECT');
      expect(await world.filesIn(service, 'received')).toEqual([]);
    });

    test('record length 0 in ACK(SELECT): 2-200', async () => {
      const select = String(GOOD['SELECT']).replace('1e071f0180200203e8', '1e061f0180200100');
      const server = await world.rawServer({ ...GOOD, SELECT: select });
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.receive(service)).toMatchObject({ status: 'FAILED', diagnostic: '2-200' });
    });

    test('DTF.END with an error ends the transfer with it', async () => {
      const server = await world.rawServer({
        ...GOOD,
        READ: ['ACK(READ) 0203000000', `DTF.END ${DIAGNOSTIC('2-213')}`],
      });
      const service = await world.service();
      await world.remote(service, server.port);
      expect(await world.receive(service)).toMatchObject({ status: 'FAILED', diagnostic: '2-213' });
    });
  });

  describe('the file', () => {
    const start = async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      return { partner, service };
    };

    test('removed while its transfer waits: FILE_NOT_FOUND, and nothing was sent', async () => {
      const held = deferred();
      const begun = deferred();
      const endTransfer = (): Promise<void> => {
        begun.resolve();
        return held.promise;
      };
      const partner = await world.partner({ before: { endTransfer } });
      const service = await world.service();
      await world.remote(service, partner.port, { maxConnections: 1 });
      const path = join(service.data, 'send/a');
      await writeFile(path, 'x');
      const first = world.send(service);
      await begun.promise;
      const { body } = await service.api.post('/transfers/send', { server: 'bank', filename: 'a', virtualFile: 'V' });
      await rm(path);
      const ended = service.exchange.queue.whenEnded(body.id as string, 5000, new AbortController().signal);
      held.resolve();
      expect(await ended).toMatchObject({ status: 'FAILED', error_code: 'FILE_NOT_FOUND', diagnostic: '2-205' });
      expect((await first).status).toBe('COMPLETED');
      expect(partner.creates).toHaveLength(1);
    });

    test('a last record that is not filled: 2-200, before anything is sent', async () => {
      const { partner, service } = await start();
      const record = await world.send(service, { recordFormat: 0, recordLength: 4 });
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-200', errorCode: 'TRANSFER_FAILED' });
      expect(record.errorMessage).toContain('unfilled record');
      expect(partner.connects).toEqual([]);
    });

    test('a line longer than the record length: 2-220', async () => {
      const { service, partner } = await start();
      const record = await world.send(service, { text: true, recordLength: 4 });
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-220' });
      expect(partner.written).toEqual([]);
    });

    test('that shrinks while it is sent: 2-215, and the partner has no file', async () => {
      const partner = await world.partner({
        syncPoints: { intervalKb: 64, window: 1 },
        before: { write: async () => truncate(path, 10) },
      });
      const service = await world.service();
      await world.remote(service, partner.port);
      const path = join(service.data, 'send/big');
      await writeFile(path, Buffer.alloc(300_000));
      const { body } = await service.api.post('/transfers/send?wait=90', {
        server: 'bank',
        filename: 'big',
        virtualFile: 'V',
      });
      expect(body).toMatchObject({ status: 'FAILED', diagnostic: '2-215' });
      expect(partner.written).toEqual([]);
      expect(partner.failures).toMatchObject([{ diagnostic: '2-215', endCode: 4 }]);
    });

    test('to be received into a directory that is gone or cannot be written: 2-211', async () => {
      const partner = await world.partner({ files: { X: Buffer.from('x') } });
      const service = await world.service();
      await world.remote(service, partner.port);
      await rm(join(service.data, 'received'), { recursive: true });
      expect(await world.receive(service)).toMatchObject({ status: 'FAILED', diagnostic: '2-211' });
      await writeFile(join(service.data, 'received'), '');
      expect(await world.receive(service)).toMatchObject({ status: 'FAILED' });
    });
  });

  test('a server whose password needs a key that is not there: FAILED with words, no connection', async () => {
    const partner = await world.partner();
    const service = await world.service();
    await world.remote(service, partner.port);
    await world.database().knex('remote_servers').update({ password: 'v1.00000000.AAAA' });
    const record = await world.send(service);
    expect(record).toMatchObject({ status: 'FAILED', errorCode: 'TRANSFER_FAILED', diagnostic: '2-215' });
    expect(record.errorMessage).toContain('needs the key 00000000');
    expect(partner.connects).toEqual([]);
  });
});
