import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { LICENSE_MIGRATIONS, loadPublicKey } from '@pesit-node/license';
import { loadConfig } from '@pesit-node/service';
import { captureLog, withDatabase, emptyTables } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import { FileSource, formatOf } from '@pesit-node/storage';
import request from 'supertest';

import {
  expectBlocked,
  expectMoves,
  expectReadyAndBlocked,
  PUBLIC,
} from '../../../packages/license/test/support/gated-app.js';
import { olderPods, VirtualClock } from '../../../packages/license/test/support/pods.js';
import { keyPair, license, VENDOR } from '../../../packages/license/test/support/vendor.js';
import { MIGRATIONS } from '../src/migrations/index.js';
import { bytes, refusedWith, TestNode, until } from './support/node.js';
import { ADMIN } from './support/rest.js';

type Env = Readonly<Record<string, string>>;

/** The state of certificates is told to everybody, always. */
const OPEN = {
  ...{ 'POST /ocsp': 200, 'PATCH /ocsp': 405, 'GET /ocsp/1': 200, 'PATCH /ocsp/1': 405 },
  ...{ 'GET /crl': 409, 'PATCH /crl': 405 },
};

withDatabase((harness) => {
  let database: TestDatabase;
  let clock: VirtualClock;
  let log = captureLog();
  const nodes: TestNode[] = [];
  const secrets: string[] = [];

  beforeAll(async () => {
    database = await harness.open({ migrations: [LICENSE_MIGRATIONS, MIGRATIONS], searchPath: [MIGRATIONS.schema] });
  });
  beforeEach(async () => {
    await emptyTables(database, MIGRATIONS.schema, 'pesit_common');
    clock = new VirtualClock('2027-03-01T08:00:00Z');
    log = captureLog();
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) {
      await node.stop();
      await rm(node.data, { recursive: true, force: true });
    }
    for (const text of secrets.splice(0)) expect(log.lines.join('\n')).not.toContain(text);
  });

  /** A node configured as in production, by its environment, with the key of the test vendor. */
  const start = async (env: Env = {}, on = database, refreshEveryMs = 60_000): Promise<TestNode> => {
    const data = await mkdtemp(join(tmpdir(), 'pesit-license-'));
    const config = loadConfig({
      app: 'server',
      env: {
        DATA_DIRECTORY: data,
        STORAGE_ROOTS: data,
        ADMIN_USERNAME: ADMIN.username,
        ADMIN_PASSWORD: ADMIN.password,
        LICENSE_PUBLIC_KEY: VENDOR.publicPem,
        ...env,
      },
      argv: [],
      cwd: data,
    });
    const node = new TestNode(on, data, log, {
      config,
      licenseKey: await loadPublicKey(config['license.public-key']),
      licenseTimes: { clock, refreshEveryMs },
    });
    nodes.push(node);
    await node.start();
    return node;
  };
  const install = (node: TestNode, text = license()) => node.call('post', '/api/v1/license', { license: text });
  const block = async (node: TestNode): Promise<void> => {
    clock.days(31);
    await node.node.license.refresh();
  };
  const ignored = (): readonly unknown[] =>
    log
      .entries()
      .filter(({ msg }) => msg === 'ignoring a license of the configuration that is not valid')
      .map(({ source, fault }) => [source, fault]);

  describe('blocked', () => {
    test('every route of the app: 402 behind the login', async () => {
      const node = await start();
      await expectBlocked(node.node.app, ADMIN, () => block(node), OPEN);
    });

    test('with metrics.public information and metrics stay open', async () => {
      const node = await start({ METRICS_PUBLIC: 'true' });
      await expectBlocked(node.node.app, ADMIN, () => block(node), { ...OPEN, ...PUBLIC });
    });

    test('health names it, and the pod stays ready', async () => {
      await expectReadyAndBlocked((await start({ LICENSE_EVALUATION_DAYS: '0' })).node.app, ADMIN);
    });

    test('3-322 to new sessions; a running transfer goes on to its end', async () => {
      const node = await start();
      await node.configure();
      const content = bytes(300_000);
      const path = join(node.data, 'content');
      await writeFile(path, content);
      const file = await FileSource.open(path, formatOf({ recordLength: 4096 }));
      const session = await node.connect();
      const progress = new EventEmitter();
      const goOn = once(progress, 'go on');
      const asked = once(progress, 'asked');
      const sending = session.sendFile({
        request: node.createRequest('IN'),
        source: {
          fill: async (burst) => {
            progress.emit('asked');
            await goOn;
            return file.fill(burst);
          },
        },
      });
      await asked;
      await block(node);
      await expect(node.connect()).rejects.toEqual(refusedWith('3-322'));
      const refusals = log.entries().filter(({ msg }) => msg === 'connection refused');
      expect(refusals).toMatchObject([{ reason: expect.stringMatching(/^a license is required: .* 2027-03-31/) }]);
      progress.emit('go on');
      await sending;
      await file.close();
      expect((await node.received('IN')).map((one) => one.equals(content))).toEqual([true]);
      await install(node);
      expect(await node.ended()).toMatchObject({ status: 'COMPLETED', bytesTransferred: 300_000 });
      await node.send(await node.connect(), 'IN', bytes(10));
    });

    test('a listener that starts blocked takes sessions once licensed', async () => {
      const node = await start();
      await node.configure({ autoStart: true });
      await block(node);
      await node.restart();
      await until(() => node.node.listeners.health().details?.['running'] === 1 || undefined);
      await expect(node.connect()).rejects.toEqual(refusedWith('3-322'));
      await install(node);
      expect((await node.connect()).usable).toBe(true);
    });
  });

  test('beyond the limits: not ready, 3-322 to new sessions, until a place is free', async () => {
    const node = await start();
    await node.configure();
    const { cluster, app, license: keeper } = node.node;
    const readiness = async () => (await request(app).get('/actuator/health/readiness')).status;
    const before = await node.connect();
    const others = await olderPods(database, 'server', 3);
    await cluster.members.refresh();
    await expect(node.connect()).rejects.toEqual(refusedWith('3-322'));
    expect(await readiness()).toBe(503);
    expect((await request(app).get('/actuator/health/liveness')).status).toBe(200);
    const refusals = log.entries().filter(({ msg }) => msg === 'connection refused');
    expect(refusals).toMatchObject([
      { reason: expect.stringMatching(/^pod node-a is number 4 of cluster pesit, the license allows 3: /) },
    ]);
    // What was there before goes on to its end.
    await node.send(before, 'IN', bytes(10));
    await others.leaves(2);
    await cluster.members.refresh();
    expect(await readiness()).toBe(200);
    await node.send(await node.connect(), 'IN', bytes(10));
    await keeper.install(license({ maxPodsPerCluster: 2 }), { actor: 'admin', force: true });
    await expect(node.connect()).rejects.toEqual(refusedWith('3-322'));
    await keeper.install(license({ licenseId: 'L-2', type: 'BUSINESS', maxPodsPerCluster: -1 }), {
      ...{ actor: 'admin', force: true },
    });
    await node.send(await node.connect(), 'IN', bytes(10));
  });

  test('all moves of the license', async () => {
    const { app, license: keeper } = (await start()).node;
    await expectMoves(app, ADMIN, keeper, clock);
  });

  test('rows deleted and clock turned back: the history remembers', async () => {
    const node = await start();
    await node.stop();
    const times = ['2027-03-01T10:00:00Z', '2027-03-20T10:00:00Z'];
    await database.knex('transfers').insert(
      times.map((time) => ({
        ...{ partner_id: 'ACME', direction: 'RECEIVE', status: 'PENDING', listener: 'NODE1', node: 'node-b' },
        ...{ instance: '00000000-0000-4000-8000-000000000001', session_id: 's', remote_address: '::1' },
        start_time: new Date(time),
      })),
    );
    await emptyTables(database, 'pesit_common');
    clock.set('2027-03-01T09:00:00Z');
    await node.restart();
    expect(node.node.license.status).toMatchObject({ evaluation: true, evaluationDaysRemaining: 11 });
  });

  test('installed on one node, effective on the other at its next look', async () => {
    const env = { LICENSE_EVALUATION_DAYS: '0' };
    const one = await start(env);
    const two = await start(env, await harness.another(database), 5);
    const transfers = () => request(two.node.app).get('/api/v1/transfers').auth(ADMIN.username, ADMIN.password);
    expect((await transfers()).status).toBe(402);
    const change = once(two.node.license, 'change');
    await install(one);
    expect(await change).toMatchObject([{ valid: true, licenseId: 'L-0001' }]);
    expect((await transfers()).status).toBe(200);
    expect(await two.call('get', '/api/v1/license')).toEqual(await one.call('get', '/api/v1/license'));
    const expired = once(two.node.license, 'change');
    await one.call('post', '/api/v1/license?force=true', { license: license({ expiryDate: '2027-02-01' }) });
    expect(await expired).toMatchObject([{ blocked: true }]);
    expect((await transfers()).status).toBe(402);
  });

  describe('from the configuration', () => {
    let directory: string;
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'pesit-secret-'));
    });
    afterAll(() => rm(directory, { recursive: true }));

    const broken = license({}, keyPair().privateKey);

    test('license.file and license.content', async () => {
      const path = join(directory, 'license.txt');
      await writeFile(path, `${license({ licenseId: 'FILE' })}\n`);
      const node = await start({ LICENSE_FILE: path, LICENSE_EVALUATION_DAYS: '0' });
      expect(node.node.license.status).toMatchObject({ valid: true, licenseId: 'FILE' });
      const content = license({ licenseId: 'CONTENT', expiryDate: '2028-12-31' });
      secrets.push(content);
      const other = await start({ LICENSE_CONTENT: content });
      expect(other.node.license.status).toMatchObject({ valid: true, licenseId: 'CONTENT' });
    });

    test('a broken one is logged and ignored; a file that changes is loaded', async () => {
      const path = join(directory, 'changing.txt');
      await writeFile(path, broken);
      secrets.push(broken);
      const env = { LICENSE_FILE: path, LICENSE_CONTENT: 'nonsense', LICENSE_EVALUATION_DAYS: '0' };
      const { license: keeper } = (await start(env, database, 5)).node;
      expect(keeper.status).toMatchObject({ blocked: true });
      expect(ignored()).toEqual([
        ['CONTENT', 'not-a-jwt'],
        ['FILE', 'wrong-signature'],
      ]);
      const change = once(keeper, 'change');
      await writeFile(path, license({ licenseId: 'RENEWED' }));
      expect(await change).toMatchObject([{ valid: true, licenseId: 'RENEWED' }]);
    });

    test('a file that is not there is named, and looked for again', async () => {
      const path = join(directory, 'later.txt');
      const { license: keeper } = (await start({ LICENSE_FILE: path, LICENSE_EVALUATION_DAYS: '0' }, database, 5)).node;
      expect(keeper.status).toMatchObject({ blocked: true });
      expect(log.entries()).toContainEqual(
        expect.objectContaining({ path, msg: 'could not read license.file: ignoring it' }),
      );
      const change = once(keeper, 'change');
      await writeFile(path, license());
      expect(await change).toMatchObject([{ valid: true }]);
    });
  });
});
