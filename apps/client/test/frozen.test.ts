/** Two pods on one machine. One stands still at a step of a delivery for longer than its lease, and continues; or is killed. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, expect, test } from '@jest/globals';
import { deferred } from '@pesit-node/ground';
import { withDatabase } from '@pesit-node/service/testing';

import { EventFollower, statusesAt } from '../../../packages/service/test/support/event-follower.js';
import { KilledService, patiently } from '../../../packages/service/test/support/killed-service.js';
import type { Json } from '../../../packages/service/test/support/killed-service.js';
import { startPartner } from './support/partner.js';

const MAIN = new URL('../dist/main.js', import.meta.url);

withDatabase((harness) => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  /** A pod stands still at `step`: another one brings the transfer to its end, and the file is there once. */
  const standsStill = async (step: string): Promise<void> => {
    const files: Record<string, Buffer> = {};
    const { url: databaseUrl } = await harness.open();
    const directory = await mkdtemp(join(tmpdir(), 'pesit-client-frozen-'));
    closers.push(() => rm(directory, { recursive: true, force: true }));
    const partner = await startPartner({ files, restarts: true, syncPoints: { intervalKb: 8, window: 2 } });
    closers.push(() => partner.close());
    const [frozen, other] = ['pod-a', 'pod-b'].map((pod) => {
      const settings = { 'cluster.enabled': true, 'transfer.retry.initial-delay': 0 };
      const service = new KilledService({ main: MAIN, directory, databaseUrl, pod, signal: 'SIGSTOP', settings });
      closers.push(() => service.kill());
      return service;
    }) as [KilledService, KilledService];

    const log = await frozen.start(step, 'F');
    const server = { name: 'bank', host: '127.0.0.1', port: partner.port, serverId: 'S', clientId: 'C' };
    await frozen.call('POST', '/api/v1/servers', server);
    const content = (files['F'] = randomBytes(90_000));
    const { id } = await frozen.call('POST', '/api/v1/transfers/receive', { server: 'bank', virtualFile: 'F' });
    await frozen.stands();
    await other.start();
    const record = (): Promise<Json> => other.call('GET', `/api/v1/transfers/${String(id)}`);
    const ended = async (): Promise<boolean> =>
      !['PENDING', 'IN_PROGRESS'].includes(String((await record())['status']));
    // Its lease of 30 s, and as much to be sure that everybody could have renewed.
    await patiently(ended, 150_000);
    const found = await record();
    expect([step, found]).toEqual([
      step,
      expect.objectContaining({ status: 'COMPLETED', size: 90_000, filename: 'F' }),
    ]);
    frozen.goOn();
    await patiently(() => Promise.resolve(log().includes('another process has taken it over')));
    expect([step, await record()]).toEqual([step, found]);
    const received = join(directory, 'received');
    expect([step, (await readdir(received)).filter((name) => name !== '.pesit')]).toEqual([step, ['F']]);
    expect((await readFile(join(received, 'F'))).equals(content)).toBe(true);
    await patiently(async () => (await readdir(join(received, '.pesit'))).length === 0);
  };

  /** One is killed while both work: who reads events hears of every outcome when it comes again to the other one. */
  const isKilled = async (): Promise<void> => {
    const { url: databaseUrl } = await harness.open();
    const directory = await mkdtemp(join(tmpdir(), 'pesit-client-killed-'));
    closers.push(() => rm(directory, { recursive: true, force: true }));
    const files: Record<string, Buffer> = { F: randomBytes(3000) };
    const [isDead, count] = [deferred<undefined>(), 20];
    let ends = 0;
    // Some come through, the others are under way or wait when it dies.
    const before = { endTransfer: () => (++ends <= 6 ? undefined : isDead.promise) };
    const partner = await startPartner({ files, restarts: true, before });
    closers.push(() => partner.close());
    const [dies, other] = ['pod-a', 'pod-b'].map((pod) => {
      const settings = { 'cluster.enabled': true, 'transfer.retry.initial-delay': 0 };
      const service = new KilledService({ main: MAIN, directory, databaseUrl, pod, settings });
      closers.push(() => service.kill());
      return service;
    }) as [KilledService, KilledService];
    await dies.start();
    await other.start();
    const server = { name: 'bank', host: '127.0.0.1', port: partner.port, serverId: 'S', clientId: 'C' };
    await dies.call('POST', '/api/v1/servers', server);
    const reader = new EventFollower();
    await reader.connect(dies);
    for (let n = 0; n < count; n++) {
      await dies.call('POST', '/api/v1/transfers/receive', { server: 'bank', virtualFile: 'F' });
    }
    await reader.saw('COMPLETED', 6);
    await dies.kill();
    await reader.over();
    await reader.connect(other);
    isDead.resolve(undefined);
    // Those that the dead one has taken follow when its leases are over.
    await reader.saw('COMPLETED', count);
    expect(reader.resets).toEqual(['new', 'unknown id']);
    expect(reader.statuses).toEqual(await statusesAt(other));
    await reader.close();
  };

  // Side by side: each waits for a lease of its own.
  test('before its file has its name, or behind that: it is there once; killed: every outcome is told', async () => {
    await Promise.all([...['before:link', 'after:link'].map(standsStill), isKilled()]);
  }, 300_000);
});
