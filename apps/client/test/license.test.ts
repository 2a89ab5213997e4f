import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { loadPublicKey } from '@pesit-node/license';
import { loadConfig } from '@pesit-node/service';
import { withDatabase, emptyTables } from '@pesit-node/service/testing';
import request from 'supertest';

import {
  expectBlocked,
  expectMoves,
  expectReadyAndBlocked,
  PUBLIC,
} from '../../../packages/license/test/support/gated-app.js';
import { olderPods, VirtualClock } from '../../../packages/license/test/support/pods.js';
import { keyPair, license, VENDOR } from '../../../packages/license/test/support/vendor.js';
import { expectNoSecrets, startService } from './support/service.js';
import type { Service, ServiceOptions } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

const ADMIN = { username: 'admin', password: 'rest-secret-1' };

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);
  let clock: VirtualClock;
  let directory: string;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'pesit-license-'));
  });
  afterAll(() => rm(directory, { recursive: true }));
  beforeEach(async () => {
    await emptyTables(world.database(), 'pesit_common');
    clock = new VirtualClock('2027-03-01T08:00:00Z');
  });

  /** What a service needs that is configured as in production, by its environment, with the key of the test vendor. */
  const options = async (env: Readonly<Record<string, string>> = {}, refreshEveryMs = 60_000) => {
    const config = loadConfig({
      app: 'client',
      env: {
        DATA_DIRECTORY: directory,
        ADMIN_PASSWORD: ADMIN.password,
        SHUTDOWN_DRAIN_TIMEOUT: '0',
        LICENSE_PUBLIC_KEY: VENDOR.publicPem,
        ...env,
      },
      argv: [],
      cwd: directory,
    });
    const licenseKey = await loadPublicKey(config['license.public-key']);
    return { config, licenseKey, licenseTimes: { clock, refreshEveryMs } } satisfies ServiceOptions;
  };
  const start = async (...args: Parameters<typeof options>): Promise<Service> => world.service(await options(...args));
  const install = async (service: Service, text = license()): Promise<void> => {
    expect((await service.api.post('/license', { license: text })).status).toBe(200);
  };
  const block = async (service: Service): Promise<void> => {
    clock.days(31);
    await service.license.refresh();
  };
  const BLOCKED = { LICENSE_EVALUATION_DAYS: '0' };

  describe('blocked', () => {
    test('every route of the app: 402 behind the login', async () => {
      const service = await start();
      await expectBlocked(service.app, ADMIN, () => block(service));
    });

    test('with metrics.public information and metrics stay open', async () => {
      const service = await start({ METRICS_PUBLIC: 'true' });
      await expectBlocked(service.app, ADMIN, () => block(service), PUBLIC);
    });

    test('health names it, and the pod stays ready', async () => {
      await expectReadyAndBlocked((await start(BLOCKED)).app, ADMIN);
    });

    test('a running transfer ends; the next waits, and goes by itself once licensed', async () => {
      const arrived = deferred();
      const held = deferred();
      const partner = await world.partner({
        before: {
          create: () => {
            arrived.resolve();
            return held.promise;
          },
        },
      });
      const service = await world.service({ ...(await options()), settings: { corePoolSize: 1 } });
      const { queue } = service.exchange;
      const ended = (id: string) => queue.whenEnded(id, 10_000, new AbortController().signal);
      await world.remote(service, partner.port);
      const ids: string[] = [];
      for (const remoteFilename of ['running', 'waiting']) {
        const body = { server: 'bank', virtualFile: 'V', fileContent: CONTENT, remoteFilename };
        ids.push((await service.api.post('/transfers/send', body)).body.id as string);
      }
      const [running, waiting] = ids as [string, string];
      await arrived.promise;
      clock.days(31);
      await service.license.refresh();
      expect((await service.api.get('/transfers')).status).toBe(402);

      const end = ended(running);
      held.resolve();
      expect(await end).toMatchObject({ status: 'COMPLETED' });
      // Time enough for the queue to take it: it looked when the first ended, and looks again here.
      queue.wake();
      await service.license.refresh();
      expect(queue.running).toBe(0);
      expect(await service.transfers.find(waiting)).toMatchObject({ status: 'PENDING' });

      const later = ended(waiting);
      await install(service);
      expect(await later).toMatchObject({ status: 'COMPLETED' });
      expect(partner.written).toHaveLength(2);
    });

    test('a transfer that is being taken at that moment is given back', async () => {
      const partner = await world.partner();
      const service = await world.service(await options());
      await world.remote(service, partner.port);
      const taking = deferred();
      const held = deferred();
      const { take } = service.transfers;
      // The answer of the database is on its way while the license runs out.
      Object.assign(service.transfers, {
        take: async (...asked: Parameters<typeof take>) => {
          const taken = await take(...asked);
          if (taken.jobs.length > 0) taking.resolve();
          await held.promise;
          return taken;
        },
      });
      const body = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };
      const { id } = (await service.api.post('/transfers/send', body)).body as { readonly id: string };
      await taking.promise;
      await block(service);
      held.resolve();
      await until(async () => (await service.transfers.find(id))?.status === 'PENDING');
      expect(partner.creates).toHaveLength(0);
      const end = service.exchange.queue.whenEnded(id, 10_000, new AbortController().signal);
      await install(service);
      expect(await end).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    });

    test('a queue that starts blocked waits as well', async () => {
      const partner = await world.partner();
      const first = await world.service({ ...(await options()), settings: { corePoolSize: 0, maxPoolSize: 0 } });
      await world.remote(first, partner.port);
      const body = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };
      const { id } = (await first.api.post('/transfers/send', body)).body as { readonly id: string };
      clock.days(31);
      const second = await world.service({ ...(await options()), data: first.data, node: 'other' });
      second.exchange.queue.wake();
      await second.license.refresh();
      expect(await second.transfers.find(id)).toMatchObject({ status: 'PENDING' });
      const end = second.exchange.queue.whenEnded(id, 10_000, new AbortController().signal);
      await second.api.post('/license/extend-evaluation', { days: 1 });
      expect(await end).toMatchObject({ status: 'COMPLETED' });
    });
  });

  test('beyond the limits: not ready, and the queue waits until a place is free', async () => {
    const partner = await world.partner();
    const service = await start();
    const { queue } = service.exchange;
    await world.remote(service, partner.port);
    const readiness = async () => (await request(service.app).get('/actuator/health/readiness')).status;
    const others = await olderPods(world.database(), 'client', 3);
    await service.cluster.members.refresh();
    const body = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };
    const { id } = (await service.api.post('/transfers/send', body)).body as { readonly id: string };
    queue.wake();
    await service.cluster.members.refresh();
    expect([queue.running, await readiness()]).toEqual([0, 503]);
    expect(await service.transfers.find(id)).toMatchObject({ status: 'PENDING' });
    const end = queue.whenEnded(id, 10_000, new AbortController().signal);
    await others.leaves(1);
    await service.cluster.members.refresh();
    expect(await end).toMatchObject({ status: 'COMPLETED' });
    expect(await readiness()).toBe(200);
  });

  test('all moves of the license', async () => {
    const service = await start();
    await expectMoves(service.app, ADMIN, service.license, clock);
  });

  test('rows deleted and the clock turned back by weeks: the history remembers', async () => {
    const first = await start();
    await world.remote(first, 3);
    await world.send(first);
    await first.stop();
    await world
      .database()
      .knex('transfers')
      .update({ created_time: new Date('2027-03-20T10:00:00Z') });
    await emptyTables(world.database(), 'pesit_common');
    // The clock stands at the first start again.
    const second = await start();
    expect(second.license.status).toMatchObject({ evaluation: true, evaluationDaysRemaining: 11 });
  });

  test('installed on one node, effective on the other at its next look', async () => {
    const one = await start(BLOCKED);
    const two = await startService(await harness.another(world.database()), {
      ...(await options(BLOCKED, 5)),
      node: 'other',
    });
    const transfers = () => request(two.app).get('/api/v1/transfers').auth(ADMIN.username, ADMIN.password);
    try {
      expect((await transfers()).status).toBe(402);
      const change = once(two.license, 'change');
      await install(one);
      expect(await change).toMatchObject([{ valid: true, licenseId: 'L-0001' }]);
      expect((await transfers()).status).toBe(200);
      expect((await two.api.get('/license')).body).toEqual((await one.api.get('/license')).body);
    } finally {
      await two.stop();
    }
  });

  describe('from the configuration', () => {
    const ignored = ({ log }: Service): readonly unknown[] =>
      log
        .entries()
        .filter(({ msg }) => msg === 'ignoring a license of the configuration that is not valid')
        .map(({ source, fault }) => [source, fault]);

    test('license.file and license.content', async () => {
      const path = join(directory, 'license.txt');
      await writeFile(path, `${license({ licenseId: 'FILE' })}\n`);
      const first = await start({ ...BLOCKED, LICENSE_FILE: path });
      expect(first.license.status).toMatchObject({ valid: true, licenseId: 'FILE' });
      const content = license({ licenseId: 'CONTENT', expiryDate: '2028-12-31' });
      const second = await start({ ...BLOCKED, LICENSE_CONTENT: content });
      expect(second.license.status).toMatchObject({ valid: true, licenseId: 'CONTENT' });
      expect(second.log.lines.join('\n')).not.toContain(content);
    });

    test('a broken one is logged and ignored; a file that changes is loaded', async () => {
      const path = join(directory, 'changing.txt');
      await writeFile(path, license({}, keyPair().privateKey));
      const service = await start({ ...BLOCKED, LICENSE_FILE: path, LICENSE_CONTENT: 'nonsense' }, 5);
      expect(service.license.status).toMatchObject({ blocked: true });
      expect(ignored(service)).toEqual([
        ['CONTENT', 'not-a-jwt'],
        ['FILE', 'wrong-signature'],
      ]);
      const change = once(service.license, 'change');
      await writeFile(path, license({ licenseId: 'RENEWED' }));
      expect(await change).toMatchObject([{ valid: true, licenseId: 'RENEWED' }]);
    });
  });
});
