import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { equal, givenConditions, HistoryRetention, PeriodicWork, retentionDays } from '@pesit-node/service';
import type { Config, EndedStatus, HistoryTable, Period } from '@pesit-node/service';
import { captureLog, silentLogger, testConfig, withDatabase } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

interface Filter extends Period {
  readonly status?: string | undefined;
}

const TABLE: HistoryTable<Filter> = {
  table: 'records',
  time: { field: 'startTime', column: 'began' },
  id: { column: 'id', type: 'bigint' },
  conditions: ({ status }) => givenConditions({ status: equal('status', status) }),
  ways: [{ serves: ['status'], when: ({ status }) => status === 'FAILED' }, { serves: [] }],
};
const DAYS: Readonly<Record<EndedStatus, number>> = { COMPLETED: 10, FAILED: 20, CANCELLED: 30 };

withDatabase((harness) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await harness.open();
  });

  beforeEach(async () => {
    await database.knex.raw(`
      drop table if exists records;
      create table records (id bigint primary key, status text not null, began timestamptz not null, end_time timestamptz,
        restartable boolean not null default false);
      insert into records (id, status, began, end_time)
        select n, case n % 4 when 0 then 'COMPLETED' when 1 then 'FAILED' when 2 then 'CANCELLED' else 'IN_PROGRESS' end,
          now() - make_interval(days => n, mins => 5), case when n % 4 < 3 then now() - make_interval(days => n) end
        from generate_series(0, 39) n`);
  });

  const retention = (more: Partial<ConstructorParameters<typeof HistoryRetention<Filter>>[0]> = {}) =>
    new HistoryRetention<Filter>({
      ...{
        knex: database.knex,
        asLeader: (work) => work(database.knex),
        table: TABLE,
        days: (status) => DAYS[status],
        batch: 3,
      },
      ...{ periodic: new PeriodicWork({ logger: silentLogger }), logger: silentLogger, ...more },
    });

  const left = async (): Promise<readonly number[]> => database.knex('records').orderBy('id').pluck<number[]>('id');

  /** Day `n` is a moment more than `n` days ago. */
  const isKept = (n: number): boolean => n % 4 === 3 || n < [10, 20, 30][n % 4]!;
  const KEPT = Array.from({ length: 40 }, (_, n) => n).filter(isKept);

  test('each status by its own age, batch by batch; what runs stays', async () => {
    const log = captureLog();
    expect(await retention({ logger: log.logger }).run()).toEqual({ COMPLETED: 7, FAILED: 5, CANCELLED: 3 });
    expect(await left()).toEqual(KEPT);
    expect(log.entries()).toEqual([
      expect.objectContaining({ msg: 'removed old records of the history', COMPLETED: 7, FAILED: 5, CANCELLED: 3 }),
    ]);
    expect(await retention({ logger: log.logger }).run()).toEqual({ COMPLETED: 0, FAILED: 0, CANCELLED: 0 });
    expect(log.lines).toHaveLength(1);
  });

  test('a leader that is late removes nothing', async () => {
    const late = retention({ asLeader: () => Promise.reject(new Error('another leads')) });
    const before = await left();
    await expect(late.run()).rejects.toThrow('another leads');
    expect(await left()).toEqual(before);
  });

  test('what can be restarted stays, and what ended late', async () => {
    await database.knex('records').where({ id: 37 }).update({ restartable: true });
    await database.knex('records').where({ id: 36 }).update({ end_time: database.knex.fn.now() });
    await retention().run();
    expect(await left()).toEqual([...KEPT, 36, 37].sort((a, b) => a - b));
  });

  test('a record that is taken up again meanwhile stays', async () => {
    const transaction = await database.knex.transaction();
    await transaction('records').where({ id: 33 }).update({ status: 'IN_PROGRESS', end_time: null });
    const run = retention().run();
    // It waits for the lock of that row.
    for (;;) {
      const { rows } = await database.knex.raw<{ rows: unknown[] }>(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (rows.length > 0) break;
    }
    await transaction.commit();
    expect(await run).toMatchObject({ FAILED: 4 });
    expect(await left()).toContain(33);
  });

  test('ends between two batches when the service stops', async () => {
    const stop = new AbortController();
    stop.abort();
    expect(await retention().run(stop.signal)).toEqual({ COMPLETED: 0, FAILED: 0, CANCELLED: 0 });
    expect(await left()).toHaveLength(40);
  });

  describe('the days', () => {
    test('90, unless a status has its own, and at least as many as something else needs', () => {
      const days = (values: Partial<Config<'server'>>, least?: number) =>
        (['COMPLETED', 'FAILED', 'CANCELLED'] as const).map(
          retentionDays(testConfig('server', { 'data.directory': '/data', ...values }), least),
        );
      expect(days({})).toEqual([90, 90, 90]);
      expect(days({ 'history.retention-days': 5, 'history.retention-days-failed': 365 }, 7)).toEqual([7, 365, 7]);
    });
  });

  test('the leader does it each hour', async () => {
    const periodic = new PeriodicWork({ logger: silentLogger });
    const one = retention({ periodic });
    one.start();
    one.start();
    expect(periodic.status.map(({ name }) => name)).toEqual(['removal of old records of the history']);
    await one.stop();
  });
});
