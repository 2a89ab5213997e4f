import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { refusal } from './support/partner.js';
import { GOOD } from './support/raw-server.js';
import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);

  const post = async (service: Service, fields: object = {}) =>
    (await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', fileContent: CONTENT, ...fields }))
      .body;
  const ended = (service: Service, id: string) =>
    service.exchange.queue.whenEnded(id, 10_000, new AbortController().signal);

  /** A partner that holds every CREATE until `held` is resolved, and tells when `count` of them have come. */
  const holding = async (count: number) => {
    const held = deferred();
    const reached = deferred();
    let creates = 0;
    const partner = await world.partner({
      before: {
        create: () => {
          if (++creates === count) reached.resolve();
          return held.promise;
        },
      },
    });
    return { partner, held, reached };
  };

  describe('limits', () => {
    test('corePoolSize at a time, in the order of their arrival', async () => {
      const { partner, held, reached } = await holding(2);
      const service = await world.service({ settings: { corePoolSize: 2, maxPoolSize: 5, queueCapacity: 100 } });
      await world.remote(service, partner.port);
      const records = [];
      for (let n = 0; n < 6; n++) records.push(await post(service, { remoteFilename: `f${n}` }));
      await reached.promise;
      expect(service.exchange.queue.running).toBe(2);
      const last = ended(service, records[5].id as string);
      held.resolve();
      expect(await last).toMatchObject({ status: 'COMPLETED' });
      expect(partner.mostAtOnce).toBeLessThanOrEqual(2);
      // As they were taken, two by one statement at first: two sessions may reach the partner in either order.
      const begun = world.database().knex('transfers').orderBy(['start_time', 'position']).pluck('remote_filename');
      expect(await begun).toEqual(['f0', 'f1', 'f2', 'f3', 'f4', 'f5']);
    });

    test('maxPoolSize at a time while more than queueCapacity wait', async () => {
      const { partner, held, reached } = await holding(3);
      const service = await world.service({ settings: { corePoolSize: 1, maxPoolSize: 3, queueCapacity: 2 } });
      await world.remote(service, partner.port);
      const records = [];
      for (let n = 0; n < 5; n++) records.push(await post(service));
      await reached.promise;
      expect(service.exchange.queue.running).toBe(3);
      const full = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        fileContent: CONTENT,
      });
      expect(full.status).toBe(503);
      const all = records.map((record) => ended(service, record.id as string));
      held.resolve();
      for (const end of all) expect((await end)?.status ?? 'COMPLETED').toBe('COMPLETED');
    });

    test('transfers that wait for their next attempt take places in the queue, and make it a full one', async () => {
      const { partner, held, reached } = await holding(2);
      const retry = { attempts: 3, initialDelay: 3_600_000, maxDelay: 3_600_000, multiplier: 1, jitter: 0 };
      const service = await world.service({ settings: { retry, corePoolSize: 1, maxPoolSize: 2, queueCapacity: 2 } });
      await world.remote(service, partner.port);
      // Nobody listens there.
      await world.remote(service, 1, { name: 'dead' });
      for (let n = 0; n < 3; n++) {
        const { id } = await post(service, { server: 'dead' });
        await until(async () => (await service.api.get(`/transfers/${id}`)).body.nextAttemptAt !== null);
      }
      await post(service);
      const full = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        fileContent: CONTENT,
      });
      expect(full.status).toBe(503);
      expect(full.body.message).toMatch(/3 transfers wait, 3 of them for their next attempt/);
      expect(full.headers['retry-after']).toBe('5');
      const { body: failed } = await service.api.get('/transfers?status=PENDING');
      await service.api.post(`/transfers/${failed.content[0].id}/cancel`);
      // One place is free, and with it the queue is full: what comes runs beside the first.
      await post(service);
      await reached.promise;
      expect(service.exchange.queue.running).toBe(2);
      held.resolve();
    });

    test('maxConnections of a server holds back its transfers, not those of others', async () => {
      const { partner, held, reached } = await holding(1);
      const other = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port, { maxConnections: 1 });
      await world.remote(service, other.port, { name: 'other' });
      const first = await post(service);
      await reached.promise;
      const second = await post(service);
      expect((await world.send(service, { server: 'other' })).status).toBe('COMPLETED');
      expect((await service.api.get(`/transfers/${second.id}`)).body.status).toBe('PENDING');
      const both = [first, second].map((record) => ended(service, record.id as string));
      held.resolve();
      for (const end of both) expect(await end).toMatchObject({ status: 'COMPLETED' });
      expect(partner.mostAtOnce).toBe(1);
    });

    test('a partner that keeps all slots waiting keeps those of others waiting no longer than maxPoolSize', async () => {
      const { partner, held, reached } = await holding(2);
      const other = await world.partner();
      const settings = { corePoolSize: 2, maxPoolSize: 3, queueCapacity: 100, readTimeout: 60_000 };
      const service = await world.service({ settings });
      await world.remote(service, partner.port);
      await world.remote(service, other.port, { name: 'other' });
      const slow = [];
      for (let n = 0; n < 5; n++) slow.push(await post(service));
      await reached.promise;
      for (let n = 0; n < 2; n++) expect((await world.send(service, { server: 'other' })).status).toBe('COMPLETED');
      expect(service.exchange.queue.running).toBe(2);
      const all = slow.map((record) => ended(service, record.id as string));
      held.resolve();
      for (const end of all) expect((await end)?.status ?? 'COMPLETED').toBe('COMPLETED');
      expect(partner.mostAtOnce).toBe(2);
    });

    test('the server with the fewest transfers under way is next', async () => {
      // Each of the first two is held by itself: when one ends, the other is still under way.
      const gates = [deferred(), deferred()];
      const reached = deferred();
      let creates = 0;
      const create = (): Promise<void> | undefined => {
        const gate = gates[creates++];
        if (creates === gates.length) reached.resolve();
        return gate?.promise;
      };
      const partner = await world.partner({ before: { create } });
      const other = await world.partner();
      const service = await world.service({ settings: { corePoolSize: 2, maxPoolSize: 2, queueCapacity: 100 } });
      await world.remote(service, partner.port);
      await world.remote(service, other.port, { name: 'other' });
      for (const server of ['bank', 'bank', 'bank', 'bank', 'other']) await post(service, { server });
      await reached.promise;
      gates[0]?.resolve();
      const completed = async () => (await service.api.get('/transfers?status=COMPLETED')).body.totalElements as number;
      await until(async () => (await completed()) === 4);
      gates[1]?.resolve();
      await until(async () => (await completed()) === 5);
      const begun = await world.database().knex('transfers').orderBy('start_time').pluck('server_name');
      expect(begun).toEqual(['bank', 'bank', 'other', 'bank', 'bank']);
    });

    test('what waits for a disabled server takes no place of others', async () => {
      const { partner, held, reached } = await holding(1);
      const other = await world.partner();
      const service = await world.service({ settings: { corePoolSize: 1, maxPoolSize: 1, queueCapacity: 2 } });
      await world.remote(service, partner.port);
      await world.remote(service, other.port, { name: 'other' });
      const first = await post(service);
      await reached.promise;
      for (let n = 0; n < 2; n++) await post(service);
      const SEND = { server: 'other', virtualFile: 'V', fileContent: CONTENT };
      expect((await service.api.post('/transfers/send', SEND)).status).toBe(503);
      await service.api.put('/servers/1', { enabled: false });
      const { status, body } = await service.api.post('/transfers/send', SEND);
      expect(status).toBe(202);
      const ends = [first, body].map((record) => ended(service, record.id as string));
      held.resolve();
      for (const end of ends) expect(await end).toMatchObject({ status: 'COMPLETED' });
    });

    test('a disabled server keeps its queue until it is enabled again', async () => {
      const { partner, held, reached } = await holding(1);
      const service = await world.service({ settings: { corePoolSize: 1 } });
      await world.remote(service, partner.port);
      const first = await post(service);
      await reached.promise;
      const second = await post(service);
      await service.api.put('/servers/1', { enabled: false });
      const firstEnd = ended(service, first.id as string);
      held.resolve();
      expect(await firstEnd).toMatchObject({ status: 'COMPLETED' });
      expect((await service.api.get(`/transfers/${second.id}`)).body.status).toBe('PENDING');
      const secondEnd = ended(service, second.id as string);
      await service.api.put('/servers/1', { enabled: true });
      expect(await secondEnd).toMatchObject({ status: 'COMPLETED' });
    });

    test('what waits for a disabled server says so, and has no time of a next attempt', async () => {
      const partner = await world.partner({
        before: { connect: () => Promise.reject(refusal('3-303', 'come later')) },
      });
      const retry = { attempts: 3, initialDelay: 3_600_000, maxDelay: 3_600_000, multiplier: 1, jitter: 0 };
      const service = await world.service({ settings: { retry } });
      await world.remote(service, partner.port);
      const { id } = await post(service);
      const show = async () => (await service.api.get(`/transfers/${id}`)).body;
      await until(async () => (await show()).nextAttemptAt !== null);
      expect(await show()).toMatchObject({ status: 'PENDING', statusReason: null });
      await service.api.put('/servers/1', { enabled: false });
      await world
        .database()
        .knex('transfers')
        .update({ next_attempt_at: new Date(Date.now() - 3_600_000) });
      const waiting = {
        status: 'PENDING',
        nextAttemptAt: null,
        statusReason: 'Remote server "bank" is disabled: enable it to let the transfer run, or cancel the transfer',
      };
      expect(await show()).toMatchObject(waiting);
      expect((await service.api.get('/transfers')).body.content).toMatchObject([waiting]);
      const retried = await service.api.post(`/transfers/${id}/retry`);
      expect([retried.status, retried.body.message]).toEqual([
        409,
        'Remote server "bank" is disabled: set enabled to true first',
      ]);
      expect((await service.api.post(`/transfers/${id}/cancel`)).body).toMatchObject({
        ...{ status: 'CANCELLED', statusReason: null },
      });
      expect(await show()).toMatchObject({ status: 'CANCELLED', statusReason: null });
    });

    test('a server with transfers cannot be removed', async () => {
      const { partner, held, reached } = await holding(1);
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await post(service);
      await reached.promise;
      expect((await service.api.delete('/servers/1')).status).toBe(409);
      const end = ended(service, record.id as string);
      held.resolve();
      await end;
      expect((await service.api.delete('/servers/1')).status).toBe(204);
    });
  });

  describe('the end of the process', () => {
    test('ends what looks for work, and at last what keeps the leases; what the process does is shown', async () => {
      const { partner, held, reached } = await holding(1);
      const service = await world.service();
      await world.remote(service, partner.port);
      await post(service);
      await reached.promise;
      const tasks = async (): Promise<readonly string[]> => {
        const { body } = await request(service.app).get('/actuator/info').set('Authorization', AUTHORIZATION);
        return (body.periodicWork as readonly { readonly name: string }[]).map(({ name }) => name).sort();
      };
      const leases = ['leases and figures of running transfers'];
      const looks = ['look at the queue', 'queueing of transfers whose process is gone'];
      expect(await tasks()).toEqual(expect.arrayContaining([...leases, ...looks]));
      const stopped = service.exchange.stop(10_000);
      const shown = async (names: readonly string[]): Promise<readonly string[]> =>
        (await tasks()).filter((name) => names.includes(name));
      while ((await shown(looks)).length > 0) await new Promise(setImmediate);
      expect(await shown(leases)).toEqual(leases);
      held.resolve();
      await stopped;
      expect(await shown([...leases, ...looks])).toEqual([]);
    });

    test('leases are renewed until the last transfer has ended, so that no other process takes it', async () => {
      const { partner, held, reached } = await holding(1);
      const service = await world.service({ progressMs: 20 });
      await world.remote(service, partner.port);
      const record = await post(service);
      await reached.promise;
      const stopped = service.exchange.stop(10_000);
      const lease = async (): Promise<number> => {
        const [row] = await world.database().knex('transfers').where({ id: record.id }).select('lease_until');
        return (row as { lease_until: Date }).lease_until.getTime();
      };
      const begin = await lease();
      while ((await lease()) - begin < 100) await new Promise(setImmediate);
      held.resolve();
      await stopped;
      expect((await service.api.get(`/transfers/${record.id}`)).body.status).toBe('COMPLETED');
    });

    test('running transfers may end within the drain', async () => {
      const { partner, held, reached } = await holding(1);
      const service = await world.service();
      await world.remote(service, partner.port);
      const record = await post(service);
      await reached.promise;
      const waiting = service.api.post('/transfers/send?wait=90', {
        server: 'bank',
        virtualFile: 'V',
        fileContent: CONTENT,
      });
      const stopped = service.exchange.stop(10_000);
      held.resolve();
      await stopped;
      expect((await service.api.get(`/transfers/${record.id}`)).body.status).toBe('COMPLETED');
      // Taken before the stop, or still waiting for the next process: never lost.
      expect([200, 202]).toContain((await waiting).status);
      const again = await service.api.post('/transfers/send?wait=90', {
        server: 'bank',
        virtualFile: 'V',
        fileContent: CONTENT,
      });
      expect([again.status, again.body.status]).toEqual([202, 'PENDING']);
    });

    test('what the partner does not know of yet is given back', async () => {
      const reached = deferred();
      const server = await world.rawServer((name) => {
        if (name === 'CREATE') reached.resolve();
        return { ...GOOD, CREATE: '' };
      });
      const service = await world.service();
      await world.remote(service, server.port);
      const record = await post(service);
      await reached.promise;
      await service.exchange.stop(0);
      const { body } = await service.api.get(`/transfers/${record.id}`);
      expect(body).toMatchObject({ status: 'PENDING', attempts: 0, startTime: null, errorCode: null });
    });

    test('what is on its way is interrupted with IDT 4, waits for its restart, and says so', async () => {
      const reached = deferred();
      // 1 KB between two points, one unacknowledged: the sender waits after the first.
      const server = await world.rawServer((name) => {
        if (name === 'SYN') reached.resolve();
        return { ...GOOD, CONNECT: 'ACONNECT 0601020703000101' };
      });
      const service = await world.service();
      await world.remote(service, server.port);
      const record = await post(service, { fileContent: Buffer.alloc(9000).toString('base64'), recordLength: 500 });
      await reached.promise;
      await service.exchange.stop(0);
      const { body } = await service.api.get(`/transfers/${record.id}`);
      expect(body).toMatchObject({ status: 'PENDING', diagnostic: '2-223', errorCode: 'TRANSFER_FAILED' });
      expect(body).toMatchObject({ restartable: true, attempts: 0, endTime: null });
      expect(body.errorMessage).toContain('this service was stopped');
      expect(body.bytesTransferred).toBeGreaterThan(0);
      const interruption = server.arrived.find(({ name }) => name === 'IDT')?.fpdu.toString('hex', 6);
      // PI 2 = 2-223, PI 19 = 4, PI 29 = the words for the partner.
      expect(interruption).toMatch(/^02030200df1301041d/);
      expect(server.names().slice(-3)).toEqual(['CRF', 'DESELECT', 'RELEASE']);
    });

    test('records that a dead process left are queued again when it starts again; those of others stay', async () => {
      const data = (await world.service()).data;
      const first = await world.service({ data });
      await world.remote(first, 1);
      await first.exchange.stop(0);
      const { knex } = world.database();
      const until = new Date(Date.now() + 60_000);
      const running = { status: 'IN_PROGRESS', start_time: knex.fn.now(), lease_until: until, fence: 1, attempts: 1 };
      const mine = await post(first);
      const often = await post(first);
      const unwanted = await post(first);
      const others = await post(first);
      const expired = await post(first);
      const left = (record: { readonly id: string }, fields: object) =>
        knex('transfers')
          .where({ id: record.id })
          .update({ ...running, ...fields });
      await left(mine, { node: 'test-node' });
      await left(often, { node: 'test-node', failures: 1 });
      await left(unwanted, { node: 'test-node', cancel_requested: true });
      await left(others, { node: 'other-node' });
      await left(expired, { node: 'third-node', lease_until: new Date(Date.now() - 1000) });
      const retry = { attempts: 2, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };
      const second = await world.service({ data, settings: { retry } });
      const show = async ({ id }: { readonly id: string }) => (await second.api.get(`/transfers/${id}`)).body;
      expect(await show(often)).toMatchObject({ status: 'FAILED', diagnostic: '2-223', restartable: true });
      expect((await show(often)).errorMessage).toContain('stopped or killed while it ran');
      expect(await show(unwanted)).toMatchObject({ status: 'CANCELLED', restartable: false });
      expect((await show(others)).status).toBe('IN_PROGRESS');
      const { body: page } = await second.api.get('/cluster/transfers?size=500');
      expect(page.content).toContainEqual(expect.objectContaining({ id: others.id, node: 'other-node' }));
      expect(page.content.map(({ status }: { status: string }) => status)).not.toContain('FAILED');
      expect((await show(mine)).attempts).toBeGreaterThan(0);
      expect(await second.transfers.requeueOrphans('expired', 2, 'gone')).toMatchObject([
        { id: expired.id, status: 'PENDING' },
      ]);
      expect((await show(others)).status).toBe('IN_PROGRESS');
    });
  });

  test('two processes on one database share the queue, and take nothing twice', async () => {
    const partner = await world.partner();
    const first = await world.service({ node: 'a', pollMs: 20 });
    const second = await world.service({ node: 'b', pollMs: 20, data: first.data });
    await world.remote(first, partner.port);
    await writeFile(join(first.data, 'send/f'), 'x');
    const records = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        post(n % 2 === 0 ? first : second, { filename: 'f', fileContent: undefined }),
      ),
    );
    await until(async () => {
      const { body } = await first.api.get('/transfers?status=COMPLETED');
      return body.totalElements === records.length;
    });
    expect(partner.written).toHaveLength(30);
    expect(new Set(partner.creates.map(({ transferId }) => transferId)).size).toBe(30);
    const nodes = await world.database().knex('transfers').distinct('node').orderBy('node');
    expect(nodes.map(({ node }: { node: string }) => node).join()).toMatch(/^a,b$|^a$|^b$/);
  });

  test('a row that another process keeps locked is left to the next look', async () => {
    const partner = await world.partner();
    const service = await world.service();
    await world.remote(service, partner.port);
    await service.exchange.queue.stop(0);
    const { id } = await post(service);
    const limits = { leaseSeconds: 30, maxPerServer: 5, slots: 3, freely: 3, minQueued: 1, countTo: 10 };
    const take = () => service.transfers.take({ node: 'a', ...limits });
    await world.database().knex.transaction(async (holder) => {
      await holder('transfers').where({ id }).forUpdate();
      expect(await take()).toEqual({ jobs: [], backlog: 1, queued: 1 });
    });
    expect((await take()).jobs).toMatchObject([{ id }]);
  });

  test('who waits on one process hears of the end on another', async () => {
    const partner = await world.partner();
    const first = await world.service({ node: 'a', pollMs: 20, settings: { corePoolSize: 0, maxPoolSize: 0 } });
    await world.remote(first, partner.port);
    await world.service({ node: 'b', pollMs: 20, data: first.data });
    const end = ended(first, (await post(first)).id as string);
    expect(await end).toMatchObject({ status: 'COMPLETED', node: 'b' });
  });

  test('a small file costs three statements, either way: insert, take, end', async () => {
    const partner = await world.partner({ files: { X: Buffer.from('x') } });
    const service = await world.service({ licenseTimes: { refreshEveryMs: 3_600_000 } });
    await world.remote(service, partner.port);
    // The first session tells of the server, the second file of none.
    await world.send(service);
    await world.receive(service);
    await until(async () => {
      const { negotiated, lastSeen } = (await service.api.get('/servers/1')).body;
      return negotiated !== null && typeof lastSeen?.maxEntitySize === 'number';
    });
    interface Query {
      readonly sql: string;
      readonly __knexTxId?: string;
    }
    const queries: Query[] = [];
    const { knex } = world.database();
    const listen = (query: Query): void => void queries.push(query);
    knex.on('query', listen);
    expect((await world.send(service)).status).toBe('COMPLETED');
    expect((await world.receive(service)).status).toBe('COMPLETED');
    knex.removeListener('query', listen);
    // Others are of the node, not of the file: its place in the cluster, its license, what the leader does each minute.
    const ofFile = ({ sql }: Query): boolean => !/pesit_common|transfer_sum|hook|^(?:BEGIN|COMMIT|ROLLBACK)/.test(sql);
    const transactions = new Set(queries.filter(ofFile).flatMap(({ __knexTxId: id }) => id ?? []));
    const statements = queries
      .filter((query) => ofFile(query) || transactions.has(query.__knexTxId ?? ''))
      .map(({ sql }) => sql.trim().split(/\s+/, 3).join(' '));
    const each = ['with eligible as', 'with recursive busy', 'with open as'];
    expect(statements).toEqual([...each, ...each]);
  });

  test('progress is written, and shown newer than written', async () => {
    const held = deferred();
    const begun = deferred();
    const partner = await world.partner({
      before: {
        endTransfer: () => {
          begun.resolve();
          return held.promise;
        },
      },
    });
    const service = await world.service({ progressMs: 20 });
    await world.remote(service, partner.port);
    const record = await post(service);
    await begun.promise;
    expect((await service.api.get(`/transfers/${record.id}`)).body).toMatchObject({
      ...{ status: 'IN_PROGRESS', bytesTransferred: 11, articles: 1, attempts: 1 },
    });
    await until(async () => (await service.transfers.find(record.id as string))?.bytes_transferred === 11);
    const end = ended(service, record.id as string);
    held.resolve();
    expect(await end).toMatchObject({ status: 'COMPLETED', bytes_transferred: 11 });
  });
});
