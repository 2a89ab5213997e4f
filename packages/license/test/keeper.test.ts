import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { PeriodicTask } from '@pesit-node/service';
import { withDatabase, emptyTables } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { LicenseRefusedError, LicenseTooSmallError } from '../src/errors.js';
import { LICENSE_MIGRATIONS } from '../src/migrations/index.js';
import type { LicenseStore } from '../src/store.js';
import { historyWitness } from '../src/witness.js';
import { startPod, VirtualClock } from './support/pods.js';
import { keyPair, license } from './support/vendor.js';

const START = '2027-03-01T08:00:00Z';
const ADMIN = { actor: 'admin', force: false };
const FORCE = { actor: 'admin', force: true };

withDatabase((harness) => {
  let database: TestDatabase;
  let clock: VirtualClock;
  let directory: string;

  beforeAll(async () => {
    database = await harness.open({ migrations: [LICENSE_MIGRATIONS], searchPath: ['public'] });
    directory = await mkdtemp(join(tmpdir(), 'pesit-license-'));
  });
  afterAll(() => rm(directory, { recursive: true }));
  beforeEach(async () => {
    await emptyTables(database, 'pesit_common');
    clock = new VirtualClock(START);
  });

  const events = () => rows('license_events');
  const rows = (table: string): Promise<Record<string, unknown>[]> =>
    database.knex.withSchema('pesit_common').from(table).select();
  const empty = (table: string) => database.knex.withSchema('pesit_common').from(table).delete();

  test('all moves: evaluation, blocked, valid, expired, extended, valid again', async () => {
    const { keeper, log } = await startPod(database, clock);
    const seen: string[] = [];
    keeper.on('change', ({ valid, evaluation }) => seen.push(valid ? 'valid' : evaluation ? 'evaluation' : 'blocked'));
    expect(keeper.status).toMatchObject({ evaluation: true, evaluationDaysRemaining: 30 });
    clock.days(30);
    await keeper.refresh();
    expect(keeper.status).toMatchObject({ blocked: true, evaluationDaysRemaining: 0 });
    expect(await keeper.install(license({ expiryDate: '2027-04-30' }), ADMIN)).toMatchObject({ valid: true });
    clock.days(31);
    await keeper.refresh();
    expect(keeper.status).toMatchObject({ blocked: true, type: 'PROFESSIONAL', expirationDate: '2027-04-30' });
    expect(await keeper.extendEvaluation(5, 'admin')).toMatchObject({ evaluation: true, evaluationDaysRemaining: 5 });
    expect(await keeper.install(license({ type: 'BUSINESS' }), ADMIN)).toMatchObject({ type: 'BUSINESS', valid: true });
    expect(seen).toEqual(['blocked', 'valid', 'blocked', 'evaluation', 'valid']);
    expect(log.entries().filter(({ level }) => level === 'error')).toHaveLength(2);
  });

  test('nothing is known before the store was read', async () => {
    const { keeper } = await startPod(database, clock, {
      store: { clock: () => Promise.reject(new Error('down')) } as unknown as LicenseStore,
    });
    expect(keeper.status).toBeUndefined();
  });

  test('license.file and license.content that change while it runs are loaded, and what is wrong is said again', async () => {
    const file = join(directory, 'changed');
    const missing = join(directory, 'not-there');
    const { keeper, log } = await startPod(database, clock, { file: missing });
    const unreadable = () => log.entries().filter(({ msg }) => msg === 'could not read license.file: ignoring it');
    await keeper.refresh();
    expect(unreadable()).toHaveLength(1);
    keeper.useSources({ file: missing, content: '' });
    await keeper.refresh();
    expect(unreadable()).toHaveLength(2);
    await writeFile(file, license({ licenseId: 'L-0002' }));
    keeper.useSources({ file, content: '' });
    await keeper.refresh();
    expect(keeper.status).toMatchObject({ valid: true, licenseId: 'L-0002' });
    keeper.useSources({ file: '', content: license({ licenseId: 'L-0003', type: 'BUSINESS' }) });
    await keeper.refresh();
    expect(keeper.status).toMatchObject({ valid: true, licenseId: 'L-0003', type: 'BUSINESS' });
  });

  describe('two pods over one database', () => {
    test('that start together have one first start', async () => {
      const other = await harness.another(database);
      await Promise.all([startPod(database, clock), startPod(other, clock, { node: 'pod-2' })]);
      expect(await rows('license_evaluation')).toHaveLength(1);
      expect(await rows('license_witness')).toEqual(await rows('license_evaluation'));
      expect(await events()).toMatchObject([{ action: 'EVALUATION_STARTED', at: new Date(START) }]);
    });

    test('installed on one, known to the other at its next look', async () => {
      const one = await startPod(database, clock);
      const two = await startPod(await harness.another(database), clock);
      await one.keeper.install(license(), ADMIN);
      expect(two.keeper.status).toMatchObject({ evaluation: true });
      await two.keeper.refresh();
      expect(two.keeper.status).toEqual(one.keeper.status);
      expect(two.keeper.status).toMatchObject({ valid: true, licenseId: 'L-0001' });
    });

    test('the timer looks by itself', async () => {
      const one = await startPod(database, clock);
      const two = await startPod(await harness.another(database), clock, { refreshEveryMs: 5 });
      two.keeper.start();
      const change = once(two.keeper, 'change');
      await one.keeper.install(license(), ADMIN);
      expect(await change).toMatchObject([{ valid: true }]);
    });

    test('whose clocks differ by hours count the same days', async () => {
      const late = new VirtualClock('2027-03-01T05:00:00Z');
      const one = await startPod(database, clock);
      const two = await startPod(await harness.another(database), late);
      for (let day = 0; day < 20; day += 1) {
        clock.days(1);
        late.days(1);
        await one.keeper.refresh();
        await two.keeper.refresh();
      }
      expect([one.keeper.status, two.keeper.status]).toMatchObject([
        { evaluationDaysRemaining: 10 },
        { evaluationDaysRemaining: 10 },
      ]);
    });
  });

  describe('time attacks', () => {
    const daysLeft = async (options: Parameters<typeof startPod>[2] = {}): Promise<number> =>
      (await startPod(database, clock, options)).keeper.status?.evaluationDaysRemaining ?? NaN;

    /** A pod that ran for 20 days and was stopped. */
    const twentyDays = async (): Promise<void> => {
      const { keeper } = await startPod(database, clock);
      clock.days(20);
      await keeper.refresh();
      await keeper.stop();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
    };

    test('the clock is turned back while the service is down', async () => {
      await twentyDays();
      for (const to of [START, '2027-02-01T00:00:00Z', '1970-01-01T00:00:00Z']) {
        clock.set(to);
        expect(await daysLeft()).toBe(10);
      }
    });

    test('and while it runs', async () => {
      const { keeper } = await startPod(database, clock);
      clock.days(20);
      await keeper.refresh();
      clock.set(START);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
      clock.days(10);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ blocked: true });
    });

    test('far forward and back', async () => {
      await twentyDays();
      const honest = clock.now();
      clock.set('2037-01-01T00:00:00Z');
      expect(await daysLeft()).toBe(0);
      clock.set(new Date(honest).toISOString());
      expect(await daysLeft()).toBe(10);
    });

    test.each([
      ['the evaluation', ['license_evaluation']],
      ['its witness', ['license_witness']],
      ['both', ['license_evaluation', 'license_witness']],
      ['the audit', ['license_events']],
      ['the evaluation and the audit', ['license_evaluation', 'license_events']],
    ])('rows of %s are deleted', async (_, tables) => {
      await twentyDays();
      for (const table of tables) await empty(table);
      expect(await daysLeft()).toBe(10);
      expect([await rows('license_evaluation'), await rows('license_witness')]).toMatchObject([
        [{ started_at: new Date(START) }],
        [{ started_at: new Date(START) }],
      ]);
    });

    test.each(['license_evaluation', 'license_witness'])('a row of %s is written over', async (table) => {
      await twentyDays();
      const later = { started_at: new Date(clock.now()), counted: new Date(START), highest: new Date(START) };
      await database.knex.withSchema('pesit_common').from(table).update(later);
      expect(await daysLeft()).toBe(10);
      expect(await rows('license_witness')).toEqual(await rows('license_evaluation'));
      expect(await rows(table)).toMatchObject([{ started_at: new Date(START) }]);
    });

    test('all rows are deleted under a running service', async () => {
      const { keeper } = await startPod(database, clock);
      clock.days(20);
      await keeper.refresh();
      await emptyTables(database, 'pesit_common');
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
      expect(await rows('license_witness')).toMatchObject([{ started_at: new Date(START) }]);
    });

    test('all rows are deleted, and the clock turned back: the history remembers', async () => {
      await twentyDays();
      await database.knex.raw(
        'create schema history; create table history.transfers (start_time timestamptz, direction text)',
      );
      const seen = ['2027-03-01T10:00:00Z', '2027-03-20T10:00:00Z'];
      await database
        .knex('history.transfers')
        .insert(
          seen.map((time, index) => ({ start_time: new Date(time), direction: index === 0 ? 'SEND' : 'RECEIVE' })),
        );
      const tables = [
        {
          ...{ schema: 'history', table: 'transfers', column: 'start_time' },
          each: { column: 'direction', values: ['SEND', 'RECEIVE'] },
        },
        { schema: 'history', table: 'missing', column: 'start_time' },
      ];
      const witnesses = [historyWitness(database.knex, tables)];
      await emptyTables(database, 'pesit_common');
      clock.set('2027-03-01T09:00:00Z');
      const { keeper } = await startPod(database, clock, { witnesses });
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 11 });
      // And time goes on from there.
      clock.days(10);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 1 });
      clock.days(1);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ blocked: true });
      // By a year, and by decades: there was no evaluation then.
      for (const to of ['2026-03-01T09:00:00Z', '1999-01-01T00:00:00Z']) {
        await emptyTables(database, 'pesit_common');
        clock.set(to);
        expect(await daysLeft({ witnesses })).toBe(0);
      }
    });

    test('the database is restored from an older copy', async () => {
      const { keeper } = await startPod(database, clock);
      const copy = await rows('license_evaluation');
      clock.days(20);
      await keeper.refresh();
      for (const table of ['license_evaluation', 'license_witness']) {
        await database.knex.withSchema('pesit_common').from(table).update(copy[0]!);
      }
      clock.set(START);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
      expect(await daysLeft()).toBe(10);
    });

    test('an extension lasts no longer with the clock turned', async () => {
      const { keeper } = await startPod(database, clock);
      clock.set('2126-01-01T00:00:00Z');
      await keeper.extendEvaluation(10, 'admin');
      expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 10 });
      clock.set('2027-03-01T09:00:00Z').days(10);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ blocked: true });
    });
  });

  describe('install', () => {
    test('is audited, and kept', async () => {
      const { keeper } = await startPod(database, clock);
      await keeper.install(license(), ADMIN);
      await keeper.extendEvaluation(7, 'operator');
      expect(await events()).toMatchObject([
        { action: 'EVALUATION_STARTED', actor: 'pod-1' },
        { action: 'LICENSE_INSTALLED', actor: 'admin', license_id: 'L-0001', forced: false },
        { action: 'EVALUATION_EXTENDED', actor: 'operator', days: 7 },
      ]);
      expect((await startPod(database, clock)).keeper.status).toMatchObject({ valid: true });
    });

    test('refuses what is not valid, and stores nothing', async () => {
      const { keeper } = await startPod(database, clock);
      for (const text of ['', 'junk', license({}, keyPair().privateKey), license({ expiryDate: '2027-02-28' })]) {
        await expect(keeper.install(text, ADMIN)).rejects.toThrow(LicenseRefusedError);
        await expect(keeper.install(text, FORCE)).rejects.toThrow(LicenseRefusedError);
      }
      expect([await rows('licenses'), keeper.status]).toMatchObject([[], { evaluation: true }]);
    });

    test('twice the same is once', async () => {
      const { keeper } = await startPod(database, clock);
      expect(await keeper.install(license(), ADMIN)).toEqual(await keeper.install(`${license()}\n`, ADMIN));
      expect([await rows('licenses'), (await events()).length]).toMatchObject([[{ license_id: 'L-0001' }], 2]);
    });

    test('of two the one that lasts longest counts, the other is kept', async () => {
      const { keeper } = await startPod(database, clock);
      await keeper.install(license({ licenseId: 'LONG', type: 'BUSINESS' }), ADMIN);
      const after = await keeper.install(license({ licenseId: 'SHORT', expiryDate: '2027-06-30' }), ADMIN);
      expect([after.licenseId, (await rows('licenses')).length]).toEqual(['LONG', 2]);
    });

    test('smaller than what runs: only by force, and then it alone counts', async () => {
      const usage = () => Promise.resolve({ clusters: 1, podsPerCluster: 5 });
      const { keeper } = await startPod(database, clock, { usage });
      await keeper.install(license({ licenseId: 'BIG', type: 'BUSINESS', maxPodsPerCluster: -1 }), ADMIN);
      const small = license({ licenseId: 'SMALL', expiryDate: '2028-12-31' });
      await expect(keeper.install(small, ADMIN)).rejects.toThrow(
        new LicenseTooSmallError({ licenseId: 'SMALL', maxClusters: 1, maxPodsPerCluster: 3 } as never, {
          clusters: 1,
          podsPerCluster: 5,
        }),
      );
      expect(keeper.status).toMatchObject({ licenseId: 'BIG' });
      expect(await keeper.install(small, FORCE)).toMatchObject({ licenseId: 'SMALL', maxPodsPerCluster: 3 });
      clock.days(300);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ licenseId: 'SMALL' });
      // Installed again by hand, the larger one counts again beside the other.
      clock.set('2027-03-02T08:00:00Z');
      const again = license({ licenseId: 'BIG', type: 'BUSINESS', maxPodsPerCluster: -1, expiryDate: '2029-12-31' });
      expect(await keeper.install(again, ADMIN)).toMatchObject({ licenseId: 'BIG' });
    });

    test('expired: only by force, and only in place of another', async () => {
      const { keeper } = await startPod(database, clock);
      const past = license({ licenseId: 'PAST', expiryDate: '2027-02-28' });
      await keeper.install(license(), ADMIN);
      await expect(keeper.install(past, ADMIN)).rejects.toThrow(/expired on 2027-02-28/);
      expect(await keeper.install(past, FORCE)).toMatchObject({ valid: false, evaluation: true });
      expect(await rows('licenses')).toHaveLength(2);
    });

    test('a license that somebody wrote into the table does not count', async () => {
      const forged = license({ licenseId: 'FORGED' }, keyPair().privateKey);
      await database.knex
        .withSchema('pesit_common')
        .into('licenses')
        .insert({
          digest: 'x',
          license_id: 'FORGED',
          text: forged,
          source: 'API',
          installed_at: new Date(START),
          installed_by: 'me',
        });
      const { keeper, log } = await startPod(database, clock);
      expect(keeper.status).toMatchObject({ evaluation: true });
      expect(log.lines.join('')).toContain('ignoring a stored license that is not valid');
    });
  });

  describe('license.content and license.file', () => {
    test('content is installed at the start', async () => {
      const { keeper } = await startPod(database, clock, { content: license() });
      expect(keeper.status).toMatchObject({ valid: true });
      expect(await rows('licenses')).toMatchObject([{ source: 'CONTENT', installed_by: 'pod-1' }]);
    });

    test('a broken one is logged and ignored', async () => {
      const { keeper, log } = await startPod(database, clock, { content: 'junk!', file: join(directory, 'missing') });
      expect(keeper.status).toMatchObject({ evaluation: true });
      expect(log.entries().filter(({ level }) => level === 'warn')).toMatchObject([
        { source: 'CONTENT', fault: 'not-base64' },
        { path: join(directory, 'missing'), reason: expect.stringContaining('ENOENT') },
      ]);
    });

    test('a file that appears or changes is loaded, one that breaks changes nothing', async () => {
      const file = join(directory, 'license');
      const { keeper, log } = await startPod(database, clock, { file });
      await writeFile(file, license({ licenseId: 'ONE', expiryDate: '2027-06-30' }));
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ licenseId: 'ONE' });
      await writeFile(file, `${license({ licenseId: 'TWO' })}\n`);
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ licenseId: 'TWO' });
      await writeFile(file, 'x'.repeat(1_000_000));
      await keeper.refresh();
      await keeper.refresh();
      expect(keeper.status).toMatchObject({ licenseId: 'TWO' });
      expect(log.entries().filter(({ fault }) => fault === 'too-long')).toHaveLength(1);
    });

    test('what was replaced by force is not brought back by the file that still lies there', async () => {
      const file = join(directory, 'old');
      await writeFile(file, license({ licenseId: 'OLD', type: 'ENTERPRISE', expiryDate: '2030-12-31' }));
      const { keeper } = await startPod(database, clock, { file });
      await keeper.install(license({ licenseId: 'NEW' }), FORCE);
      expect((await startPod(database, clock, { file })).keeper.status).toMatchObject({ licenseId: 'NEW' });
    });
  });

  test('the last two weeks are announced once a day', async () => {
    const { keeper, log } = await startPod(database, clock);
    for (let hour = 0; hour < 30 * 24 - 1; hour += 6) {
      clock.pass(6 * 3_600_000);
      await keeper.refresh();
    }
    const announced = log.entries().filter(({ msg }) => msg === 'the license ends soon');
    expect(announced.map(({ daysUntilExpiration }) => daysUntilExpiration)).toEqual(
      Array.from({ length: 14 }, (_, index) => 14 - index),
    );
  });

  test('while the database is away time goes on, with what is known', async () => {
    let away = false;
    const { store } = await startPod(database, clock);
    const flaky: LicenseStore = new Proxy(store, {
      get: (target, name) => {
        const method = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        return (...args: unknown[]) => (away ? Promise.reject(new Error('away')) : method.apply(target, args));
      },
    });
    const tasks: PeriodicTask[] = [];
    const periodic = {
      add: (task: PeriodicTask) => {
        tasks.push(task);
        return { runNow: () => Promise.resolve(), remove: () => Promise.resolve() };
      },
    };
    const { keeper } = await startPod(database, clock, { store: flaky, periodic });
    away = true;
    clock.days(29);
    await keeper.refresh();
    expect(keeper.status).toMatchObject({ evaluationDaysRemaining: 1 });
    // The runner of periodic work is told why, for the log and the operator.
    keeper.start();
    expect(tasks.map(({ name }) => name)).toEqual(['look at the license']);
    await expect(tasks[0]?.run(new AbortController().signal)).rejects.toThrow('away');
    clock.days(1);
    await keeper.refresh();
    expect(keeper.status).toMatchObject({ blocked: true });
    away = false;
    await keeper.refresh();
    expect(await rows('license_evaluation')).toMatchObject([{ counted: new Date('2027-03-31T08:00:00Z') }]);
  });
});
