/** The history of transfers: pages, filters, order, what it adds up to. */
import { randomUUID } from 'node:crypto';

import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { HistorySums, PeriodicWork } from '@pesit-node/service';
import type { AsLeader } from '@pesit-node/service';
import { plansOf, silentLogger, withDatabase } from '@pesit-node/service/testing';

import { SUMMED } from '../src/transfers/history.js';

import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);
  let service: Service;

  /** A service with the server `bank`, which is enabled but never reached: the queue does not start. */
  const idle = async (options: Parameters<typeof world.service>[0] = {}): Promise<void> => {
    service = await world.service(options);
    await world.remote(service, 1);
    await service.exchange.queue.stop(0);
  };

  describe('the history', () => {
    const rows = 25;
    const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

    beforeEach(async () => {
      await idle();
      await world.remote(service, 2, { name: 'other' });
      const { knex } = world.database();
      for (let n = 0; n < rows; n++) {
        await knex('transfers').insert({
          ...{ id: id(n), status: 'PENDING', direction: n % 2 === 0 ? 'SEND' : 'RECEIVE', server_id: n < 5 ? 2 : 1 },
          ...{
            server_name: n < 5 ? 'other' : 'bank',
            partner_id: 'NODE1',
            filename: `f${n % 3}`,
            settings: n === 0 ? { label: 'Orders of March' } : {},
            size: n,
          },
          created_time: new Date(Date.UTC(2026, 10, 1 + Math.floor(n / 5), 12, n % 5)),
        });
      }
      await knex('transfers')
        .whereIn('id', [id(1), id(2)])
        .update({ status: 'CANCELLED', end_time: knex.fn.now() });
      await knex('transfers')
        .where({ id: id(1) })
        .update({ virtual_file: 'IN', diagnostic: '2-216' });
      await knex('transfers')
        .where({ id: id(2) })
        .update({ remote_filename: 'ORDERS', node: 'pod-1' });
    });

    test('by keys: each record once, newest first, to the last', async () => {
      const seen: number[] = [];
      for (let next: string | null | undefined; next !== null;) {
        const after = next === undefined ? '' : `&after=${next}`;
        const { body } = await service.api.get(`/transfers?size=7${after}`);
        seen.push(...ids(body));
        next = (body as { readonly next: string | null }).next;
      }
      expect(seen).toEqual(Array.from({ length: rows }, (_, index) => rows - 1 - index));
    });

    test.each([
      ['', ['transfers_direction']],
      ['sort=createdTime,asc&page=2', ['transfers_direction']],
      ['direction=SEND', ['transfers_direction']],
      ['serverId=1&from=2026-11-01', ['transfers_server']],
      ['status=FAILED', ['transfers_failed']],
      ['diagnostic=2-205', ['transfers_diagnostic']],
      ['type=MESSAGE', ['transfers_messages']],
      // These are looked at one by one.
      ['virtualFileId=IN', ['transfers_direction']],
      ['q=orders', ['transfers_direction']],
      // Of these there are no more than the queue holds: they are sorted.
      ['status=PENDING', ['transfers_fresh', 'transfers_delayed']],
      ['status=IN_PROGRESS', ['transfers_running']],
    ])('an index has the records of %j', async (query, indexes) => {
      const plans = await plansOf(world.database().knex, 'transfers', () => service.api.get(`/transfers?${query}`));
      expect(plans.length).toBeGreaterThan(1);
      for (const plan of plans) {
        for (const index of indexes) expect(plan).toContain(index);
        expect(plan).not.toContain('Seq Scan on transfers');
        if (!/status=(PENDING|IN_PROGRESS)/.test(query)) expect(plan).not.toMatch(/-> {2}Sort\b|^Sort\b/m);
      }
    });

    const ids = (body: { readonly content: readonly { readonly id: string }[] }): number[] =>
      body.content.map((record) => Number(record.id.slice(-12)));

    test('pages of 20, newest first, the same under both paths', async () => {
      const { body } = await service.api.get('/transfers/history');
      expect(body).toMatchObject({ totalElements: 25, totalPages: 2, number: 0, size: 20 });
      expect(body).toMatchObject({ totalIsExact: true, next: expect.any(String) });
      expect(ids(body)).toEqual(Array.from({ length: 20 }, (_, index) => 24 - index));
      expect((await service.api.get('/transfers')).body).toEqual(body);
      const second = await service.api.get('/transfers/history?page=1&size=10');
      expect(ids(second.body)).toEqual(Array.from({ length: 10 }, (_, index) => 14 - index));
      expect((await service.api.get('/transfers/history?page=9')).body).toMatchObject({
        content: [],
        totalElements: 25,
      });
    });

    const FILTERS: readonly (readonly [string, readonly number[]])[] = [
      ['serverId=2&sort=createdTime,asc', [0, 1, 2, 3, 4]],
      ['serverId=2&direction=SEND&sort=size,asc', [0, 2, 4]],
      ['status=CANCELLED&sort=size,desc', [2, 1]],
      ['status=COMPLETED', []],
      ['from=2026-11-05&sort=size,asc', [20, 21, 22, 23, 24]],
      ['to=2026-11-01&sort=size,asc', [0, 1, 2, 3, 4]],
      ['from=2026-11-02&to=2026-11-02&sort=size,asc', [5, 6, 7, 8, 9]],
      ['from=2026-11-05T12:03:00Z&sort=size,asc', [23, 24]],
      ['partnerId=NODE1&to=2026-11-01&sort=createdTime,asc', [0, 1, 2, 3, 4]],
      ['partnerId=NODE2', []],
      ['virtualFileId=IN', [1]],
      ['diagnostic=2-216', [1]],
      ['node=pod-1', [2]],
      ['q=F1&to=2026-11-01', [4, 1]],
      ['q=orders', [2, 0]],
      ['q=of+march', [0]],
      ['status=PENDING&serverId=2', [4, 3, 0]],
      ['restartable=true', []],
    ];
    test('as a file, with the filters', async () => {
      const { text } = await service.api.get('/transfers/export.jsonl?serverId=2');
      const { body } = await service.api.get('/transfers?serverId=2');
      expect(
        text
          .trimEnd()
          .split('\n')
          .map((line: string) => JSON.parse(line) as unknown),
      ).toEqual(body.content);
      const csv = await service.api.get('/transfers/export.csv?serverId=2');
      expect(csv.text.split('\r\n')).toHaveLength(7);
    });

    test('filters and sort', async () => {
      for (const [query, expected] of FILTERS) {
        const { body } = await service.api.get(`/transfers/history?${query}`);
        expect([query, ids(body)]).toEqual([query, expected]);
      }
      const { body } = await service.api.get('/transfers/history?from=2026-11-05&sort=filename,asc');
      expect(body.content.map(({ filename }: { filename: string }) => filename).join()).toBe('f0,f0,f1,f2,f2');
    });

    test('what it adds up to, with the filters', async () => {
      await world
        .database()
        .knex('transfers')
        .where({ id: id(1) })
        .update({ bytes_transferred: 5_000_000_000 });
      expect((await service.api.get('/transfers/stats')).body).toEqual({
        totalTransfers: 25,
        byStatus: { PENDING: 23, IN_PROGRESS: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 2 },
        byDirection: { SEND: 13, RECEIVE: 12 },
        ...{ bytesTransferred: 5_000_000_000, failureRate: 0, bytesPerSecond: null, duration: null },
      });
      expect((await service.api.get('/transfers/stats?serverId=2&direction=RECEIVE&to=2026-11-01')).body).toEqual({
        totalTransfers: 2,
        byStatus: { PENDING: 1, IN_PROGRESS: 0, COMPLETED: 0, FAILED: 0, CANCELLED: 1 },
        byDirection: { SEND: 0, RECEIVE: 2 },
        ...{ bytesTransferred: 5_000_000_000, failureRate: 0, bytesPerSecond: null, duration: null },
      });
      expect((await service.api.get('/transfers/stats?size=1')).status).toBe(400);
    });

    test('what it adds up to is the same before and after days were added up', async () => {
      const { knex } = world.database();
      const ended = { status: 'COMPLETED', start_time: knex.raw('created_time'), diagnostic: '0-000' };
      const past = { created_time: knex.raw("now() - interval '5 days' - interval '1 hour' * size") };
      await knex('transfers').update(past);
      await knex('transfers')
        .whereIn('id', [id(3), id(4), id(5)])
        .update({ status: 'IN_PROGRESS', node: 'n', fence: 1, lease_until: knex.fn.now() });
      await knex('transfers')
        .whereIn('id', [id(4), id(5)])
        .update({
          ...ended,
          lease_until: null,
          end_time: knex.raw("created_time + interval '2 seconds'"),
          bytes_transferred: 9,
        });
      const groups = ['day', 'status', 'partner', 'server', 'virtualFile', 'node'].map((one) => `groupBy=${one}`);
      const week = `groupBy=hour&from=${new Date(Date.now() - 7 * 86_400_000).toISOString()}`;
      const queries = ['serverId=2', 'virtualFileId=IN&groupBy=day', ...groups, week];
      const answers = () =>
        Promise.all(queries.map(async (one) => (await service.api.get(`/transfers/stats?${one}`)).body));
      const before = await answers();
      expect(before[0]).toMatchObject({ totalTransfers: 5, byStatus: { COMPLETED: 1 }, bytesPerSecond: 5 });
      const periodic = new PeriodicWork({ logger: silentLogger });
      const asLeader: AsLeader = (work) => knex.transaction(work);
      await new HistorySums({ knex, asLeader, table: SUMMED, periodic, logger: silentLogger }).run();
      expect(Number((await knex('transfer_sums').count())[0]!['count'])).toBeGreaterThan(0);
      expect(await answers()).toEqual(before);
    });

    test('a wrong query is a 400', async () => {
      for (const query of [
        'page=-1',
        'size=0',
        'size=501',
        'sort=password,asc',
        'sort=size,up',
        'status=DONE',
        'direction=BOTH',
        'serverId=x',
        'from=yesterday',
        'x=1',
        'diagnostic=2205',
        'after=1.1',
        'q=',
      ]) {
        const { status, body } = await service.api.get(`/transfers/history?${query}`);
        expect([query, status, body.error]).toEqual([query, 400, 'VALIDATION_ERROR']);
      }
    });

    test('a record that is not there, or is no UUID', async () => {
      const none = await service.api.get(`/transfers/${randomUUID()}`);
      expect([none.status, none.body.error]).toEqual([404, 'NOT_FOUND']);
      expect((await service.api.get('/transfers/17')).status).toBe(400);
      expect((await service.api.get(`/transfers/${randomUUID()}/content`)).status).toBe(404);
      const send = await service.api.get(`/transfers/${id(0)}/content`);
      expect([send.status, send.body.message]).toEqual([
        409,
        expect.stringMatching(/^Transfer \S+ is a SEND: only received files/),
      ]);
      const pending = await service.api.get(`/transfers/${id(3)}/content`);
      expect([pending.status, pending.body.message]).toEqual([409, expect.stringContaining('PENDING')]);
    });
  });
});
