/** The foundation of both apps, under an app that has nothing but a table. */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { NotLeaderError } from '@pesit-node/cluster';
import { CONFIGURATION_CHANGED, HealthRegistry, SecretBox } from '@pesit-node/service';
import type { MigrationSet } from '@pesit-node/service';
import { captureLog, silentLogger, testConfig, withDatabase } from '@pesit-node/service/testing';
import request from 'supertest';

import { createFoundation } from '../src/foundation.js';
import { createLicensedApp } from '../src/licensed-app.js';
import { VirtualClock } from './support/pods.js';
import { license as licenseText, VENDOR_KEY } from './support/vendor.js';

const MIGRATIONS: MigrationSet = {
  schema: 'pesit_server',
  migrations: [
    { name: '0001-drawers', up: (knex) => knex.schema.createTable('drawers', (table) => table.increments()) },
  ],
};
const UNREAD = { status: 'DOWN', details: { license: 'UNKNOWN' } };

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pesit-foundation-'));
});
afterAll(() => rm(directory, { recursive: true }));

withDatabase((harness) => {
  test('one step starts and stops database, membership and license; the app is behind the gate', async () => {
    const config = {
      ...testConfig('server', { 'data.directory': directory, 'admin.username': 'ann', 'admin.password': 'drawer-9' }),
    };
    const { logger } = captureLog();
    const health = new HealthRegistry();
    const info = { name: 'tried', version: '1' };
    const database = await harness.open({ searchPath: ['pesit_server'] });
    const foundation = createFoundation({
      ...{
        sessions: () => 0,
        app: 'server',
        migrations: MIGRATIONS,
        config,
        logger,
        health,
        info,
        database,
        node: 'pod-1',
      },
      ...{ secrets: new SecretBox([Buffer.alloc(32, 7)]), licenseKey: VENDOR_KEY },
      licenseTimes: { clock: new VirtualClock('2027-03-01T08:00:00Z') },
    });
    const { supervisor, periodic, cluster, license, audit, events, metrics, step, reloaded } = foundation;
    const app = createLicensedApp({
      ...{ config, info, logger, health, metrics, events, periodic, license, audit, cluster, database: supervisor },
      routes: () => undefined,
    });
    const ask = async () => (await request(app).get('/api/v1/license').auth('ann', 'drawer-9')).body as unknown;
    // Nothing is asked of the database before its step.
    expect((await health.readiness()).components).toMatchObject({ database: { status: 'DOWN' }, license: UNREAD });

    await step.start?.(new AbortController().signal);
    await supervisor.whenReady();
    await Promise.all([cluster.members.refresh(), license.refresh()]);
    expect((await health.readiness()).components).toMatchObject({
      ...{ database: { status: 'UP' }, license: { status: 'UP' } },
      cluster: { status: 'UP', details: { pod: 'pod-1', pods: 1 } },
    });
    expect(await database.knex('drawers')).toEqual([]);
    expect(await ask()).toMatchObject({ evaluation: true, valid: false });
    const status = await request(app).get('/api/cluster/status').auth('ann', 'drawer-9');
    expect([status.status, status.body]).toEqual([
      200,
      {
        ...{ enabled: false, clusterName: 'pesit', nodeName: 'pod-1', isLeader: true, memberCount: 1, redis: null },
        members: [
          {
            ...{
              name: 'pod-1',
              address: expect.stringMatching(/^.+:8080$/),
              app: 'server',
              version: '1',
              isLeader: true,
            },
            ...{ ready: true, notReadyReason: null, sessions: 0, startedAt: expect.stringMatching(/^\d{4}-.+Z$/) },
          },
        ],
      },
    ]);

    const overview = await request(app).get('/api/v1/cluster').auth('ann', 'drawer-9');
    expect([overview.status, overview.body]).toEqual([
      200,
      { enabled: false, clusterName: 'pesit', memberCount: 1, members: status.body.members },
    ]);

    config['license.file'] = join(directory, 'license');
    await writeFile(config['license.file'], licenseText());
    const changed = once(license, 'change');
    reloaded();
    await changed;
    expect(await ask()).toMatchObject({ evaluation: false, valid: true });

    const heard: unknown[] = [];
    events.subscribe(CONFIGURATION_CHANGED, (event) => heard.push(event));
    await step.stop?.();
    events.publish(CONFIGURATION_CHANGED, { what: 'drawer', action: 'created', facts: {} });
    expect([heard, supervisor.statusReason]).toEqual([[], 'stopped']);
    expect(await database.knex('pesit_common.cluster_pods')).toEqual([]);
  });

  test("pods of a cluster elect one of them for the leader's work, and the next one when it leaves", async () => {
    const first = await harness.open({ searchPath: ['pesit_server'] });
    const runs: string[] = [];
    const startPod = async (node: string, database: typeof first) => {
      const foundation = createFoundation({
        ...{ app: 'server', migrations: MIGRATIONS, database, node, sessions: () => 3 },
        config: testConfig('server', { 'data.directory': directory, 'cluster.enabled': true }),
        ...{ logger: silentLogger, health: new HealthRegistry(), info: { name: 'tried', version: '1' } },
        ...{ secrets: new SecretBox([Buffer.alloc(32, 7)]), licenseKey: VENDOR_KEY },
        licenseTimes: { clock: new VirtualClock('2027-03-01T08:00:00Z') },
      });
      const { periodic, cluster, supervisor, step } = foundation;
      periodic.add({ name: 'tidying', intervalMs: 3_600_000, runsOn: 'leader', run: () => void runs.push(node) });
      await step.start?.(new AbortController().signal);
      await supervisor.whenReady();
      cluster.leader.start();
      return { cluster, foundation, stop: () => step.stop?.() };
    };
    const one = await startPod('one', first);
    if (!one.cluster.leader.isLeader) await once(one.cluster.leader, 'gain');
    const two = await startPod('two', await harness.another(first));
    await two.cluster.leader.refresh();
    expect([one, two].map(({ cluster }) => cluster.leader.isLeader)).toEqual([true, false]);
    expect(await one.foundation.metrics.scrape()).toMatch(/^pesit_cluster_leader 1$/m);
    expect(await two.foundation.metrics.scrape()).toMatch(/^pesit_cluster_leader 0$/m);
    // The second renewal of a pod tells of it.
    await one.cluster.members.refresh();
    await one.cluster.members.refresh();
    expect(await two.cluster.status()).toMatchObject({
      ...{ enabled: true, nodeName: 'two', isLeader: false, memberCount: 2 },
      members: [
        { name: 'one', isLeader: true, version: '1', sessions: 3, ready: expect.any(Boolean) },
        { name: 'two', isLeader: false, version: '1', sessions: 3 },
      ],
    });
    const write = () => two.cluster.asLeader((trx) => trx('drawers').insert({}));
    await expect(write()).rejects.toThrow(NotLeaderError);

    const gained = once(two.cluster.leader, 'gain');
    // Its drain begins: it has work left, and none for the leader.
    await one.cluster.leave();
    expect(await gained).toEqual([2]);
    await write();
    await one.stop();
    await two.stop();
    expect(runs).toEqual(['one', 'two']);
  });
});
