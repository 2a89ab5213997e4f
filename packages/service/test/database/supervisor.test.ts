import { once } from 'node:events';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';

import { DatabaseSupervisor } from '@pesit-node/service';
import type { Database, MigrationSet, SupervisorOptions } from '@pesit-node/service';
import { captureLog, withDatabase, silentLogger } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { openPostgresql } from '../../src/database/postgresql.js';
import { Proxy } from '../support/proxy.js';

const MIGRATIONS: readonly MigrationSet[] = [
  {
    schema: 'pesit_common',
    migrations: [
      { name: '0001', up: (knex) => knex.schema.createTable('marks', (table) => table.integer('id').primary()) },
    ],
  },
];

const FAST = { migrations: MIGRATIONS, checkEveryMs: 20, retryMs: { first: 10, longest: 40 }, pingTimeoutMs: 300 };

withDatabase((harness) => {
  describe('supervisor', () => {
    let real: TestDatabase;
    const undo: (() => Promise<unknown>)[] = [];
    const supervise = (
      options: Omit<SupervisorOptions, keyof typeof FAST> & Partial<SupervisorOptions>,
    ): DatabaseSupervisor => {
      const supervisor = new DatabaseSupervisor({ ...FAST, ...options });
      undo.push(() => supervisor.stop());
      return supervisor;
    };

    beforeAll(async () => {
      real = await harness.open({ searchPath: ['pesit_common'] });
    });
    afterEach(async () => {
      for (const step of undo.splice(0).reverse()) await step();
    });

    test('migrates, then is ready', async () => {
      const supervisor = supervise({ database: real, logger: silentLogger });
      expect([supervisor.ready, supervisor.statusReason, supervisor.health().status]).toEqual([
        false,
        'not started yet',
        'DOWN',
      ]);
      supervisor.start();
      await supervisor.whenReady();
      expect([supervisor.ready, supervisor.statusReason]).toEqual([true, undefined]);
      expect(supervisor.health()).toEqual({ status: 'UP', details: { mode: 'postgresql' } });
      expect(await real.knex('marks').select()).toEqual([]);
      await supervisor.stop();
      expect([supervisor.ready, supervisor.statusReason]).toEqual([false, 'stopped']);
    });

    test('a migration that fails keeps it not ready, says so once, and is tried again', async () => {
      let attempts = 0;
      const log = captureLog();
      const up = (): Promise<void> => {
        attempts++;
        return attempts < 3 ? Promise.reject(new Error('not yet')) : Promise.resolve();
      };
      const supervisor = supervise({
        database: real,
        logger: log.logger,
        migrations: [{ schema: 'pesit_server', migrations: [{ name: '0001', up }] }],
      });
      supervisor.start();
      await supervisor.whenReady();
      expect(attempts).toBe(3);
      expect(log.entries().filter(({ level }) => level === 'error')).toEqual([
        expect.objectContaining({ reason: 'Migration pesit_server/0001 failed: not yet' }),
      ]);
    });

    test('whenReady ends with its signal', async () => {
      const supervisor = supervise({ database: real, logger: silentLogger });
      const abort = new AbortController();
      const waiting = supervisor.whenReady(abort.signal);
      abort.abort(new Error('stopping'));
      await expect(waiting).rejects.toThrow('stopping');
    });

    describe('with a server that comes and goes', () => {
      let proxy: Proxy;
      let database: Database;
      let log: ReturnType<typeof captureLog>;

      beforeEach(async () => {
        const { hostname, port } = new URL(real.url);
        proxy = new Proxy({ host: hostname, port: Number(port === '' ? 5432 : port) });
        await proxy.up();
        const url = new URL(real.url);
        url.hostname = '127.0.0.1';
        url.port = String(proxy.port);
        log = captureLog();
        database = openPostgresql({
          url: url.href,
          searchPath: ['pesit_common'],
          poolMax: 4,
          silenceMs: 400,
        });
        undo.push(
          () => proxy.down(),
          () => database.close(),
        );
      });

      test('down at start: not ready, with the reason; ready when it comes', async () => {
        await proxy.down();
        const supervisor = supervise({ database, logger: log.logger });
        supervisor.start();
        await expect(database.ping()).rejects.toThrow('ECONNREFUSED');
        expect(supervisor.ready).toBe(false);
        expect(supervisor.health()).toMatchObject({
          status: 'DOWN',
          details: { reason: expect.stringContaining('ECONNREFUSED') },
        });
        await proxy.up();
        await supervisor.whenReady();
        expect(await database.knex('marks').select()).toEqual([]);
      });

      test('lost in a query: the query fails, it is not ready, and recovers by itself', async () => {
        const supervisor = supervise({ database, logger: log.logger });
        supervisor.start();
        await supervisor.whenReady();
        const slow = database.knex.raw('select pg_sleep(30)').then(
          () => 'done',
          (error: unknown) => (error as Error).message,
        );
        const lost = once(supervisor, 'lost');
        await database.ping();
        await proxy.down();
        expect(await slow).toMatch(/Connection terminated|ECONNRESET/);
        await lost;
        expect(supervisor.ready).toBe(false);
        await proxy.up();
        await supervisor.whenReady();
        expect(await database.knex('marks').select()).toEqual([]);
      });

      test('a host that falls silent: noticed; queries fail, connections are replaced when it speaks again', async () => {
        const supervisor = supervise({ database, logger: log.logger });
        supervisor.start();
        await supervisor.whenReady();
        const lost = once(supervisor, 'lost');
        const asked = database.knex.raw('select pg_sleep(0.1)').then(
          () => 'answered',
          (error: unknown) => (error as Error).message,
        );
        await proxy.passedTowardsServer('pg_sleep');
        proxy.silent();
        await lost;
        expect(supervisor.statusReason).toMatch(/do(es|id) not answer within (300|400) ms/);
        expect(await asked).toContain('PostgreSQL did not answer within 400 ms');
        await proxy.up();
        await supervisor.whenReady();
      });

      test('a host that is silent does not hold up the end', async () => {
        await database.ping();
        proxy.silent();
        const asked = database
          .knex('marks')
          .select()
          .then(
            () => 'answered',
            () => 'failed',
          );
        await database.close();
        expect(await asked).toBe('failed');
      });

      test('a server that became a standby: not ready until there is one to write to', async () => {
        const supervisor = supervise({ database, logger: log.logger });
        supervisor.start();
        await supervisor.whenReady();
        const name = new URL(real.url).pathname.slice(1);
        const lost = once(supervisor, 'lost');
        await real.knex.raw('alter database ?? set default_transaction_read_only = on', [name]);
        await real.knex.raw(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname = ? and pid <> pg_backend_pid()',
          [name],
        );
        await lost;
        // A connection of the pool may tell only now that it was terminated.
        let answer: string;
        do answer = await database.ping().then(String, (error: unknown) => (error as Error).message);
        while (answer.includes('Connection terminated'));
        expect(answer).toContain('is read-only');
        await real.knex.raw('alter database ?? reset default_transaction_read_only', [name]);
        await supervisor.whenReady();
        expect(await database.knex('marks').insert({ id: 1 }).returning('id')).toEqual([{ id: 1 }]);
      });

      test('a connection that dies in the pool is replaced without anyone noticing', async () => {
        const connection = await database.knex.client.acquireConnection();
        const ended = new Promise((resolve) => connection.once('end', resolve));
        await real.knex.raw('select pg_terminate_backend(?)', [connection.processID]);
        await ended;
        await database.knex.client.releaseConnection(connection);
        await expect(database.ping()).resolves.toBeUndefined();
      });
    });
  });
});
