import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { PesitRequester } from '@pesit-node/net';
import { freePort, withDatabase } from '@pesit-node/service/testing';
import { FileSource, formatOf } from '@pesit-node/storage';

import { HOOK_SETTINGS, HookReceiver } from '../../../packages/hooks/test/support/receiver.js';
import { KilledService, patiently } from '../../../packages/service/test/support/killed-service.js';
import type { Json } from '../../../packages/service/test/support/killed-service.js';

const MAIN = new URL('../dist/main.js', import.meta.url);
const PASSWORD = 'k1ll-m3!';

/** Steps of a delivery at which the process may die; `intent` is recorded for files with sync points. */
const SMALL = ['link', 'mark', 'unlink', 'complete', 'settle'].flatMap((step) => [`before:${step}`, `after:${step}`]);
const LARGE = ['before:intent', 'after:intent', ...SMALL];
/** Those after which somebody may have fetched the file before it is recorded. */
const FETCHED = ['after:mark', 'after:unlink', 'before:complete', 'after:complete'];

interface Death {
  readonly step: string;
  readonly size: number;
  readonly fetched?: boolean;
}

withDatabase((harness) => {
  let directory: string;
  let service: KilledService;
  let port: number;
  let receiver: HookReceiver;

  beforeEach(async () => {
    const { url: databaseUrl } = await harness.open();
    directory = await mkdtemp(join(tmpdir(), 'pesit-killed-'));
    receiver = new HookReceiver();
    await receiver.start();
    service = new KilledService({
      ...{ main: MAIN, directory, databaseUrl, settings: HOOK_SETTINGS },
      // Listeners open when what the last process left is brought to its end.
      isReady: (servers) => (servers as { status: string }[]).every(({ status }) => status === 'RUNNING'),
    });
  });

  afterEach(async () => {
    await service.kill();
    receiver.close();
    await rm(directory, { recursive: true, force: true });
  });

  const configure = async (): Promise<void> => {
    port = await freePort();
    await service.call('POST', '/api/v1/config/partners', { partnerId: 'ACME', password: PASSWORD });
    await service.call('POST', '/api/v1/config/files', { fileId: 'IN', receiveDirectory: 'in' });
    await service.call('POST', '/api/v1/servers', { serverId: 'NODE1', port });
    await service.call('POST', '/api/v1/servers/NODE1/start');
    await service.call('POST', '/api/v1/hooks', receiver.hook);
  };

  /** The records of a transfer identifier. */
  const historyOf = async (transferId: number): Promise<readonly Json[]> => {
    const records = (await service.call('GET', '/api/v1/transfers?size=500'))['content'] as readonly Json[];
    return records.filter((record) => record['transferId'] === transferId);
  };

  const send = async (content: Buffer, transferId: number, restarted: boolean): Promise<void> => {
    const path = join(directory, 'source');
    await writeFile(path, content);
    const session = await PesitRequester.open({
      host: '127.0.0.1',
      port,
      dialect: 'length-prefixed',
      connectTimeout: 60_000,
      connect: {
        requester: 'ACME',
        server: 'NODE1',
        password: PASSWORD,
        accessType: 2,
        syncPoints: { intervalKb: 64, window: 4 },
      },
    });
    const source = await FileSource.open(path, formatOf({}));
    try {
      const terms = { interval: session.terms.syncInterval, maxUnsegmentedArticle: 32_762 };
      await session.sendFile({
        request: {
          fileIdentifier: { fileType: 0, fileName: 'IN' },
          transferId,
          restarted,
          maxEntitySize: 32_768,
          recordFormat: 128,
          recordLength: 4096,
          maxReservationKb: 1,
        },
        source,
        pointOf: (number) => source.startAt(number, [{ from: 0, ...terms }]),
      });
    } finally {
      await source.close();
      await session.release();
    }
  };

  /** Somebody takes the file away as soon as it is there. */
  const takeAway = async (content: Buffer): Promise<void> => {
    for (const name of await readdir(join(directory, 'in'))) {
      const path = join(directory, 'in', name);
      if (name !== '.pesit' && (await readFile(path)).equals(content)) await rm(path);
    }
  };

  const delivered = async (): Promise<readonly Buffer[]> => {
    const entries = await readdir(join(directory, 'in'), { withFileTypes: true });
    const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
    return Promise.all(names.map((name) => readFile(join(directory, 'in', name))));
  };

  /**
   * One process after the other dies at its step; the partner, which has no acknowledgement, restarts with the next one.
   * Every file is there once at the end of its round, whole, with one record.
   */
  const diesAt = async (deaths: readonly Death[]): Promise<void> => {
    await service.start(deaths[0]?.step);
    await configure();
    let stay = 0;
    for (const [index, { step, size, fetched = false }] of deaths.entries()) {
      const content = randomBytes(size);
      const transferId = index + 1;
      await expect(send(content, transferId, false)).rejects.toMatchObject({ diagnostic: '3-310' });
      expect(await service.dead()).toBe('SIGKILL');
      if (fetched) await takeAway(content);
      const log = await service.start(deaths[index + 1]?.step);
      const isDelivered = step !== 'before:link' && !step.endsWith('intent');
      const [found, ...none] = await historyOf(transferId);
      const state = isDelivered
        ? { status: 'COMPLETED' }
        : { status: 'FAILED', restartable: true, diagnostic: '2-223' };
      expect([step, found, none]).toEqual([step, expect.objectContaining(state), []]);
      expect([step, (await delivered()).length]).toEqual([step, stay + (isDelivered && !fetched ? 1 : 0)]);
      const words = isDelivered ? 'as COMPLETED: its file was delivered' : 'as FAILED: the partner may restart it';
      if (step !== 'after:complete' && !step.endsWith('settle'))
        expect([step, log()]).toEqual([step, expect.stringContaining(words)]);

      await send(content, transferId, true);
      expect([step, (await delivered()).filter((file) => file.equals(content)).length]).toEqual([
        step,
        fetched ? 0 : 1,
      ]);
      if (!fetched) stay += 1;
      const [record, ...more] = await historyOf(transferId);
      expect(more).toEqual([]);
      expect(record).toMatchObject({ id: found?.['id'], status: 'COMPLETED', size });
      // The sweep at the start of a process removes what one leaves that is killed after the commit.
      const staged = () => readdir(join(directory, 'in/.pesit'));
      await patiently(async () => (await staged()).length === 0);
    }
    // Ordered in the transaction of the outcome, so that none is lost with its process; told again under the same id at most.
    // One that was under way is taken over after its lease.
    await patiently(() => Promise.resolve(receiver.told.size === deaths.length), 240_000);
    expect(receiver.unlike('transfer.completed')).toEqual([]);
    const { transferCount } = await service.call('GET', '/api/v1/config/partners/ACME');
    expect(transferCount).toBe(deaths.length);
  };

  const deaths = [
    ...SMALL.map((step) => ({ step, size: 5000 })),
    ...LARGE.map((step) => ({ step, size: 300_000 })),
    ...FETCHED.flatMap((step) => [5000, 300_000].map((size) => ({ step, size, fetched: true }))),
  ];

  test('a process that is killed while it delivers leaves one file and one record', () => diesAt(deaths), 600_000);
});
