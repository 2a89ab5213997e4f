/**
 * COMPLETED is committed although its process could not see it, and may tell the partner no: what a restart makes of that at another
 * pod over the same database and the same volume.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import {
  captureLog,
  emptyTables,
  findDatabase,
  freePort,
  holdStatement,
  loseAnswer,
  loseDatabase,
  withDatabase,
} from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';

import { MIGRATIONS } from '../src/migrations/index.js';
import { refusedWith, TestNode, until } from './support/node.js';

const COMPLETION = /update transfers t set status = 'COMPLETED'/;
const WITHDRAWAL = 'withdrawn = true';
const CONTENT = Buffer.from('the content');
/** No test waits so long: the process does not give up by itself. */
const FOR_EVER_MS = 3_600_000;

withDatabase((harness) => {
  let databases: TestDatabase[];
  let data: string;
  let first: TestNode;
  let second: TestNode;

  beforeAll(async () => {
    databases = [await harness.open({ migrations: [MIGRATIONS] })];
    databases.push(await harness.another(databases[0]!));
  });

  beforeEach(async () => {
    await emptyTables(databases[0]!, 'pesit_server');
    data = join(await mkdtemp(join(tmpdir(), 'pesit-late-')), 'data');
    await mkdir(data);
  });

  afterEach(async () => {
    findDatabase(first.database);
    for (const pod of [first, second]) await pod.stop();
    await rm(dirname(data), { recursive: true, force: true });
  });

  /** @param patienceMs how long the first pod waits for the database at the end of a transfer */
  const start = async (patienceMs: number): Promise<void> => {
    const [one, other] = databases as [TestDatabase, TestDatabase];
    const log = captureLog();
    first = new TestNode(one, data, log, { node: 'pod-a', patienceMs });
    second = new TestNode(other, data, log, { node: 'pod-b' });
    for (const pod of [first, second]) await pod.start();
    await first.configure();
    second.port = await freePort();
    await second.call('post', '/api/v1/servers', { serverId: 'NODE2', port: second.port, autoStart: false });
    await second.call('post', '/api/v1/servers/NODE2/start');
  };

  /** The next COMPLETED of the first pod takes effect; it does not hear so, and has no database from then on. */
  const lose = () => {
    loseAnswer(first.database, COMPLETION, () => loseDatabase(first.database));
  };

  const restart = async (): Promise<{ readonly transferId: number; readonly restarted: true }> => {
    const { transferId } = await second.record(({ status }) => status === 'COMPLETED');
    return { transferId: Number(transferId), restarted: true };
  };

  const sendAgain = async (): Promise<void> =>
    second.send(await second.connect({ server: 'NODE2' }), 'IN', CONTENT, await restart());

  const counted = async () => (await second.call('get', '/api/v1/config/partners/ACME'))['transferCount'];

  /** Once the first pod has its database again, and has said there what it had to. */
  const withdrawalAsked = async (): Promise<void> => {
    const { knex } = first.database;
    const asked = new Promise<void>((resolve) => {
      knex.on('query-response', (_, { sql }: { readonly sql: string }) => {
        if (sql.includes(WITHDRAWAL)) resolve();
      });
    });
    findDatabase(first.database);
    await asked;
  };

  test.each(['cut off from the database', 'gone'])(
    'its process has taken the file back, and is %s: the file comes again, and is there once',
    async (fate) => {
      await start(300);
      lose();
      await expect(first.send(await first.connect(), 'IN', CONTENT)).rejects.toEqual(refusedWith('2-201'));
      expect(await first.received('IN')).toEqual([]);
      if (fate === 'killed') await second.database.knex('instances').where('node', 'pod-a').delete();
      await sendAgain();
      expect(await second.history()).toEqual([
        expect.objectContaining({ status: 'COMPLETED', attempts: 2, node: 'pod-b' }),
      ]);
      await withdrawalAsked();
      expect(await second.history()).toEqual([expect.objectContaining({ status: 'COMPLETED' })]);
      expect(await second.received('IN')).toEqual([CONTENT]);
      expect(await counted()).toBe(1);
      await until(async () => (await second.staged('IN')).length === 0 || undefined);
    },
  );

  test('its process still hopes for the database: the restart waits, until the file is taken back', async () => {
    await start(1500);
    lose();
    const sending = first.send(await first.connect(), 'IN', CONTENT);
    const told = expect(sending).rejects.toEqual(refusedWith('2-201'));
    await sendAgain();
    await told;
    expect(await second.received('IN')).toEqual([CONTENT]);
    await withdrawalAsked();
    expect(await second.history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 2 })]);
    expect(await counted()).toBe(1);
  });

  test('its process is gone before it gave up: the file is there, and stays, whatever that one does later', async () => {
    await start(FOR_EVER_MS);
    lose();
    const sending = first.send(await first.connect(), 'IN', CONTENT);
    await second.record(({ status }) => status === 'COMPLETED');
    await second.database.knex('instances').where('node', 'pod-a').delete();
    await sendAgain();
    expect(await second.received('IN')).toEqual([CONTENT]);
    expect(await second.staged('IN')).toEqual([]);
    findDatabase(first.database);
    await sending;
    expect(await second.history()).toEqual([expect.objectContaining({ status: 'COMPLETED', attempts: 1 })]);
    expect(await second.received('IN')).toEqual([CONTENT]);
    expect(await counted()).toBe(1);
  });

  test('nobody comes back to a file that was taken back by a process that was killed: the sweep says that it failed', async () => {
    await start(300);
    lose();
    await expect(first.send(await first.connect(), 'IN', CONTENT)).rejects.toEqual(refusedWith('2-201'));
    expect((await second.history())[0]).toMatchObject({ status: 'COMPLETED' });
    await second.node.housekeeping.sweep();
    expect((await second.history())[0]).toMatchObject({ status: 'FAILED', diagnostic: '2-201', restartable: true });
    expect(await counted()).toBe(0);
  });

  test('a file that was read: what the restart was told stays, and the file is offered no more', async () => {
    await start(300);
    await writeFile(join(data, 'OUT/out/x'), CONTENT);
    lose();
    await expect(first.receive(await first.connect(), 'OUT')).rejects.toEqual(refusedWith('2-201'));
    findDatabase(first.database);
    const { held, release } = holdStatement(first.database, new RegExp(WITHDRAWAL));
    await held;
    const session = await second.connect({ server: 'NODE2' });
    expect(await second.receive(session, 'OUT', await restart())).toEqual(CONTENT);
    const asked = withdrawalAsked();
    release();
    await asked;
    expect(await second.history()).toEqual([expect.objectContaining({ status: 'COMPLETED' })]);
    await expect(second.receive(session, 'OUT')).rejects.toEqual(refusedWith('2-205'));
    expect(await counted()).toBe(1);
  });
});
