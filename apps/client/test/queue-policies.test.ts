/** Which transfer comes first, when it may begin, when it is given up, and which ones wait for each other. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { transferStore } from '../src/transfers/store.js';
import { refusal } from './support/partner.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const HOUR = 3_600_000;
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
const spoolRetention = { completed: HOUR, failed: HOUR };
const ONE = { corePoolSize: 1, maxPoolSize: 1, queueCapacity: 100 };

withDatabase((harness) => {
  const world = useWorld(harness);

  const post = async (service: Service, fields: object = {}) => {
    const request = { server: 'bank', virtualFile: 'V', fileContent: CONTENT, ...fields };
    const { status, body } = await service.api.post('/transfers/send', request);
    expect(status).toBe(202);
    return body;
  };
  const find = async (service: Service, { id }: { readonly id: string }) =>
    (await service.api.get(`/transfers/${id}`)).body;
  const hasEnded = (service: Service, record: { readonly id: string }) =>
    until(async () => (await find(service, record)).endTime !== null);

  /** A partner that refuses files of the labels in `refused`, finally, and holds the first one until it is told. */
  const partnerOf = async (refused: Set<string> = new Set()) => {
    const held = deferred();
    const reached = deferred();
    const labels: string[] = [];
    const partner = await world.partner({
      before: {
        create: async (parameters) => {
          const { fileLabel = '' } = parameters?.logicalAttributes ?? {};
          labels.push(fileLabel);
          reached.resolve();
          await held.promise;
          if (refused.has(fileLabel)) throw refusal('2-226', 'not this one');
        },
      },
    });
    return { partner, held, reached, labels, refused };
  };

  test('the urgent one first, then in the order of their arrival; PI 17 says so', async () => {
    const { partner, held, reached, labels } = await partnerOf();
    const service = await world.service({ settings: ONE });
    await world.remote(service, partner.port);
    await post(service, { remoteFilename: 'first' });
    await reached.promise;
    const records = [];
    for (const [remoteFilename, fields] of [
      ['low', { priority: 2 }],
      ['normal', {}],
      ['urgent', { priority: 0 }],
      ['normal too', { priority: 1, pesitPriority: 2 }],
    ] as const) {
      records.push(await post(service, { remoteFilename, ...fields }));
    }
    expect(records.map(({ priority }) => priority as number)).toEqual([2, 1, 0, 1]);
    held.resolve();
    await hasEnded(service, records[0]);
    expect(labels).toEqual(['first', 'urgent', 'normal', 'normal too', 'low']);
    expect(partner.creates.map(({ priority }) => priority)).toEqual([0, 0, 0, 2, 2]);
  });

  describe('time', () => {
    test('nothing begins before its time, or after it; what is given up says why, and a retry sends it', async () => {
      const { partner, held, reached, labels } = await partnerOf();
      const service = await world.service({ settings: { ...ONE, spoolRetention }, pollMs: 20 });
      await world.remote(service, partner.port);
      const running = await post(service, { remoteFilename: 'first', expiresAt: inMs(HOUR) });
      await reached.promise;
      const { knex } = world.database();
      const over = { expires_at: knex.raw(`now() - interval '1 second'`) };
      // While it runs: that attempt is not ended by it.
      await knex('transfers').where({ id: running.id }).update(over);
      const notBefore = inMs(HOUR);
      const later = await post(service, { remoteFilename: 'later', notBefore });
      expect(await find(service, later)).toMatchObject({ status: 'PENDING', nextAttemptAt: notBefore, notBefore });
      const late = await post(service, { remoteFilename: 'late', expiresAt: inMs(-1000) });
      // Said when everybody has heard of it, which is a moment after its record has it.
      await until(() => Promise.resolve(service.log.lines.some((line) => line.includes('gave the transfer up'))));
      expect(await find(service, late)).toMatchObject({
        ...{ status: 'FAILED', diagnostic: '2-221', errorCode: 'TIMEOUT', attempts: 0, startTime: null },
        errorMessage: expect.stringContaining('expiresAt'),
      });
      held.resolve();
      await hasEnded(service, running);
      expect(await find(service, running)).toMatchObject({ status: 'COMPLETED' });
      const { body: again } = await service.api.post(`/transfers/${late.id}/retry?wait=60`);
      expect(again).toMatchObject({ status: 'COMPLETED', expiresAt: null });
      const { body: at } = await service.api.post(`/transfers/${later.id}/retry?wait=60`);
      expect(at).toMatchObject({ status: 'COMPLETED', notBefore });
      expect(labels).toEqual(['first', 'late', 'later']);
      const { body: replayed } = await service.api.post(`/transfers/${later.id}/replay?wait=60`);
      expect(replayed).toMatchObject({ status: 'COMPLETED', notBefore: null });
    });

    test.each([
      [{ notBefore: inMs(HOUR), expiresAt: inMs(HOUR / 2) }, 'expiresAt'],
      [{ notBefore: '2026-11-21T09:30:15' }, 'notBefore'],
      [{ expiresAt: 'tomorrow' }, 'expiresAt'],
      [{ priority: 3 }, 'priority'],
      [{ pesitPriority: -1 }, 'pesitPriority'],
      [{ ordered: 'yes' }, 'ordered'],
    ])('%j is refused, with the field', async (fields, field) => {
      const service = await world.service();
      const { status, body } = await service.api.post('/transfers/send', {
        ...{ server: 'bank', virtualFile: 'V', fileContent: CONTENT, ...fields },
      });
      expect(status).toBe(400);
      expect(body.details).toMatchObject([{ field }]);
    });
  });

  describe('order', () => {
    test.each([true, false])('a failure, held: %s', async (holdsOrder) => {
      const { partner, held, labels, refused } = await partnerOf(new Set(['b']));
      held.resolve();
      const service = await world.service({ settings: { corePoolSize: 8, maxPoolSize: 8, holdsOrder } });
      await world.remote(service, partner.port);
      const records = [];
      for (const remoteFilename of ['a', 'b', 'c', 'd']) {
        records.push(await post(service, { remoteFilename, ordered: true }));
      }
      const [, b, c, d] = records;
      // Of another order, and of none.
      const others = [await post(service, { virtualFile: 'W', ordered: true }), await post(service)];
      for (const other of others) await hasEnded(service, other);
      await hasEnded(service, b);
      if (holdsOrder) {
        expect(await find(service, c)).toMatchObject({
          status: 'PENDING',
          statusReason: expect.stringContaining(b.id),
        });
        refused.clear();
        await service.api.post(`/transfers/${b.id}/retry`);
      }
      await hasEnded(service, d);
      const ofThese = labels.filter((label) => label !== '');
      expect(ofThese).toEqual(holdsOrder ? ['a', 'b', 'b', 'c', 'd'] : ['a', 'b', 'c', 'd']);
      const times = world.database().knex('transfers').where({ virtual_file: 'V' }).whereNotNull('remote_filename');
      const rows: readonly { start_time: Date; end_time: Date }[] = await times.orderBy('position').select();
      // The one behind it began no sooner than it had ended; one that failed and was tried again began earlier.
      for (const [i, row] of rows.slice(1).entries()) {
        expect(row.end_time.getTime()).toBeGreaterThanOrEqual(rows[i]?.end_time.getTime() ?? 0);
      }
    });

    test('released by an operator, those behind a failed one go; nothing else can be', async () => {
      const { partner, held } = await partnerOf(new Set(['a']));
      held.resolve();
      const service = await world.service();
      await world.remote(service, partner.port);
      const a = await post(service, { remoteFilename: 'a', ordered: true });
      const b = await post(service, { remoteFilename: 'b', ordered: true });
      await hasEnded(service, a);
      expect((await service.api.post(`/transfers/${b.id}/release`)).status).toBe(409);
      expect((await service.api.post(`/transfers/${a.id}/release`)).body).toMatchObject({ status: 'FAILED' });
      await hasEnded(service, b);
      expect(await find(service, b)).toMatchObject({ status: 'COMPLETED', ordered: true });
      expect((await service.api.post(`/transfers/${a.id}/release`)).status).toBe(409);
    });

    test('over processes that take at the same time, one of which dies: one after the other', async () => {
      const service = await world.service();
      await world.remote(service, 1);
      await service.exchange.queue.stop(0);
      const { knex } = world.database();
      const pods = ['a', 'b', 'c'];
      const store = transferStore(knex);
      const ids: string[] = [];
      for (let n = 0; n < 12; n++) ids.push((await post(service, { ordered: true })).id as string);
      const limits = { leaseSeconds: 30, maxPerServer: 64, slots: 8, freely: 8, minQueued: 1, countTo: 100 };
      const begun: string[] = [];
      while (begun.length < ids.length) {
        const taken = await Promise.all(pods.map((node) => store.take({ ...limits, node })));
        const jobs = taken.flatMap(({ jobs: some }) => some);
        // Of all of them, one has the next.
        expect(jobs).toHaveLength(1);
        const [job] = jobs;
        if (job === undefined) break;
        const dies = begun.length === 5 && job.failures === 0;
        if (dies) {
          await knex('transfers')
            .where({ id: job.id })
            .update({ lease_until: knex.raw(`now() - interval '1 second'`) });
          await store.requeueOrphans('expired', 5, 'gone');
        } else {
          begun.push(job.id);
          await store.end(job, { status: 'COMPLETED' });
        }
      }
      expect(begun).toEqual(ids);
    });
  });
});
