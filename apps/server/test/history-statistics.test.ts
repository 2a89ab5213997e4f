/** Totals of the history: exact at any moment, whether days were added up before or not. */
import { beforeEach, describe, expect, test } from '@jest/globals';
import { HistoryRetention, HistorySums, PeriodicWork } from '@pesit-node/service';
import { silentLogger, withDatabase } from '@pesit-node/service/testing';
import type { Knex } from 'knex';

import { HISTORY, SUMMED } from '../src/transfers/history.js';
import { HistoryStatistics } from '@pesit-node/service';
import { useRest } from './support/rest.js';

const DIRECTIONS = ['SEND', 'RECEIVE'];
const STATUSES = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED'];

withDatabase((harness) => {
  const rest = useRest(harness);
  const knex = (): Knex => rest.database.knex;
  const sumsOn = (on: Knex): HistorySums<object> =>
    new HistorySums({
      ...{ knex: on, asLeader: (work) => on.transaction(work), table: SUMMED, logger: silentLogger },
      periodic: new PeriodicWork({ logger: silentLogger }),
    });

  /** Ended, or not, so many days ago; `ms` is the duration. */
  const add = async (days: number, fields: Record<string, unknown> = {}, ms = 1000): Promise<number> => {
    const { status = 'COMPLETED', ...more } = fields;
    const isOpen = status === 'PENDING' || status === 'IN_PROGRESS';
    // That of today is too young to be marked or added up, at whatever time of the day.
    const begins = `date_trunc('day', now(), 'UTC') - make_interval(days => ?) + interval '12 hours'`;
    const { rows } = await knex().raw<{ rows: [{ readonly start: Date }] }>(
      `select case when ? = 0 then now() else ${begins} end as start`,
      [days, days],
    );
    const { start } = rows[0];
    const [row] = await knex()('transfers')
      .insert({
        ...{ partner_id: 'A', direction: 'SEND', listener: 'S', node: 'n', session_id: 's', remote_address: '::1' },
        ...{ instance: '00000000-0000-4000-8000-000000000000', start_time: start, bytes_transferred: 100 },
        ...more,
        status: isOpen ? status : 'IN_PROGRESS',
      })
      .returning<{ id: number }[]>('id');
    const { id } = row!;
    const end = new Date(start.getTime() + ms);
    const diagnostic = status === 'COMPLETED' ? '0-000' : '2-205';
    if (!isOpen) await knex()('transfers').where({ id }).update({ status, end_time: end, diagnostic });
    return id;
  };

  const stats = async (query = ''): Promise<Record<string, unknown>> => {
    const { status, body } = await rest.get(`/api/v1/transfers/stats?${query}`);
    expect([status, body]).toEqual([200, expect.anything()]);
    return body as Record<string, unknown>;
  };
  const summed = async (): Promise<number> => Number((await knex()('transfer_sum_spans').count())[0]!['count']);

  /** Records of several days, partners and outcomes, one of them not ended. */
  beforeEach(async () => {
    await add(3, {}, 100);
    await add(3, { partner_id: 'B', direction: 'RECEIVE', virtual_file_id: 'F' }, 200);
    await add(3, { partner_id: 'B', status: 'FAILED' });
    await add(2, { partner_id: 'B', node: 'm', status: 'CANCELLED' });
    await add(2, { status: 'IN_PROGRESS' });
    await add(2, { type: 'MESSAGE', bytes_transferred: 7 }, 10_000);
    await add(1, { listener: 'T' }, 400);
    await add(0, { partner_id: 'B' }, 800);
  });

  const QUERIES = [
    '',
    ...['day', 'direction', 'status', 'diagnostic', 'partner', 'server', 'virtualFile', 'node', 'type'].map(
      (one) => `groupBy=${one}`,
    ),
    ...[
      'partnerId=B',
      'partnerId=B&groupBy=day',
      'listener=T',
      'direction=SEND&groupBy=partner',
      'node=m',
      'type=MESSAGE',
    ],
    ...['virtualFileId=F&groupBy=virtualFile', 'diagnostic=2-205&groupBy=day', 'partnerId=B&diagnostic=2-205'],
    // No sums are kept for these.
    ...['partnerId=B&groupBy=node', 'q=nowhere', 'partnerId=B&virtualFileId=F'],
  ];

  test('are the same before and after days were added up, for every group and filter', async () => {
    const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString();
    const periods = ['', `from=${day(3).slice(0, 10)}`, `from=${day(2.5)}&to=${day(0.9)}`];
    const hourly = ['', '&partnerId=B', '&diagnostic=2-205', '&q=nowhere'].map(
      (one) => `groupBy=hour&from=${day(3.5)}${one}`,
    );
    const queries = [...QUERIES.flatMap((query) => periods.map((period) => `${query}&${period}`)), ...hourly];
    const before: unknown[] = [];
    for (const query of queries) before.push(await stats(query));
    expect(await sumsOn(knex()).run()).toBe(await summed());
    expect(await summed()).toBeGreaterThanOrEqual(2);
    for (const [index, query] of queries.entries()) expect([query, await stats(query)]).toEqual([query, before[index]]);
  });

  test('counts, bytes, rates and durations', async () => {
    await sumsOn(knex()).run();
    expect(await stats('groupBy=partner')).toEqual({
      totalTransfers: 8,
      byStatus: { PENDING: 0, IN_PROGRESS: 1, COMPLETED: 5, FAILED: 1, CANCELLED: 1 },
      byDirection: { SEND: 7, RECEIVE: 1 },
      bytesTransferred: 707,
      failureRate: 0.142857,
      bytesPerSecond: Math.round((407 / 11_500) * 1000),
      duration: { p50: expect.any(Number), p95: expect.any(Number) },
      totalGroups: 2,
      groups: [
        expect.objectContaining({ value: 'A', transfers: 4, bytesTransferred: 307 }),
        expect.objectContaining({ value: 'B', transfers: 4, bytesTransferred: 400, failureRate: 0.25 }),
      ],
    });
    const { duration } = (await stats()) as { readonly duration: { readonly p50: number; readonly p95: number } };
    // 100, 200, 400, 800, 10,000 ms: wrong by 5 % at most.
    expect(Math.abs(duration.p50 - 400)).toBeLessThanOrEqual(20);
    expect(Math.abs(duration.p95 - 10_000)).toBeLessThanOrEqual(500);
  });

  test('by hours: those that have any, by their begin, of a week at most', async () => {
    const { oldest } = (await knex()('transfers').min('start_time as oldest').first()) as { readonly oldest: Date };
    const at = (days: number): string => new Date(oldest.getTime() + (3 - days) * 86_400_000).toISOString();
    const [from, to] = [at(3), at(2)];
    const hour = (time: string): string => time.replace('.000Z', 'Z');
    for (const made of [false, true]) {
      if (made) await sumsOn(knex()).run();
      expect(await stats(`groupBy=hour&from=${from}&to=${to}`)).toMatchObject({
        ...{ totalTransfers: 6, totalGroups: 2 },
        groups: [
          { value: hour(from), transfers: 3, byStatus: { COMPLETED: 2, FAILED: 1 }, bytesTransferred: 300 },
          { value: hour(to), transfers: 3, byStatus: { COMPLETED: 1, CANCELLED: 1, IN_PROGRESS: 1 } },
        ],
      });
    }
    for (const period of ['', `to=${to}`, `from=${at(8)}`, `from=${at(30)}&to=${at(22)}`]) {
      const { status, body } = await rest.get(`/api/v1/transfers/stats?groupBy=hour&${period}`);
      const message = expect.stringContaining('groupBy=hour takes a period of 7 days at most');
      expect([status, body]).toMatchObject([400, { details: [{ field: 'from', message }] }]);
    }
    for (const period of [`from=${new Date(Date.now() - 7 * 86_400_000).toISOString()}`, `from=${at(30)}&to=${at(23)}`])
      await stats(`groupBy=hour&${period}`);
  });

  describe('a day that was added up', () => {
    test.each<[string, (knex: Knex) => Promise<unknown>, Record<string, number>]>([
      [
        'a failed transfer is taken up again',
        (on) => on('transfers').where({ status: 'FAILED' }).update({ status: 'IN_PROGRESS', end_time: null }),
        { FAILED: 0, IN_PROGRESS: 2 },
      ],
      [
        'one that runs ends',
        (on) => on('transfers').where({ status: 'IN_PROGRESS' }).update({ status: 'COMPLETED', end_time: on.fn.now() }),
        { COMPLETED: 6, IN_PROGRESS: 0 },
      ],
      [
        'records are removed',
        (on) => on('transfers').where({ partner_id: 'B' }).del(),
        { FAILED: 0, CANCELLED: 0, COMPLETED: 3 },
      ],
    ])('stays exact when %s, and is added up anew', async (_name, change, expected) => {
      const sums = sumsOn(knex());
      await sums.run();
      await change(knex());
      const after = await stats();
      expect(after).toMatchObject({ byStatus: expected });
      expect(await sums.run()).toBeGreaterThan(0);
      expect(await stats()).toEqual(after);
      expect(await knex()('transfer_sum_marks').select()).toEqual([]);
    });

    test('a change that is committed while the day is made is neither lost nor counted twice', async () => {
      const sums = sumsOn(knex());
      const changing = await knex().transaction();
      await changing('transfers').where({ status: 'FAILED' }).update({ status: 'IN_PROGRESS', end_time: null });
      // The day is made from what is committed: not of this transaction, which began before.
      const [{ since }] = (
        await knex().raw<{ rows: [{ readonly since: Date }] }>(
          `select date_trunc('day', start_time, 'UTC') as since from transfers where status = 'FAILED'`,
        )
      ).rows;
      await sums.make({ hours: 24, since });
      expect(await stats()).toMatchObject({ byStatus: { FAILED: 1, IN_PROGRESS: 1 } });
      await changing.commit();
      expect(await stats()).toMatchObject({ totalTransfers: 8, byStatus: { FAILED: 0, IN_PROGRESS: 2 } });
      await sums.run();
      expect(await stats()).toMatchObject({ totalTransfers: 8, byStatus: { FAILED: 0, IN_PROGRESS: 2 } });
    });

    test.each<[string, (transaction: Knex) => Promise<unknown>]>([
      ['fails', () => Promise.reject(new Error('gone'))],
      // What PostgreSQL sees of a process that is killed.
      ['dies', (transaction) => transaction.raw('select pg_terminate_backend(pg_backend_pid())')],
    ])('who makes it %s half-way: as if it had not begun', async (_name, end) => {
      await sumsOn(knex()).run();
      await knex()('transfers').where({ status: 'FAILED' }).del();
      const before = await stats();
      const failing = new HistorySums({
        ...{ knex: knex(), table: SUMMED, logger: silentLogger, periodic: new PeriodicWork({ logger: silentLogger }) },
        asLeader: (work) =>
          knex().transaction(async (transaction) => {
            const result = await work(transaction);
            await end(transaction);
            return result;
          }),
      });
      await expect(failing.run()).rejects.toThrow();
      expect(await stats()).toEqual(before);
      await sumsOn(knex()).run();
      expect(await stats()).toEqual(before);
    });

    test('transfers of one partner that end in it wait neither for each other nor for who adds it up', async () => {
      const ids = [await add(3, { status: 'IN_PROGRESS' }), await add(3, { status: 'IN_PROGRESS' })];
      await sumsOn(knex()).run();
      const end = async (transaction: Knex, id: number | undefined): Promise<void> => {
        // Who waits would wait for ever: the others end after it.
        await transaction.raw(`set local lock_timeout = '5s'`);
        const ended = { status: 'FAILED', end_time: knex().fn.now(), diagnostic: '2-205' };
        await transaction('transfers').where({ id }).update(ended);
      };
      await knex().transaction(async (adding) => {
        await adding.raw('lock table transfer_sum_spans in share row exclusive mode');
        await knex().transaction(async (one) => {
          await end(one, ids[0]);
          await knex().transaction((other) => end(other, ids[1]));
        });
      });
      expect(await stats()).toMatchObject({ totalTransfers: 10, byStatus: { FAILED: 3, IN_PROGRESS: 1 } });
    });

    test('two that make it at once add it up once', async () => {
      const [sums, other] = [sumsOn(knex()), sumsOn(knex())];
      const before = await stats();
      await Promise.all([sums.run(), other.run()]);
      expect(await stats()).toEqual(before);
    });

    test('loses what retention removes', async () => {
      await sumsOn(knex()).run();
      const retention = new HistoryRetention({
        ...{ knex: knex(), asLeader: (work) => work(knex()), table: HISTORY, days: () => 1, logger: silentLogger },
        periodic: new PeriodicWork({ logger: silentLogger }),
      });
      const removed = await retention.run();
      expect(removed.COMPLETED).toBeGreaterThanOrEqual(3);
      const gone = removed.COMPLETED + removed.FAILED + removed.CANCELLED;
      expect(await stats()).toMatchObject({ totalTransfers: 8 - gone });
      await sumsOn(knex()).run();
      expect(await stats()).toMatchObject({ totalTransfers: 8 - gone });
    });
  });

  test('weeks come from their days, and days from their hours: what changes in one of them is made anew', async () => {
    const sums = sumsOn(knex());
    await add(20, { partner_id: 'C', status: 'FAILED' }, 300);
    await sums.run();
    const weeks = () => knex()('transfer_sum_spans').where({ hours: 168 }).pluck<Date[]>('since');
    const made = await weeks();
    expect(made.length).toBeGreaterThan(0);
    await knex()('transfers').where({ partner_id: 'C' }).update({ status: 'IN_PROGRESS', end_time: null });
    const after = await stats('groupBy=partner');
    expect(after).toMatchObject({ totalTransfers: 9, byStatus: { IN_PROGRESS: 2 } });
    // Its day, and its week.
    expect(await sums.run()).toBeGreaterThanOrEqual(2);
    expect(await stats('groupBy=partner')).toEqual(after);
    expect(await weeks()).toEqual(expect.arrayContaining(made));
    expect(await knex()('transfer_sum_marks').select()).toEqual([]);
  });

  test('too many records without sums are refused with what to do', async () => {
    const few = new HistoryStatistics(knex(), SUMMED, 3);
    await expect(few.totals({ q: 'x' }, undefined, STATUSES, DIRECTIONS)).rejects.toMatchObject({
      status: 400,
      details: [{ field: 'from', message: expect.stringContaining('more than 3 records') }],
    });
    await expect(few.totals({ q: 'x', partnerId: 'NOBODY' }, 'node', STATUSES, DIRECTIONS)).resolves.toMatchObject({
      totalTransfers: 0,
      groups: [],
    });
  });
});
