/** Both apps side by side, as an installation has them: what the one installs is the other's, when they share a database. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { LicenseKeeper } from '@pesit-node/license';
import { HealthRegistry, openDatabase, SecretBox } from '@pesit-node/service';
import type { Database, LifecycleStep } from '@pesit-node/service';
import { captureLog, withDatabase, testConfig } from '@pesit-node/service/testing';

import { CLIENT_MIGRATIONS, createNode as createClient } from '../../apps/client/src/index.js';
import { MIGRATIONS, createNode as createServer } from '../../apps/server/src/index.js';
import { VirtualClock } from '../../packages/license/test/support/pods.js';
import { license, VENDOR_KEY } from '../../packages/license/test/support/vendor.js';

withDatabase((harness) => {
  let data: string;
  const stops: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'pesit-two-apps-'));
  });
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  afterAll(() => rm(data, { recursive: true, force: true }));

  const { logger } = captureLog();
  const common = {
    logger,
    secrets: new SecretBox([Buffer.alloc(32, 7)]),
    licenseKey: VENDOR_KEY,
    licenseTimes: { clock: new VirtualClock('2027-03-01T08:00:00Z'), refreshEveryMs: 5 },
  };
  const overrides = () => ({ 'data.directory': data, 'license.evaluation-days': 0 });

  const begin = async (step: LifecycleStep, license: LicenseKeeper): Promise<LicenseKeeper> => {
    const known = once(license, 'change');
    await step.start?.(new AbortController().signal);
    stops.push(async () => step.stop?.());
    await known;
    return license;
  };
  const startServer = (database: Database): Promise<LicenseKeeper> => {
    const config = testConfig('server', overrides());
    const info = { name: 'pesit-server', version: '0.0.0' };
    const node = createServer({ ...common, config, info, health: new HealthRegistry(), database, node: 'server-1' });
    return begin(node.databaseStep, node.license);
  };
  const startClient = (database: Database): Promise<LicenseKeeper> => {
    const config = testConfig('client', overrides());
    const info = { name: 'pesit-client', version: '0.0.0' };
    const node = createClient({
      ...{ ...common, config, info, health: new HealthRegistry(), database, node: 'client-1' },
    });
    return begin(node.steps.database, node.license);
  };

  test('over one PostgreSQL: installed on the server app, effective on the client app', async () => {
    const database = await harness.open({ searchPath: [MIGRATIONS.schema] });
    const server = await startServer(database);
    const own = await openDatabase({
      ...{ url: database.url, dataDirectory: data, name: 'client', searchPath: [CLIENT_MIGRATIONS.schema] },
      ...{ poolMax: 5, logger },
    });
    stops.push(() => own.close());
    const client = await startClient(own);
    expect([server.status, client.status]).toMatchObject([{ blocked: true }, { blocked: true }]);
    const change = once(client, 'change');
    await server.install(license(), { actor: 'admin', force: false });
    expect(await change).toMatchObject([{ valid: true, licenseId: 'L-0001' }]);
  });

  test('each with a database of its own: each has a license of its own', async () => {
    const server = await startServer(await harness.open({ searchPath: [MIGRATIONS.schema] }));
    const client = await startClient(await harness.open({ searchPath: [CLIENT_MIGRATIONS.schema] }));
    await server.install(license(), { actor: 'admin', force: false });
    await client.refresh();
    expect([server.status, client.status]).toMatchObject([{ valid: true }, { blocked: true }]);
  });
});
