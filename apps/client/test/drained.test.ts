/** SIGTERM to a process as it is built, in the middle of transfers: it ends in peace, and another pod continues them. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { KilledService, patiently } from '../../../packages/service/test/support/killed-service.js';
import type { Json } from '../../../packages/service/test/support/killed-service.js';
import { startPartner } from './support/partner.js';
import type { Partner } from './support/partner.js';
import { deferred } from './support/world.js';

const MAIN = new URL('../dist/main.js', import.meta.url);
const SIZE = 400_000;

withDatabase((harness) => {
  let directory: string;
  let pods: readonly KilledService[] = [];
  let partner: Partner;

  beforeEach(async () => {
    const { url: databaseUrl } = await harness.open();
    directory = await mkdtemp(join(tmpdir(), 'pesit-client-drained-'));
    pods = ['pod-a', 'pod-b'].map(
      (pod) =>
        new KilledService({
          ...{ main: MAIN, directory, databaseUrl, pod },
          settings: { 'cluster.enabled': true, 'shutdown.drain-timeout': 1, 'transfer.retry.initial-delay': 0 },
        }),
    );
  });
  afterEach(async () => {
    for (const pod of pods) await pod.kill();
    await partner.close();
    await rm(directory, { recursive: true, force: true });
  });

  test('exit 0 within the grace, and both directions come to their end once, from their points', async () => {
    const [content, offered] = [randomBytes(SIZE), randomBytes(SIZE)];
    const held = deferred();
    const middle = { checkpoint: deferred(), fill: deferred() };
    const calls = { checkpoint: 0, fill: 0 };
    /** From its third step on each stands still, until the first process has gone. */
    const hold = (step: 'checkpoint' | 'fill') => async () => {
      calls[step] += 1;
      if (calls[step] < 3) return;
      middle[step].resolve();
      await held.promise;
    };
    partner = await startPartner({
      ...{ files: { X: offered }, restarts: true, syncPoints: { intervalKb: 16, window: 2 } },
      before: { checkpoint: hold('checkpoint'), fill: hold('fill') },
    });
    const [first, other] = pods as [KilledService, KilledService];
    await first.start();
    const server = { name: 'bank', host: '127.0.0.1', port: partner.port, serverId: 'S', clientId: 'C' };
    await first.call('POST', '/api/v1/servers', server);
    await writeFile(join(directory, 'send', 'F'), content);
    const ids = await Promise.all([
      first.call('POST', '/api/v1/transfers/send', { server: 'bank', virtualFile: 'F', filename: 'F' }),
      first.call('POST', '/api/v1/transfers/receive', { server: 'bank', virtualFile: 'X' }),
    ]);
    await Promise.all([middle.checkpoint.promise, middle.fill.promise]);
    await other.start();
    expect(await first.terminate()).toBe(0);
    held.resolve();
    const records = (): Promise<Json[]> =>
      Promise.all(ids.map(({ id }) => other.call('GET', `/api/v1/transfers/${String(id)}`)));
    await patiently(async () => (await records()).every(({ status }) => status === 'COMPLETED'));
    const completed = { status: 'COMPLETED', node: 'pod-b', size: SIZE };
    expect(await records()).toMatchObject([completed, completed]);
    expect(partner.written.map((one) => one.content.equals(content))).toEqual([true]);
    expect([partner.creates.at(-1)?.restarted, partner.selects.at(-1)?.restarted]).toEqual([1, 1]);
    const received = join(directory, 'received');
    expect((await readdir(received)).filter((name) => name !== '.pesit')).toEqual(['X']);
    expect((await readFile(join(received, 'X'))).equals(offered)).toBe(true);
  }, 180_000);
});
