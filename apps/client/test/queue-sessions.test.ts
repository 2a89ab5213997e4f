/** The sessions that the queue opens, reuses and ends. */
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { LocalBus } from '@pesit-node/cluster';
import type { ClusterEvents } from '@pesit-node/cluster';
import { withDatabase } from '@pesit-node/service/testing';

import { QueueHints } from '../src/queue/queue-hints.js';
import { GOOD } from './support/raw-server.js';
import type { Script } from './support/raw-server.js';
import { expectNoSecrets } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);

  describe('sessions', () => {
    test('are reused for both directions, and released at the end', async () => {
      const partner = await world.partner({ files: { X: Buffer.from('x') } });
      const service = await world.service();
      await world.remote(service, partner.port);
      expect((await world.send(service)).status).toBe('COMPLETED');
      expect((await world.receive(service)).status).toBe('COMPLETED');
      expect((await world.send(service)).status).toBe('COMPLETED');
      expect(partner.connects).toHaveLength(1);
      await service.stop();
      expect(partner.ended).toEqual([undefined]);
    });

    test('are released when they were idle for idleTimeout', async () => {
      const partner = await world.partner();
      const service = await world.service({ settings: { idleTimeout: 20 } });
      await world.remote(service, partner.port);
      await world.send(service);
      await until(() => Promise.resolve(partner.ended.length === 1));
      expect(partner.ended).toEqual([undefined]);
    });

    test('of another identity, or on other terms, are not shared', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      for (const fields of [{}, { partnerId: 'OTHER' }, { syncInterval: 7 }, { syncPointsEnabled: false }, {}]) {
        expect((await world.send(service, fields)).status).toBe('COMPLETED');
      }
      expect(partner.connects.map(({ requester, syncPoints }) => [requester, syncPoints?.intervalKb])).toEqual([
        ['NODE1', 256],
        ['OTHER', 256],
        ['NODE1', 7],
        ['NODE1', undefined],
      ]);
    });

    test('idleTimeout 0: one a transfer', async () => {
      const partner = await world.partner();
      const service = await world.service({ settings: { idleTimeout: 0 } });
      await world.remote(service, partner.port);
      await world.send(service);
      await world.send(service);
      expect(partner.connects).toHaveLength(2);
    });

    test('a change of the server ends its idle sessions', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      await world.send(service);
      await service.api.put('/servers/1', { password: 'nw#7Pass' });
      expect((await world.send(service)).status).toBe('COMPLETED');
      expect(partner.connects.map(({ accessControl }) => accessControl)).toEqual(['pz#8kQ!v', 'nw#7Pass']);
      expect(partner.ended).toEqual([undefined]);
    });

    test('no more with a server than it may have: an idle one gives way first', async () => {
      const partner = await world.partner({ maxConnections: 1 });
      const service = await world.service();
      await world.remote(service, partner.port, { maxConnections: 1 });
      await world.send(service);
      expect(await world.send(service, { partnerId: 'OTHER' })).toMatchObject({
        status: 'COMPLETED',
        errorMessage: null,
      });
      expect((await service.api.post('/servers/1/test')).body).toMatchObject({ success: true });
      expect(partner.ended).toEqual([undefined, undefined, undefined]);
    });

    test('that a partner ends while they are idle are not counted any more', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      await world.send(service);
      expect(service.exchange.pool.open).toBe(1);
      await partner.close();
      await until(() => Promise.resolve(service.exchange.pool.open === 0));
    });

    test('that died while idle are replaced before anything is sent twice', async () => {
      const server = await world.rawServer((name, session, count) =>
        session === 1 && name === 'CREATE' && count === 2 ? { CREATE: 'close' } : GOOD,
      );
      const service = await world.service();
      await world.remote(service, server.port);
      expect((await world.send(service)).status).toBe('COMPLETED');
      expect(await world.send(service)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
      expect(server.sessions).toBe(2);
      const reading = await world.rawServer((name, session, count) =>
        session === 1 && name === 'SELECT' && count === 2 ? { SELECT: 'close' } : GOOD,
      );
      await world.remote(service, reading.port, { name: 'reading' });
      await world.receive(service, { server: 'reading' });
      expect(await world.receive(service, { server: 'reading' })).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    });

    test('that are refused for now (3-322), as of a partner that was disabled: it is tried again later, and does not count', async () => {
      const server = await world.rawServer((name, _session, count) =>
        name === 'CREATE' && count === 2 ? { CREATE: 'ACK(CREATE) 0203030142' } : GOOD,
      );
      const service = await world.service({
        settings: { retry: { attempts: 1, initialDelay: 600_000, maxDelay: 600_000, multiplier: 1, jitter: 0 } },
      });
      await world.remote(service, server.port);
      expect((await world.send(service)).status).toBe('COMPLETED');
      const { body: queued } = await service.api.post('/transfers/send', {
        ...{ server: 'bank', virtualFile: 'FILE', fileContent: CONTENT },
      });
      const record = async () => (await service.api.get(`/transfers/${queued.id}`)).body;
      await until(async () => (await record()).nextAttemptAt !== null);
      expect(await record()).toMatchObject({ status: 'PENDING', diagnostic: '3-322', attempts: 0, endTime: null });
      expect(server.sessions).toBe(1);
    });

    describe('that are not authorised any more (3-304)', () => {
      const REFUSED = '0203030130';
      const failing = (refuses: Script, from: number) =>
        world.rawServer((name, session, count) => {
          if (session > 1 && name === 'CONNECT' && refuses['CONNECT'] !== undefined) return refuses;
          return session === 1 && count >= from && name !== 'CONNECT' ? { ...GOOD, ...refuses } : GOOD;
        });

      test('are replaced: the partner may have changed what proves this node', async () => {
        const server = await failing({ CREATE: `ACK(CREATE) ${REFUSED}`, SELECT: `ACK(SELECT) ${REFUSED}` }, 2);
        const service = await world.service();
        await world.remote(service, server.port);
        expect((await world.send(service)).status).toBe('COMPLETED');
        expect(await world.send(service)).toMatchObject({ status: 'COMPLETED', attempts: 1 });
        expect(server.sessions).toBe(2);
        expect((await world.receive(service)).status).toBe('COMPLETED');
        expect(server.sessions).toBe(2);
        expect(server.names().filter((name) => name === 'RELEASE')).toHaveLength(1);
        const reading = await failing({ SELECT: `ACK(SELECT) ${REFUSED}` }, 2);
        await world.remote(service, reading.port, { name: 'reading' });
        await world.receive(service, { server: 'reading' });
        expect(await world.receive(service, { server: 'reading' })).toMatchObject({ status: 'COMPLETED', attempts: 1 });
      });

      test('are replaced once: refused again, the transfer is FAILED', async () => {
        const server = await failing({ CREATE: `ACK(CREATE) ${REFUSED}`, CONNECT: `RCONNECT ${REFUSED}` }, 2);
        const service = await world.service();
        await world.remote(service, server.port);
        await world.send(service);
        const failed = { status: 'FAILED', errorCode: 'AUTH_FAILED', diagnostic: '3-304' };
        expect(await world.send(service)).toMatchObject(failed);
        expect(server.sessions).toBe(2);
      });

      test('from their beginning are not', async () => {
        const server = await failing({ CREATE: `ACK(CREATE) ${REFUSED}` }, 1);
        const service = await world.service();
        await world.remote(service, server.port);
        expect(await world.send(service)).toMatchObject({ status: 'FAILED', errorCode: 'AUTH_FAILED' });
        expect(server.sessions).toBe(1);
      });
    });

    test('that die with a file accepted are not: FAILED', async () => {
      const server = await world.rawServer((name, _session, count) =>
        name === 'TRANS.END' && count === 2 ? { 'TRANS.END': 'close' } : GOOD,
      );
      const service = await world.service();
      await world.remote(service, server.port);
      expect((await world.send(service)).status).toBe('COMPLETED');
      expect(await world.send(service)).toMatchObject({ status: 'FAILED', diagnostic: '3-310' });
      expect(server.sessions).toBe(1);
    });

    test('PI 13 counts up and never repeats within the range', async () => {
      const partner = await world.partner();
      const service = await world.service();
      await world.remote(service, partner.port);
      await world.database().knex.raw("select setval('pesit_transfer_id', 16777214)");
      for (let n = 0; n < 3; n++) await world.send(service);
      expect(partner.creates.map(({ transferId }) => transferId)).toEqual([16_777_215, 1, 2]);
    });
  });

  describe('several pods, told by PostgreSQL', () => {
    const POD = { config: { 'cluster.enabled': true }, pollMs: 3_600_000, licenseTimes: { refreshEveryMs: 3_600_000 } };

    test('what one pod does not take, an idle one takes at once; also after the connection that tells was lost', async () => {
      const partner = await world.partner();
      const full = { ...POD, node: 'full', settings: { corePoolSize: 0, maxPoolSize: 0 } };
      const first = await world.service(full);
      await world.service({ ...POD, node: 'idle', data: first.data });
      await world.remote(first, partner.port);
      const taken = async () => {
        const { body } = await first.api.post('/transfers/send', {
          ...{ server: 'bank', virtualFile: 'V', fileContent: CONTENT },
        });
        await until(async () => (await first.api.get(`/transfers/${body.id}`)).body.status === 'COMPLETED');
        return world.database().knex('transfers').where({ id: body.id }).pluck('node');
      };
      expect(await taken()).toEqual(['idle']);
      await world.database().knex.raw(`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'pesit-node-events' and datname = current_database()`);
      expect(await taken()).toEqual(['idle']);
    });

    test('a pod that stops tells of what it gives back', async () => {
      const reached = deferred();
      const held = deferred();
      const partner = await world.partner({
        before: {
          create: () => {
            reached.resolve();
            return held.promise;
          },
        },
      });
      const first = await world.service({ ...POD, node: 'first' });
      const second = await world.service({ ...POD, node: 'second', data: first.data });
      await world.remote(first, partner.port);
      const { body } = await first.api.post('/transfers/send', {
        ...{ server: 'bank', virtualFile: 'V', fileContent: CONTENT },
      });
      await reached.promise;
      await first.stop();
      held.resolve();
      await until(async () => (await second.api.get(`/transfers/${body.id}`)).body.status === 'COMPLETED');
    });
  });

  test('hints are told at once, then at most once in 250 ms, and the last one when it ends', () => {
    jest.useFakeTimers();
    try {
      const tell = jest.fn<ClusterEvents['tell']>();
      const hints = new QueueHints({ ...new LocalBus().join(), tell });
      const times = (): number => tell.mock.calls.length;
      for (let n = 0; n < 100; n++) hints.tell();
      expect(times()).toBe(1);
      jest.advanceTimersByTime(249);
      expect(times()).toBe(1);
      jest.advanceTimersByTime(1);
      expect(times()).toBe(2);
      jest.advanceTimersByTime(1000);
      expect(times()).toBe(2);
      for (let n = 0; n < 2; n++) hints.tell();
      expect(times()).toBe(3);
      hints.stop();
      jest.advanceTimersByTime(1000);
      expect(times()).toBe(4);
      expect(new Set(tell.mock.calls.flat())).toEqual(new Set(['queue']));
    } finally {
      jest.useRealTimers();
    }
  });
});
