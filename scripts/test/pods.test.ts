/** Several pods of both apps over one PostgreSQL, as a Kubernetes installation has them. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Cluster } from '@pesit-node/cluster';
import type { LicenseKeeper } from '@pesit-node/license';
import { HealthRegistry, Lifecycle, SecretBox } from '@pesit-node/service';
import { captureLog, withDatabase, emptyTables, testConfig } from '@pesit-node/service/testing';
import type { TestDatabase } from '@pesit-node/service/testing';
import type { Express } from 'express';
import request from 'supertest';

import { CLIENT_MIGRATIONS, createNode as createClient } from '../../apps/client/src/index.js';
import { MIGRATIONS, createNode as createServer } from '../../apps/server/src/index.js';
import { startProxy, withRedis } from '../../packages/cluster/test/support/redis.js';
import { license, VENDOR_KEY } from '../../packages/license/test/support/vendor.js';

interface Pod {
  readonly name: string;
  readonly app: Express;
  readonly license: LicenseKeeper;
  readonly cluster: Cluster;
  readonly stop: () => Promise<unknown>;
}

type Overrides = Readonly<Partial<Record<'cluster.name' | 'redis.url', string>>>;

const SECONDS = 1000;

withDatabase((harness) => {
  let database: TestDatabase;
  let data: string;
  const pods: Pod[] = [];
  const closers: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    database = await harness.open({ searchPath: [MIGRATIONS.schema] });
  });
  beforeEach(async () => {
    // Directories bear the mark of their cluster.
    data = await mkdtemp(join(tmpdir(), 'pesit-pods-'));
    await emptyTables(database, MIGRATIONS.schema, CLIENT_MIGRATIONS.schema, 'pesit_common');
  });
  afterEach(async () => {
    for (const pod of pods.splice(0).reverse()) await pod.stop();
    for (const close of closers.splice(0).reverse()) await close();
    await rm(data, { recursive: true, force: true });
  });

  /** One more pod with everything that an app has but an HTTP port; when this resolves it knows its license and its place. */
  const start = async (
    kind: 'server' | 'client',
    name: string,
    days: number,
    overrides: Overrides = {},
  ): Promise<Pod> => {
    const { logger } = captureLog();
    const health = new HealthRegistry();
    const own = await harness.another({
      ...database,
      searchPath: [kind === 'server' ? MIGRATIONS.schema : CLIENT_MIGRATIONS.schema],
    });
    const settings = {
      ...{ 'data.directory': join(data, name), 'license.evaluation-days': days, 'shutdown.drain-timeout': 0 },
      ...{ 'cluster.enabled': true, ...overrides },
    };
    const secrets = new SecretBox([Buffer.alloc(32, 7)]);
    const common = { logger, health, database: own, secrets, licenseKey: VENDOR_KEY, node: name };
    const lifecycle = new Lifecycle({ logger, health });
    const node =
      kind === 'server'
        ? createServer({
            ...common,
            config: testConfig('server', settings),
            info: { name: 'pesit-server', version: '0' },
          })
        : createClient({
            ...{ ...common, config: testConfig('client', settings), info: { name: 'pesit-client', version: '0' } },
          });
    const steps =
      'steps' in node
        ? [node.steps.database, node.steps.spans, node.steps.files, node.steps.exchange]
        : [node.databaseStep, node.spansStep, node.exchangeStep];
    for (const step of steps) lifecycle.add(step);
    const pod: Pod = {
      ...{ name, app: node.app, license: node.license, cluster: node.cluster },
      stop: () => lifecycle.stop('the test ends'),
    };
    pods.push(pod);
    await lifecycle.start();
    await node.supervisor.whenReady();
    if ('whenBegun' in node) await node.whenBegun();
    await node.license.refresh();
    await node.cluster.members.refresh();
    return pod;
  };
  const startAll = async (days: number, overrides: Overrides, ...names: readonly string[]): Promise<Pod[]> => {
    const all: Pod[] = [];
    for (const name of names)
      all.push(await start(name.startsWith('server') ? 'server' : 'client', name, days, overrides));
    return all;
  };

  const call = (pod: Pod, method: 'get' | 'post', path: string, body?: object) =>
    request(pod.app)[method](path).auth('admin', 'admin').send(body);
  const readiness = async (pod: Pod) => {
    const { status, body } = await call(pod, 'get', '/actuator/health/readiness');
    return { status, cluster: body.components.cluster as { status: string; details: Record<string, unknown> } };
  };
  const transfers = async (all: readonly Pod[]): Promise<readonly number[]> =>
    Promise.all(all.map(async (pod) => (await call(pod, 'get', '/api/v1/transfers')).status));
  /** Installs on the first; the milliseconds from its answer until the last of the others knows. */
  const installed = async (all: readonly Pod[], text = license()): Promise<number> => {
    const [first, ...others] = all as [Pod, ...Pod[]];
    const known = Promise.all(others.map(({ license: keeper }) => once(keeper, 'change')));
    expect((await call(first, 'post', '/api/v1/license', { license: text })).status).toBe(200);
    const begun = performance.now();
    await known;
    return performance.now() - begun;
  };

  const NAMES = ['server-1', 'client-1', 'server-2', 'client-2'] as const;

  test('without Redis: installed on one, effective on all within 10 s', async () => {
    const all = await startAll(0, {}, ...NAMES);
    expect(await transfers(all)).toEqual([402, 402, 402, 402]);
    expect(await installed(all)).toBeLessThan(10 * SECONDS);
    expect(await transfers(all)).toEqual([200, 200, 200, 200]);
  });

  withRedis(({ url, unique }) => {
    /** Pods that hear each other. */
    const startHearing = async (at: string, ...names: readonly string[]): Promise<Pod[]> => {
      const all = await startAll(0, { 'cluster.name': unique(), 'redis.url': at }, ...names);
      for (const { cluster } of all) {
        while (cluster.redisConnected !== true) await new Promise(setImmediate);
      }
      return all;
    };

    test('with Redis: installed on one, effective on all within 2 s', async () => {
      const all = await startHearing(url, ...NAMES);
      expect(await transfers(all)).toEqual([402, 402, 402, 402]);
      expect(await installed(all)).toBeLessThan(2 * SECONDS);
      expect(await transfers(all)).toEqual([200, 200, 200, 200]);
      const forced = Promise.all(all.map(({ license: keeper }) => once(keeper, 'change')));
      await call(all[3]!, 'post', '/api/v1/license?force=true', { license: license({ expiryDate: '2020-01-01' }) });
      const begun = performance.now();
      await forced;
      expect(performance.now() - begun).toBeLessThan(2 * SECONDS);
      expect(await transfers(all)).toEqual([402, 402, 402, 402]);
    });

    test.each(['server', 'client'])(
      'with Redis: one pod of the %s app leads, both say so, and the other follows within 1 s when it leaves',
      async (app) => {
        const all = await startAll(30, { 'cluster.name': unique(), 'redis.url': url }, ...NAMES);
        const ofApp = all.filter(({ name }) => name.startsWith(app));
        const leads = ({ cluster }: Pod): boolean => cluster.leader.isLeader;
        if (!ofApp.some(leads)) await Promise.race(ofApp.map(({ cluster }) => once(cluster.leader, 'gain')));
        const leader = ofApp.find(leads)!;
        const other = ofApp.find((pod) => pod !== leader)!;
        for (const pod of ofApp) {
          const { body } = await call(pod, 'get', '/api/v1/cluster/status');
          expect(body).toMatchObject({ enabled: true, nodeName: pod.name, isLeader: pod === leader, memberCount: 2 });
          expect(body.redis).toEqual({ connected: true, since: expect.stringMatching(/^\d{4}-.+Z$/) });
          expect(body.members).toMatchObject(
            ofApp.map((member) => ({ name: member.name, app, isLeader: member === leader })),
          );
        }
        const { body: overview } = await call(other, 'get', '/api/v1/cluster');
        expect(overview).toMatchObject({ enabled: true, memberCount: 4 });
        const seen = (overview.members as { name: string; app: string }[]).map(({ name, app: of }) => [name, of]);
        expect(seen).toEqual([
          ...[
            ['server-1', 'server'],
            ['server-2', 'server'],
          ],
          ...[
            ['client-1', 'client'],
            ['client-2', 'client'],
          ],
        ]);
        const led = (overview.members as { name: string; isLeader: boolean }[]).filter(({ isLeader }) => isLeader);
        expect(led.map(({ name }) => name)).toContain(leader.name);
        // The other app says whom the first one follows.
        const fromOther = all.find(({ name }) => !name.startsWith(app))!;
        const { body: foreign } = await call(fromOther, 'get', '/api/v1/cluster');
        const known = (foreign.members as { name: string; isLeader: boolean }[]).filter(({ isLeader }) => isLeader);
        expect(known.map(({ name }) => name)).toContain(leader.name);
        const gained = once(other.cluster.leader, 'gain');
        await leader.stop();
        const begun = performance.now();
        await gained;
        expect(performance.now() - begun).toBeLessThan(SECONDS);
      },
    );

    test('Redis lost: every pod stays ready, says so, and learns by looking', async () => {
      const proxy = await startProxy(url);
      closers.push(() => proxy.close());
      const all = await startHearing(proxy.url, 'server-1', 'client-1');
      await proxy.cut();
      for (const { cluster } of all) {
        while (cluster.redisConnected !== false) await new Promise(setImmediate);
      }
      for (const pod of all) {
        expect(await readiness(pod)).toMatchObject({ status: 200, cluster: { details: { redis: 'LOST' } } });
        expect((await pod.cluster.status()).redis).toMatchObject({ connected: false });
      }
      expect(await installed(all)).toBeLessThan(10 * SECONDS);
    });

    test('a pod that stops gives its place to the next at once', async () => {
      const names = ['server-1', 'server-2', 'server-3', 'server-4'];
      const all = await startAll(30, { 'cluster.name': unique(), 'redis.url': url }, ...names);
      while (all.some(({ cluster }) => cluster.redisConnected !== true)) await new Promise(setImmediate);
      const [first, , , last] = all as [Pod, Pod, Pod, Pod];
      expect((await readiness(last)).status).toBe(503);
      const moved = once(last.cluster.members, 'change');
      await first.stop();
      const begun = performance.now();
      await moved;
      expect(performance.now() - begun).toBeLessThan(2 * SECONDS);
      expect((await readiness(last)).status).toBe(200);
    });
  });

  describe('the limits of the evaluation: 1 cluster, 3 pods of each app', () => {
    test('the fourth pod of an app is not ready and says why; each app counts for itself', async () => {
      const servers = ['server-1', 'server-2', 'server-3', 'server-4'];
      const all = await startAll(30, {}, ...servers, 'client-1');
      for (const pod of all) await pod.cluster.members.refresh();
      expect((await Promise.all(all.map(readiness))).map(({ status }) => status)).toEqual([200, 200, 200, 503, 200]);
      const last = all[3]!;
      expect((await readiness(last)).cluster).toEqual({
        status: 'DOWN',
        details: {
          ...{ cluster: 'pesit', pod: 'server-4', pods: 4 },
          reason:
            'pod server-4 is number 4 of cluster pesit, the license allows 3: install a larger license, or run fewer pods',
        },
      });
      // Renewals change nothing.
      for (const pod of all.toReversed()) await pod.cluster.members.refresh();
      expect((await Promise.all(all.map(readiness))).map(({ status }) => status)).toEqual([200, 200, 200, 503, 200]);
      // A larger license gives it a place; on the pod itself, which answers although it is not ready.
      const business = license({ type: 'BUSINESS', maxClusters: undefined, maxPodsPerCluster: undefined });
      expect((await call(last, 'post', '/api/v1/license', { license: business })).body).toMatchObject({
        ...{ maxClusters: 5, maxPodsPerCluster: -1 },
      });
      expect((await readiness(last)).status).toBe(200);
      // A smaller one is refused, as long as four run.
      const small = { license: license({ licenseId: 'SMALL', expiryDate: '2099-12-31' }) };
      const refused = await call(last, 'post', '/api/v1/license', small);
      expect([refused.status, refused.body.message]).toEqual([
        409,
        'License SMALL allows 1 clusters and 3 pods in each, but 1 and 4 run: stop some first, or repeat with ?force=true',
      ]);
      expect((await call(last, 'post', '/api/v1/license?force=true', small)).status).toBe(200);
      expect((await readiness(last)).status).toBe(503);
    });

    test('a pod that dies is gone when its lease is over: the next moves up by itself', async () => {
      const dead = (name: string, secondsLeft: number) =>
        database.knex('pesit_common.cluster_pods').insert({
          ...{ instance: randomUUID(), app: 'server', cluster: 'pesit', namespace: 'default', pod: name },
          seen_at: database.knex.raw('now() + make_interval(secs => ?)', [secondsLeft - 10]),
        });
      const first = await start('server', 'server-1', 30);
      for (const name of ['server-2', 'server-3']) await dead(name, 3600);
      await dead('server-4', 2);
      const fifth = await start('server', 'server-5', 30);
      expect((await readiness(fifth)).status).toBe(503);
      expect((await readiness(first)).status).toBe(200);
      await database.knex('pesit_common.cluster_pods').where({ pod: 'server-3' }).delete();
      while ((await readiness(fifth)).status !== 200) await once(fifth.cluster.members, 'change');
      expect(fifth.cluster.members.view?.pods.map(({ name }) => name)).toEqual(['server-1', 'server-2', 'server-5']);
    });

    test('a second cluster on the same database waits, until the first is gone', async () => {
      const paris = await start('server', 'server-1', 30, { 'cluster.name': 'paris' });
      const lyon = await start('server', 'server-2', 30, { 'cluster.name': 'lyon' });
      expect((await readiness(lyon)).cluster).toMatchObject({
        status: 'DOWN',
        details: { cluster: 'lyon', reason: expect.stringMatching(/^cluster lyon is number 2 .* allows 1/) },
      });
      expect((await readiness(paris)).status).toBe(200);
      await paris.stop();
      await lyon.cluster.members.refresh();
      expect((await readiness(lyon)).status).toBe(200);
    });
  });
});
