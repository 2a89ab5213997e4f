/** What a request may do with a transfer that was cut off, and the leases of transfers that run. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import { AT_ONCE, useRestarts } from './support/restarting.js';
import { expectNoSecrets } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);
  const { start, sendBig } = useRestarts(world);

  describe('what a request may do with a transfer', () => {
    const statusAndError = async (
      call: Promise<{ readonly status: number; readonly body: { readonly error?: string } }>,
    ) => {
      const { status, body } = await call;
      return [status, body.error];
    };

    test('replay: a new transfer from the same request', async () => {
      const { partner, service } = await start([]);
      const first = await sendBig(service, { label: 'L', recordLength: 500 });
      const { status, body, headers } = await service.api.post(`/transfers/${first.id}/replay`);
      expect([status, headers['location']]).toEqual([202, `/api/v1/transfers/${body.id}`]);
      expect(body.id).not.toBe(first.id);
      const end = await service.exchange.queue.whenEnded(body.id as string, 10_000, new AbortController().signal);
      expect(end ?? (await service.transfers.find(body.id as string))).toMatchObject({ status: 'COMPLETED' });
      expect(
        partner.creates.map(({ transferId, restarted, logicalAttributes }) => [
          transferId,
          restarted,
          logicalAttributes?.fileLabel,
        ]),
      ).toEqual([
        [1, undefined, 'L'],
        [2, undefined, 'L'],
      ]);
      const received = await world.receive(service);
      const again = await service.api.post(`/transfers/${received.id}/replay?wait=90`);
      expect([again.status, again.body.status]).toEqual([200, 'COMPLETED']);
      expect(await world.filesIn(service, 'received')).toEqual(['X', `X_${again.body.id}`]);
      await rm(join(service.data, 'send/big'));
      expect(await statusAndError(service.api.post(`/transfers/${first.id}/replay`))).toEqual([404, 'FILE_NOT_FOUND']);
    });

    test('what has ended is not cancelled or tried again, what has not is not replayed', async () => {
      const { service } = await start([], {}, { retry: { ...AT_ONCE, initialDelay: 600_000, maxDelay: 600_000 } });
      const done = await sendBig(service);
      for (const verb of ['cancel', 'retry']) {
        expect(await statusAndError(service.api.post(`/transfers/${done.id}/${verb}`))).toEqual([409, 'CONFLICT']);
      }
      for (const verb of ['cancel', 'retry', 'replay']) {
        const nobody = '00000000-0000-4000-8000-000000000000';
        expect(await statusAndError(service.api.post(`/transfers/${nobody}/${verb}`))).toEqual([404, 'NOT_FOUND']);
        expect(await statusAndError(service.api.post(`/transfers/x/${verb}`))).toEqual([400, 'VALIDATION_ERROR']);
        expect(await statusAndError(service.api.get(`/transfers/${nobody}/${verb}`))).toEqual([
          405,
          'METHOD_NOT_ALLOWED',
        ]);
      }
      await service.exchange.queue.stop(0);
      const { body: waiting } = await service.api.post('/transfers/send', {
        ...{ server: 'bank', virtualFile: 'V', fileContent: CONTENT },
      });
      expect(await statusAndError(service.api.post(`/transfers/${waiting.id}/replay`))).toEqual([409, 'CONFLICT']);
      const { status, body } = await service.api.post(`/transfers/${waiting.id}/cancel`);
      expect([status, body]).toMatchObject([202, { status: 'CANCELLED', diagnostic: '2-216', startTime: null }]);
      const replayed = await service.api.post(`/transfers/${waiting.id}/replay`);
      expect([replayed.status, replayed.body.status]).toEqual([202, 'PENDING']);
    });

    test('the server of a transfer that ended is gone: 409', async () => {
      const { service } = await start([{ from: 'client', afterBytes: 10 }], {}, { retry: { ...AT_ONCE, attempts: 1 } });
      const failed = await sendBig(service);
      await service.api.delete('/servers/1');
      for (const verb of ['retry', 'replay']) {
        expect(await statusAndError(service.api.post(`/transfers/${failed.id}/${verb}`))).toEqual([409, 'CONFLICT']);
      }
    });

    test('cancel while data flow: IDT 16 with 2-216, CANCELLED, nothing is kept', async () => {
      const reached = deferred();
      const held = deferred();
      const { partner, service } = await start([], {
        before: {
          checkpoint: () => {
            reached.resolve();
            return held.promise;
          },
        },
      });
      const { body: sent } = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        filename: 'big',
      });
      await reached.promise;
      const cancelled = service.api.post(`/transfers/${sent.id}/cancel?wait=90`);
      const { status, body } = await cancelled;
      held.resolve();
      expect([status, body]).toMatchObject([200, { status: 'CANCELLED', restartable: false, errorCode: null }]);
      expect(body.errorMessage).toBe('cancelled on request');
      expect(partner.failures).toMatchObject([{ diagnostic: '2-216', endCode: 16 }]);
      expect(partner.written).toEqual([]);
    });

    test('cancel of what another process runs, and of what waits with staged data', async () => {
      const reached = deferred();
      const never = deferred();
      const { service } = await start([], {
        before: { checkpoint: () => (reached.resolve(), never.promise) },
      });
      const other = await world.service({ node: 'other', data: service.data, progressMs: 20 });
      await service.exchange.queue.stop(0);
      const { body: sent } = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        filename: 'big',
      });
      other.exchange.queue.arrived({ server_id: 1 });
      await reached.promise;
      expect((await service.api.post(`/transfers/${sent.id}/cancel`)).status).toBe(202);
      await until(async () => (await service.api.get(`/transfers/${sent.id}`)).body.status === 'CANCELLED');
      never.resolve();
    });

    test('cancel removes what was staged', async () => {
      const retry = { ...AT_ONCE, initialDelay: 600_000, maxDelay: 600_000 };
      const { service } = await start([{ from: 'server', afterBytes: 50_000 }], {}, { retry });
      const { body } = await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
      await until(async () => (await service.api.get(`/transfers/${body.id}`)).body.nextAttemptAt !== null);
      expect(await world.filesIn(service, 'received')).toHaveLength(2);
      expect((await service.api.post(`/transfers/${body.id}/cancel`)).body.status).toBe('CANCELLED');
      expect(await world.filesIn(service, 'received')).toEqual([]);
    });
  });

  describe('leases', () => {
    test('one that was lost ends its transfer here; the record belongs to the other process', async () => {
      const reached = deferred();
      const never = deferred();
      const { service, partner } = await start([], {
        before: { endTransfer: () => (reached.resolve(), never.promise) },
      });
      const { body: sent } = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        filename: 'big',
      });
      await reached.promise;
      // As if this process had been asleep for longer than its lease.
      await world
        .database()
        .knex('transfers')
        .update({ lease_until: new Date(0) });
      expect(await service.transfers.requeueOrphans('expired', 5, 'gone')).toMatchObject([{ id: sent.id }]);
      await world.database().knex('remote_servers').update({ enabled: false });
      const other = await world.service({ node: 'other', data: service.data });
      // The test takes it, at its own time.
      await other.exchange.queue.stop(0);
      await world.database().knex('remote_servers').update({ enabled: true });
      const { jobs } = await other.transfers.take({
        ...{ node: 'other', leaseSeconds: 30, maxPerServer: 5 },
        ...{ slots: 1, freely: 1, minQueued: 1, countTo: 1 },
      });
      expect(jobs).toMatchObject([{ id: sent.id, fence: 2, restartable: true, pesit_transfer_id: 1 }]);
      never.resolve();
      await until(() => Promise.resolve(partner.written.length === 1 && service.exchange.queue.running === 0));
      expect(await service.transfers.find(sent.id as string)).toMatchObject({ status: 'IN_PROGRESS', node: 'other' });
      expect(service.log.lines.join()).toContain('another process has taken it over');
    });

    test('a process that was killed: another takes its transfers over when its lease has run out', async () => {
      const reached = deferred();
      const never = deferred();
      let ends = 0;
      const { service, partner } = await start([], {
        before: { endTransfer: () => (++ends === 1 ? (reached.resolve(), never.promise) : undefined) },
      });
      const { body: sent } = await service.api.post('/transfers/send', {
        server: 'bank',
        virtualFile: 'V',
        filename: 'big',
      });
      await reached.promise;
      await world
        .database()
        .knex('transfers')
        .update({ lease_until: new Date(0), node: 'dead' });
      expect(await service.transfers.requeueOrphans('expired', 5, 'gone')).toMatchObject([{ status: 'PENDING' }]);
      const other = await world.service({ node: 'other', data: service.data });
      await until(async () => (await other.transfers.find(sent.id as string))?.status === 'COMPLETED');
      expect(partner.creates.map(({ transferId, restarted }) => [transferId, restarted])).toEqual([
        [1, undefined],
        [1, 1],
      ]);
      never.resolve();
    });
  });
});
