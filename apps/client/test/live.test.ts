/** Live events of the client app's transfers: records, figures of both directions, and the point of a running send. */
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { TestEventReader, withDatabase } from '@pesit-node/service/testing';
import type { ReadEvent } from '@pesit-node/service/testing';

import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { deferred, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const CONTENT = Buffer.alloc(100_000, 'x');
const isOver = ({ status }: ReadEvent['data']): boolean => status !== 'PENDING' && status !== 'IN_PROGRESS';

withDatabase((harness) => {
  const readers: TestEventReader[] = [];
  // Before the service stops: it would wait for them.
  afterEach(() => {
    for (const reader of readers.splice(0)) reader.close();
  });
  const world = useWorld(harness);
  const read = async (at: Service, path = 'events'): Promise<TestEventReader> => {
    const headers = { authorization: AUTHORIZATION };
    const reader = await TestEventReader.open(at.http.port, `/api/v1/transfers/${path}`, headers);
    readers.push(reader);
    return reader;
  };

  /** Its end is not answered before `go`. */
  const held = async () => {
    const go = deferred();
    const partner = await world.partner({
      ...{ files: { X: CONTENT }, recordLength: 1000, syncPoints: { intervalKb: 8, window: 2 }, restarts: true },
      before: { endTransfer: () => go.promise },
    });
    const service = await world.service({ liveTickMs: 20 });
    await world.remote(service, partner.port, { syncInterval: 8, syncWindow: 2 });
    return { service, go: go.resolve };
  };

  test.each([
    ['send', { fileContent: CONTENT.toString('base64'), remoteFilename: 'R' }, 'SEND'],
    ['receive', { virtualFile: 'X' }, 'RECEIVE'],
  ])('%s: its record, its figures with the point, and its end', async (verb, fields, direction) => {
    const { service, go } = await held();
    const reader = await read(service);
    expect(await reader.next()).toMatchObject({ event: 'reset', data: { reason: 'new' } });
    const { body } = await service.api.post(`/transfers/${verb}`, { server: 'bank', ...fields });
    const { id } = body as { readonly id: string };
    const begun = await reader.next('transfer', ({ status }: ReadEvent['data']) => status === 'IN_PROGRESS');
    expect(begun.data).toMatchObject({ id, direction, serverName: 'bank' });
    const all = ([one]: ReadEvent['data']): boolean => one.bytesTransferred === CONTENT.length && one.syncPoint >= 11;
    const [figures] = (await reader.next('progress', all)).data;
    // PI 42 of the partner: whole kilobytes.
    const announced = direction === 'SEND' ? null : Math.ceil(CONTENT.length / 1024) * 1024;
    expect(figures).toMatchObject({ id, expectedBytes: announced ?? CONTENT.length, isAnnounced: announced !== null });
    const now = (await service.api.get(`/transfers/${id}`)).body;
    expect(now).toMatchObject({ announcedSize: announced, size: announced === null ? CONTENT.length : null });
    expect(now.status).toBe('IN_PROGRESS');
    // The last one may have become stable since.
    expect([figures.syncPoint, Number(figures.syncPoint) + 1]).toContain(now.syncPoint);
    const one = await read(service, `${id}/events`);
    expect(await one.next()).toMatchObject({ event: 'transfer', data: { id, status: 'IN_PROGRESS' } });
    go();
    expect(await one.next('transfer', isOver)).toMatchObject({ id: 'over', data: { status: 'COMPLETED' } });
    await one.over();
    const over = await reader.next('transfer', isOver);
    // The record alone has more than a page.
    expect((await service.api.get(`/transfers/${id}`)).body).toMatchObject(over.data as object);
    expect(over.data.syncPoint).toBeGreaterThanOrEqual(figures.syncPoint);
  });

  describe('a transfer that waits', () => {
    test('is told when it is asked for, and when it is cancelled', async () => {
      const service = await world.service({ liveTickMs: 20 });
      await world.remote(service, 9);
      const reader = await read(service);
      await reader.next('reset');
      await service.exchange.queue.stop(0);
      const { body } = await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' });
      expect((await reader.next('transfer')).data).toMatchObject({ id: body.id, status: 'PENDING' });
      await service.api.post(`/transfers/${body.id}/cancel`);
      expect((await reader.next('transfer', isOver)).data).toMatchObject({ id: body.id, status: 'CANCELLED' });
    });

    test('for long, and that another pod runs between two looks: its outcome is told to both kinds of readers', async () => {
      const service = await world.service({ liveTickMs: 20 });
      await world.remote(service, 9);
      await service.exchange.queue.stop(0);
      const { id } = (await service.api.post('/transfers/receive', { server: 'bank', virtualFile: 'X' })).body as {
        readonly id: string;
      };
      const { knex } = world.database();
      await knex('transfers').update({ created_time: knex.raw("now() - interval '1 hour'") });
      const [all, one] = [await read(service), await read(service, `${id}/events`)];
      await all.next('reset');
      await one.next('transfer');
      const taken = { status: 'IN_PROGRESS', node: 'other', fence: 1, lease_until: knex.fn.now() };
      const why = { diagnostic: '2-205', error_code: 'FILE_NOT_FOUND' };
      const ended = { status: 'FAILED', lease_until: null, end_time: knex.fn.now(), ...why };
      await knex.transaction(async (transaction) => {
        await transaction('transfers').where({ id }).update(taken);
        await transaction('transfers').where({ id }).update(ended);
      });
      for (const reader of [all, one])
        expect((await reader.next('transfer', isOver)).data).toMatchObject({ id, status: 'FAILED' });
      await one.over();
    });

    test('one that is not there: 404', async () => {
      const service = await world.service();
      expect((await read(service, '6f4f0f1e-0000-4000-8000-000000000000/events')).status).toBe(404);
    });
  });
});
