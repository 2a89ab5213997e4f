/** Two pods on one machine. One stands still at a step of a delivery for longer than its lease, and continues. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { KilledService, patiently } from '../../../packages/service/test/support/killed-service.js';
import type { Json } from '../../../packages/service/test/support/killed-service.js';
import { startPartner } from './support/partner.js';
import type { Partner } from './support/partner.js';

const MAIN = new URL('../dist/main.js', import.meta.url);

withDatabase((harness) => {
  let directory: string;
  let pods: readonly KilledService[] = [];
  let partner: Partner;
  const files: Record<string, Buffer> = {};

  beforeEach(async () => {
    const { url: databaseUrl } = await harness.open();
    directory = await mkdtemp(join(tmpdir(), 'pesit-client-frozen-'));
    pods = ['pod-a', 'pod-b'].map(
      (pod) =>
        new KilledService({
          ...{ main: MAIN, directory, databaseUrl, pod, signal: 'SIGSTOP' },
          settings: { 'cluster.enabled': true, 'transfer.retry.initial-delay': 0 },
        }),
    );
    partner = await startPartner({ files, restarts: true, syncPoints: { intervalKb: 8, window: 2 } });
  });

  afterEach(async () => {
    for (const pod of pods) await pod.kill();
    await partner.close();
    await rm(directory, { recursive: true, force: true });
  });

  test.each(['before:link', 'after:link'])(
    'a pod that stands still %s: another one brings the transfer to its end, and the file is there once',
    async (step) => {
      const [frozen, other] = pods as [KilledService, KilledService];
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
      expect(found).toMatchObject({ status: 'COMPLETED', size: 90_000, filename: 'F' });
      frozen.goOn();
      await patiently(() => Promise.resolve(log().includes('another process has taken it over')));
      expect(await record()).toEqual(found);
      const received = join(directory, 'received');
      expect((await readdir(received)).filter((name) => name !== '.pesit')).toEqual(['F']);
      expect((await readFile(join(received, 'F'))).equals(content)).toBe(true);
      await patiently(async () => (await readdir(join(received, '.pesit'))).length === 0);
    },
    180_000,
  );
});
