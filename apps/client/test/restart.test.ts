import { createHash } from 'node:crypto';
import { cp, mkdtemp, readFile, rename, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import { refusal } from './support/partner.js';
import { AT_ONCE, BIG, POINTS, useRestarts } from './support/restarting.js';
import { expectNoSecrets } from './support/service.js';
import { deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const sha256 = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

withDatabase((harness) => {
  const world = useWorld(harness);
  const { start, sendBig } = useRestarts(world);

  describe('sending', () => {
    test('cut in the data: goes on from the last point, as the same transfer, with one record', async () => {
      const { partner, proxy, service } = await start([{ from: 'client', afterBytes: 50_000 }]);
      const record = await sendBig(service);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2, checksum: sha256(BIG), restartable: false });
      expect(record).toMatchObject({ bytesTransferred: BIG.length, errorCode: null, nextAttemptAt: null });
      expect(partner.creates.map(({ transferId, restarted }) => [transferId, restarted])).toEqual([
        [1, undefined],
        [1, 1],
      ]);
      expect(partner.written).toHaveLength(1);
      expect(partner.written[0]!.content.equals(BIG)).toBe(true);
      // Of the first 50,000 bytes at most what was not acknowledged is sent again.
      expect(proxy.bytes[1]!.fromClient).toBeLessThan(BIG.length - 50_000 + 4 * 4096 + 3000);
      expect((await service.api.get('/transfers')).body.totalElements).toBe(1);
      const completed = service.log.entries().find(({ msg }) => msg === 'transfer completed');
      expect(completed).toMatchObject({ attempt: 2, restartPoint: expect.any(Number) });
      expect(completed?.['restartPoint']).toBeGreaterThan(5);
      const { body: detail } = await service.api.get(`/transfers/${record.id}`);
      const restartPoint = completed?.['restartPoint'];
      const agreed = { dialect: 'length-prefixed', version: 2, maxEntitySize: expect.any(Number), compression: 'none' };
      expect(detail).toMatchObject({
        ...{ diagnosticText: 'success', whatToDo: null, terms: { fromPoint: restartPoint, agreed } },
        attemptList: [
          {
            ...{
              number: 1,
              status: 'FAILED',
              diagnostic: '3-310',
              diagnosticText: 'network incident',
              node: 'test-node',
            },
            whatToDo: 'check the line; the transfer can be restarted',
            terms: { fromPoint: 0, asked: { compression: 'none', resync: false }, agreed },
          },
          { number: 2, status: 'COMPLETED', diagnostic: '0-000', bytesTransferred: BIG.length, errorMessage: null },
        ],
      });
      const [first, second] = detail.attemptList as readonly Record<string, string>[];
      expect(first!['remoteAddress']).toBe(`127.0.0.1:${proxy.port}`);
      expect(first!['sessionId']).not.toBe(second!['sessionId']);
      expect(Number(first!['bytesTransferred'])).toBeGreaterThan(0);
      expect(Date.parse(second!['startTime']!)).toBeGreaterThanOrEqual(Date.parse(first!['endTime']!));
    });

    test.each([
      ['text of variable lines', { text: true, recordLength: 200 }],
      ['text of fixed lines', { text: true, recordFormat: 0, recordLength: 80 }],
      ['fixed records', { recordFormat: 0, recordLength: 100 }],
    ])('%s, cut twice', async (_name, fields) => {
      const { partner, service, path } = await start([
        { from: 'client', afterBytes: 20_000 },
        { from: 'client', afterBytes: 30_000 },
      ]);
      const lines = Array.from({ length: 3000 }, (_, n) => `line ${n} ${'x'.repeat(n % 60)}\n`).join('');
      await writeFile(path, lines.slice(0, lines.length - (lines.length % 100)));
      const record = await sendBig(service, fields);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 3 });
      const whole = await world.service();
      await world.remote(whole, partner.port, { name: 'whole' });
      await writeFile(join(whole.data, 'send/big'), await readFile(path));
      expect((await sendBig(whole, { ...fields, server: 'whole' })).status).toBe('COMPLETED');
      expect(partner.written[0]!.content.equals(partner.written[1]!.content)).toBe(true);
    });

    test('on other terms than the first attempt', async () => {
      const { partner, service } = await start(
        [{ from: 'client', afterBytes: 50_000 }],
        {},
        {
          retry: { ...AT_ONCE, attempts: 1 },
        },
      );
      const failed = await sendBig(service);
      expect(failed).toMatchObject({ status: 'FAILED', diagnostic: '3-310', restartable: true });
      await service.api.put('/servers/1', { maxEntitySize: 600, syncInterval: 1 });
      const { status, body } = await service.api.post(`/transfers/${failed.id}/retry?wait=90`);
      expect([status, body.status, body.attempts]).toEqual([200, 'COMPLETED', 2]);
      expect(partner.written[0]!.content.equals(BIG)).toBe(true);
    });

    test('the confirmation of the end is lost: ends well, without a second file', async () => {
      let ends = 0;
      const { partner, service, proxy } = await start([], {
        before: {
          endTransfer: () => {
            if (++ends === 1) proxy.drop();
          },
        },
      });
      const record = await sendBig(service);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2, checksum: sha256(BIG) });
      expect(partner.written).toHaveLength(1);
      expect(partner.creates.map(({ restarted }) => restarted)).toEqual([undefined, 1]);
    });

    test('a partner that has the file says 2-250: COMPLETED', async () => {
      const server = await world.rawServer((name, session) => {
        if (session === 1 && name === 'TRANS.END') return { 'TRANS.END': 'close' };
        if (session === 2 && name === 'CREATE') return { CREATE: 'ACK(CREATE) 02030200fa' };
        return GOOD;
      });
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({
        status: 'COMPLETED',
        attempts: 2,
        size: 11,
        diagnostic: '0-000',
      });
    });

    test.each([
      ['2-204', '0203' + '0200cc'],
      ['2-214', '0203' + '0200d6'],
      ['2-233', '0203' + '0200e9'],
    ])('a partner that refuses the restart with %s gets the whole file, as a new transfer', async (_code, refused) => {
      const server = await world.rawServer((name, session, count) => {
        if (session === 1 && name === 'TRANS.END') return { 'TRANS.END': 'close' };
        if (session === 2 && name === 'CREATE' && count === 1) return { CREATE: `ACK(CREATE) ${refused}` };
        return GOOD;
      });
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, server.port);
      const record = await world.send(service);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2, pesitTransferId: 2, bytesTransferred: 11 });
      const creates = server.arrived.filter(({ name }) => name === 'CREATE').map(({ fpdu }) => fpdu.toString('hex'));
      // PI 13, and PI 15 after it where it is a restart.
      expect(creates.map((create) => /0d01(..)(0f0101)?/.exec(create)?.slice(1))).toEqual([
        ['01', undefined],
        ['01', '0f0101'],
        ['02', undefined],
      ]);
      expect(server.sessions).toBe(2);
    });

    test('a point that was never placed: the whole file, as a new transfer', async () => {
      const server = await world.rawServer((name, session, count) => {
        if (session === 1 && name === 'TRANS.END') return { 'TRANS.END': 'close' };
        if (session === 2 && name === 'WRITE' && count === 1) return { WRITE: 'ACK(WRITE) 0203000000' + '120107' };
        return GOOD;
      });
      const service = await world.service({ settings: { retry: AT_ONCE } });
      await world.remote(service, server.port);
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED', pesitTransferId: 2 });
      expect(server.names()).toContain('IDT');
    });

    test.each([
      ['other bytes', (path: string) => writeFile(path, Buffer.alloc(BIG.length, 1))],
      ['another size', (path: string) => writeFile(path, BIG.subarray(1))],
      ['another time', (path: string) => utimes(path, 1, 1)],
      [
        'another file of the same name',
        async (path: string) => {
          await writeFile(`${path}.new`, BIG);
          await rename(`${path}.new`, path);
        },
      ],
    ])('the source has %s since: 2-215, and nothing more is sent', async (_name, change) => {
      const { partner, service, path } = await start(
        [{ from: 'client', afterBytes: 50_000 }],
        {},
        {
          retry: { ...AT_ONCE, attempts: 1 },
        },
      );
      const failed = await sendBig(service);
      await change(path);
      const { body } = await service.api.post(`/transfers/${failed.id}/retry?wait=90`);
      expect(body).toMatchObject({ status: 'FAILED', diagnostic: '2-215', errorCode: 'TRANSFER_FAILED' });
      expect(body.errorMessage).toContain('is no longer the file of the first attempt');
      expect(partner.creates).toHaveLength(1);
    });

    test('a source that changed before anything was sent is sent as it is', async () => {
      const { partner, service, path } = await start(
        [{ from: 'client', afterBytes: 10 }],
        {},
        {
          retry: { ...AT_ONCE, attempts: 1 },
        },
      );
      const failed = await sendBig(service);
      expect(failed).toMatchObject({ status: 'FAILED', restartable: false });
      await writeFile(path, 'other');
      const { body } = await service.api.post(`/transfers/${failed.id}/retry?wait=90`);
      expect(body).toMatchObject({ status: 'COMPLETED', size: 5 });
      expect(partner.written[0]!.content.toString()).toBe('other');
    });
  });

  describe('receiving', () => {
    test('cut in the data: goes on from its last point, as the same transfer', async () => {
      const { partner, proxy, service } = await start([{ from: 'server', afterBytes: 50_000 }]);
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2, checksum: sha256(BIG), size: BIG.length });
      expect(record).toMatchObject({ pesitTransferId: 1000, restartable: false });
      expect((await readFile(record.localPath as string)).equals(BIG)).toBe(true);
      expect(partner.selects.map(({ transferId, restarted }) => [transferId, restarted])).toEqual([
        [0, undefined],
        [1000, 1],
      ]);
      expect(partner.reads[1]).toBeGreaterThan(5);
      expect(proxy.bytes[1]!.fromServer).toBeLessThan(BIG.length - 50_000 + 4 * 4096 + 3000);
      expect(await world.filesIn(service, 'received')).toEqual(['X']);
    });

    test('FAILED with what came: listed as restartable, and goes on when it is tried again', async () => {
      const { partner, service } = await start(
        [{ from: 'server', afterBytes: 50_000 }],
        {},
        {
          retry: { ...AT_ONCE, attempts: 1 },
        },
      );
      const failed = await world.receive(service);
      expect(failed).toMatchObject({ status: 'FAILED', diagnostic: '3-310', restartable: true, pesitTransferId: 1000 });
      expect(failed.syncPoint).toBeGreaterThan(5);
      const { body: listed } = await service.api.get('/transfers?restartable=true');
      expect(listed.content.map(({ id }: { readonly id: string }) => id)).toEqual([failed.id]);
      expect(await world.filesIn(service, 'received')).toEqual([`${failed.id}.part`, `${failed.id}.points`]);
      const { body } = await service.api.post(`/transfers/${failed.id}/retry?wait=90`);
      expect(body).toMatchObject({ status: 'COMPLETED', checksum: sha256(BIG), attempts: 2 });
      expect(partner.reads).toEqual([0, failed.syncPoint]);
      expect((await service.api.get('/transfers?restartable=true')).body.totalElements).toBe(0);
      expect(await world.filesIn(service, 'received')).toEqual(['X']);
    });

    test('cancelled while what is staged is read: CANCELLED, nothing is connected, nothing is left', async () => {
      const { partner, service } = await start(
        [{ from: 'server', afterBytes: 50_000 }],
        {},
        {
          retry: { ...AT_ONCE, attempts: 1 },
        },
      );
      const failed = await world.receive(service);
      expect(failed).toMatchObject({ status: 'FAILED', restartable: true });
      // Elsewhere: the process that received it knows the hash, and reads nothing.
      const left = await mkdtemp(join(tmpdir(), 'pesit-client-left-'));
      await cp(join(service.data, 'received'), join(left, 'received'), { recursive: true });
      const other = await world.service({ node: 'other', data: left });
      await service.exchange.queue.stop(0);
      const started = other.log.next('transfer started');
      await other.api.post(`/transfers/${failed.id}/retry`);
      await started;
      // Heard in the turn in which the attempt begins: before a byte is read.
      other.exchange.queue.cancel(failed.id as string);
      await until(async () => (await other.transfers.find(failed.id as string))?.status === 'CANCELLED');
      const { body } = await other.api.get(`/transfers/${failed.id}`);
      expect(body).toMatchObject({ status: 'CANCELLED', diagnostic: '2-216', restartable: false, attempts: 2 });
      expect(other.log.lines.join()).not.toContain('staged file resumed');
      expect(partner.connects).toHaveLength(1);
      await until(async () => (await world.filesIn(other, 'received')).length === 0);
    });

    test('another version at the partner: from the start, never a mixture', async () => {
      const files = { X: BIG };
      const { partner, service } = await start(
        [{ from: 'server', afterBytes: 50_000 }],
        { files },
        {
          retry: { ...AT_ONCE, attempts: 1 },
        },
      );
      const failed = await world.receive(service);
      const other = Buffer.from(BIG.subarray(0, 90_000)).fill(9);
      files.X = other;
      const { body } = await service.api.post(`/transfers/${failed.id}/retry?wait=90`);
      expect(body).toMatchObject({ status: 'COMPLETED', size: 90_000 });
      expect(partner.reads).toEqual([0, 0]);
      expect(service.log.lines.join()).toContain('another file than at the first attempt');
    });

    test('a partner that gave no PI 13, and a process that was killed: from the start, whatever is staged', async () => {
      // Without a PI 13 no SELECT can say that it is a restart: a READ from a point of ours would mean nothing there.
      const server = await world.rawServer((_name, session) => ({
        ...GOOD,
        CONNECT: 'ACONNECT 060102' + '0703000101',
        SELECT: GOOD['SELECT']!.toString().replace('0d0105', '0d0100'),
        READ: [GOOD['READ']![0]!, 'DTF 61626364', 'SYN 140101', ...(session === 1 ? [] : ['DTF.END 0203000000'])],
      }));
      const service = await world.service();
      await world.remote(service, server.port, { syncInterval: 1, syncWindow: 1 });
      const { body } = await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
      await until(() => Promise.resolve(server.names().includes('ACK(SYN)')));
      const left = await mkdtemp(join(tmpdir(), 'pesit-client-left-'));
      await cp(join(service.data, 'received'), join(left, 'received'), { recursive: true });
      await world
        .database()
        .knex('transfers')
        .update({ lease_until: new Date(0), node: 'dead' });
      expect(await service.transfers.requeueOrphans('expired', 5, 'gone')).toMatchObject([{ status: 'PENDING' }]);
      const other = await world.service({ node: 'other', data: left, settings: { retry: AT_ONCE } });
      await until(async () => (await other.transfers.find(body.id as string))?.status === 'COMPLETED');
      expect(await readFile(join(left, 'received/X'), 'latin1')).toBe('abcd');
      expect(other.log.entries()).toContainEqual(
        expect.objectContaining({ msg: 'transfer completed', attempt: 2, restartPoint: 0 }),
      );
      const asked = (name: string) =>
        server.arrived.filter((one) => one.name === name).map(({ fpdu }) => fpdu.toString('hex', 6));
      expect(asked('READ')).toEqual(['120100', '120100']);
      expect(new Set(asked('SELECT')).size).toBe(1);
    });

    test('a partner that means something else by the point: from the start, as the same transfer', async () => {
      const first = ['DTF 61626364', 'SYN 140101'];
      const server = await world.rawServer((_, session) => ({
        ...GOOD,
        CONNECT: 'ACONNECT 060102' + '0703000101',
        // Point 1 is stored; then the connection is lost. The restart begins to count anew.
        READ: [GOOD['READ']![0]!, ...first, ...(session === 4 ? ['DTF.END 0203000000'] : [])],
        'ACK(SYN)': session === 1 ? 'close' : '',
      }));
      const service = await world.service({ settings: { retry: { ...AT_ONCE, attempts: 9 } } });
      await world.remote(service, server.port, { syncInterval: 1, syncWindow: 1 });
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 4, size: 4 });
      expect(await readFile(record.localPath as string, 'latin1')).toBe('abcd');
      const reads = server.arrived.filter(({ name }) => name === 'READ').map(({ fpdu }) => fpdu.toString('hex', 6));
      expect(reads).toEqual(['120100', '120101', '120101', '120100']);
      const selects = server.arrived.filter(({ name }) => name === 'SELECT').map(({ fpdu }) => fpdu.toString('hex'));
      expect(selects.map((one) => /0d01(..)/.exec(one)?.[1])).toEqual(['00', '05', '05', '05']);
    });

    test.each([
      ['SELECT, once', 'select', '2-215', 1, [0, undefined]],
      ['READ, the point alone', 'read', '2-214', 1, [1000, 1]],
      ['READ, twice', 'read', '2-214', 2, [0, undefined]],
    ] as const)('a partner that refuses the restart at %s: the whole file', async (_at, step, code, times, last) => {
      let count = 0;
      const { partner, service } = await start([{ from: 'server', afterBytes: 50_000 }], {
        before: {
          [step]: () => {
            if (++count > 1 && count <= 1 + times) throw refusal(code, 'not from there');
          },
        },
      });
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'COMPLETED', checksum: sha256(BIG), attempts: 2 });
      expect(record.bytesTransferred).toBe(BIG.length);
      const asked = partner.selects.map(({ transferId, restarted }) => [transferId, restarted]);
      expect(asked.slice(0, 2)).toEqual([
        [0, undefined],
        [1000, 1],
      ]);
      expect(asked.at(-1)).toEqual(last);
      expect(partner.reads.at(-1)).toBe(0);
    });

    test.each([
      ['end', 'sha256'],
      ['none', 'sha256'],
      ['end', 'none'],
      ['checkpoint', 'none'],
    ] as const)('with durability %s and checksum %s', async (durability, checksum) => {
      const { service } = await start([{ from: 'server', afterBytes: 50_000 }], {}, { durability, checksum });
      const record = await world.receive(service);
      expect(record).toMatchObject({ status: 'COMPLETED', attempts: 2 });
      expect(record.checksum).toBe(checksum === 'none' ? null : sha256(BIG));
      expect((await readFile(record.localPath as string)).equals(BIG)).toBe(true);
      expect(await world.filesIn(service, 'received')).toEqual(['X']);
    });
  });

  describe('another attempt', () => {
    test('follows after a delay that grows, and is bounded', async () => {
      const retry = { attempts: 4, initialDelay: 20, maxDelay: 40, multiplier: 2, jitter: 0 };
      const { service } = await start(
        Array.from({ length: 9 }, () => ({ from: 'client', afterBytes: 10 }) as const),
        {},
        {
          retry,
        },
      );
      const record = await sendBig(service);
      expect(record).toMatchObject({ status: 'FAILED', attempts: 4, diagnostic: '3-310', nextAttemptAt: null });
      expect(record.errorMessage).toContain('(given up after 4 attempts)');
      const delays = service.log
        .entries()
        .flatMap(({ msg, delay }) => (msg === 'transfer will be tried again' ? [delay] : []));
      expect(delays).toEqual([20, 40, 40]);
    });

    test('come again later does not count', async () => {
      let refused = 0;
      const { partner, service } = await start([], {
        before: {
          create: () => {
            if (++refused <= 6) throw refusal('2-207', 'busy');
          },
        },
      });
      expect(await sendBig(service)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
      expect(partner.creates).toHaveLength(7);
      const [{ id }] = (await service.api.get('/transfers')).body.content as [{ readonly id: string }];
      const { attemptList } = (await service.api.get(`/transfers/${id}`)).body;
      expect(attemptList).toMatchObject([
        ...Array.from({ length: 6 }, () => ({ status: 'FAILED', diagnostic: '2-207', diagnosticText: 'file busy' })),
        { number: 7, status: 'COMPLETED' },
      ]);
    });

    test.each(['3-301', '3-304'] as const)('does not follow %s', async (code) => {
      const { partner, service } = await start([], {
        before: {
          connect: () => {
            throw refusal(code, 'no');
          },
        },
      });
      expect(await sendBig(service)).toMatchObject({ status: 'FAILED', attempts: 1, diagnostic: code });
      expect(partner.connects).toHaveLength(1);
    });

    test('of a transfer that waits comes at once when it is asked for', async () => {
      const retry = { ...AT_ONCE, initialDelay: 600_000, maxDelay: 600_000 };
      const { service } = await start([{ from: 'client', afterBytes: 50_000 }], {}, { retry });
      const { body } = await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', filename: 'big' });
      const show = async () => (await service.api.get(`/transfers/${body.id}`)).body;
      await until(async () => (await show()).nextAttemptAt !== null);
      expect(await show()).toMatchObject({ status: 'PENDING', attempts: 1, restartable: true, diagnostic: '3-310' });
      const again = await service.api.post(`/transfers/${body.id}/retry?wait=90`);
      expect([again.status, again.body.status]).toEqual([200, 'COMPLETED']);
    });

    test('is made by another process when the first one ends', async () => {
      const begun = deferred();
      const { partner, service } = await start([], { before: { checkpoint: () => begun.resolve() } });
      const held = deferred();
      const holding = await world.partner({ ...POINTS, before: { checkpoint: () => (begun.resolve(), held.promise) } });
      await service.api.put('/servers/1', { port: holding.port, password: null });
      const { body } = await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', filename: 'big' });
      await begun.promise;
      await service.api.put('/servers/1', { port: partner.port, password: null });
      await service.exchange.stop(0);
      const second = await world.service({ node: 'second', data: service.data });
      const wait = second.exchange.queue.whenEnded(body.id as string, 10_000, new AbortController().signal);
      expect((await wait) ?? (await second.transfers.find(body.id as string))).toMatchObject({
        ...{ status: 'COMPLETED', attempts: 1, node: 'second' },
      });
      held.resolve();
      expect(partner.creates).toMatchObject([{ transferId: 1, restarted: 1 }]);
    });
  });
});
