import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, expect, test } from '@jest/globals';
import { withDatabase, readOpenMetrics } from '@pesit-node/service/testing';

import { refusal } from './support/partner.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const AT_ONCE = { attempts: 3, initialDelay: 0, maxDelay: 0, multiplier: 1, jitter: 0 };
const BIG = Buffer.alloc(100_000, 'x');

withDatabase((harness) => {
  const world = useWorld(harness);

  const values = async ({ http }: Service, ...keys: readonly string[]) => {
    const response = await fetch(`http://127.0.0.1:${http.port}/metrics`, {
      headers: { Authorization: `Basic ${Buffer.from('admin:rest-secret-1').toString('base64')}` },
    });
    const samples = readOpenMetrics(await response.text());
    return keys.map((key) => samples.get(key));
  };
  const transfers = (direction: string, status: string) =>
    `service_transfers_total{direction="${direction}",kind="outbound",status="${status}"}`;
  const moved = (direction: string) => `service_bytes_transferred_total{direction="${direction}",kind="outbound"}`;

  test('a file sent, one received, a message; a session that is kept', async () => {
    const partner = await world.partner({ files: { X: BIG }, syncPoints: { intervalKb: 4, window: 2 } });
    const service = await world.service();
    await world.remote(service, partner.port);
    expect((await world.send(service)).status).toBe('COMPLETED');
    expect((await world.receive(service)).status).toBe('COMPLETED');
    expect(
      await values(
        service,
        transfers('SEND', 'COMPLETED'),
        transfers('RECEIVE', 'COMPLETED'),
        moved('SEND'),
        moved('RECEIVE'),
        'pesit_peer_transfers_total{direction="SEND",peer="bank",status="COMPLETED"}',
        'pesit_transfer_duration_seconds_count{direction="RECEIVE"}',
        'pesit_sessions_total',
        'pesit_sessions_open',
        'pesit_remote_servers{status="CONNECTED"}',
        'pesit_remote_servers{status="REFUSED"}',
        'pesit_database_up',
        'pesit_license_days_remaining',
        'pesit_queue_wait_seconds_count',
      ),
    ).toEqual([1, 1, 11, 100_000, 1, 1, 1, 1, 1, 0, 1, 30, 2]);
    const [flushes, points] = await values(
      service,
      'pesit_flush_duration_seconds_count',
      'pesit_acknowledgement_seconds_count{of="SYN"}',
    );
    expect(flushes).toBeGreaterThanOrEqual(1);
    expect(points).toBeGreaterThanOrEqual(1);
  });

  test('cut in the data, and tried again from the last point', async () => {
    const partner = await world.partner({ syncPoints: { intervalKb: 4, window: 2 }, restarts: true });
    const proxy = await world.proxy(partner.port, [{ from: 'client', afterBytes: 50_000 }]);
    const service = await world.service({ settings: { retry: AT_ONCE } });
    await world.remote(service, proxy.port);
    await writeFile(join(service.data, 'send/big'), BIG);
    const { body } = await service.api.post('/transfers/send?wait=90', {
      ...{ server: 'bank', virtualFile: 'V', filename: 'big' },
    });
    expect(body).toMatchObject({ status: 'COMPLETED', attempts: 2 });
    expect(
      await values(
        service,
        transfers('SEND', 'COMPLETED'),
        transfers('SEND', 'FAILED'),
        'pesit_transfers_started_total{direction="SEND"}',
        'pesit_transfer_retries_total{reason="failed"}',
        'pesit_transfer_restarts_total{direction="SEND"}',
        'pesit_transfer_errors_total{diagnostic="3-310",direction="SEND"}',
      ),
    ).toEqual([1, 0, 2, 1, 1, 1]);
    const [bytes, points] = await values(service, moved('SEND'), 'pesit_sync_points_total{direction="SEND"}');
    // Once the file, and again at most what was on its way at the cut.
    expect(bytes).toBeGreaterThanOrEqual(100_000);
    expect(bytes).toBeLessThan(100_000 + 50_000);
    expect(points).toBeGreaterThanOrEqual(100_000 / 4096 - 1);
  });

  test('a refused session is tried again until there are no more attempts', async () => {
    const partner = await world.partner({ before: { connect: () => Promise.reject(refusal('3-303', 'come later')) } });
    const service = await world.service({
      settings: { retry: { ...AT_ONCE, initialDelay: 3_600_000, maxDelay: 3_600_000 } },
    });
    await world.remote(service, partner.port);
    const request = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };
    const { id } = (await service.api.post('/transfers/send', request)).body;
    const state = async () => (await service.transfers.find(id))?.next_attempt_at ?? null;
    while ((await state()) === null) await new Promise(setImmediate);
    expect(
      await values(
        service,
        'pesit_sessions_refused_total{diagnostic="3-303"}',
        'pesit_transfer_retries_total{reason="postponed"}',
        transfers('SEND', 'FAILED'),
        'pesit_queue_depth{state="delayed"}',
        'pesit_queue_depth{state="due"}',
        'pesit_queue_oldest_seconds',
      ),
    ).toEqual([1, 1, 0, 1, 0, 0]);
    await service.api.post(`/transfers/${id}/cancel`);
    expect(await values(service, transfers('SEND', 'CANCELLED'), 'pesit_queue_depth{state="delayed"}')).toEqual([1, 0]);
  });

  test('what runs, and what waits for a slot', async () => {
    const held = deferred();
    const arrived = deferred();
    const partner = await world.partner({
      before: {
        create: () => {
          arrived.resolve();
          return held.promise;
        },
      },
    });
    const service = await world.service({ settings: { corePoolSize: 1 } });
    await world.remote(service, partner.port);
    const request = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };
    await service.api.post('/transfers/send', request);
    await arrived.promise;
    await service.api.post('/transfers/send', request);
    const [running, due, oldest] = await values(
      service,
      'pesit_transfers_running{direction="SEND"}',
      'pesit_queue_depth{state="due"}',
      'pesit_queue_oldest_seconds',
    );
    expect([running, due]).toEqual([1, 1]);
    expect(oldest).toBeGreaterThan(0);
    held.resolve();
  });

  test('what is kept for a disabled server waits for nothing that is late', async () => {
    const partner = await world.partner({ before: { connect: () => Promise.reject(refusal('3-303', 'come later')) } });
    const service = await world.service({
      settings: { retry: { ...AT_ONCE, initialDelay: 3_600_000, maxDelay: 3_600_000 } },
    });
    await world.remote(service, partner.port);
    const { id } = (
      await service.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', fileContent: CONTENT })
    ).body;
    await until(async () => ((await service.transfers.find(id))?.next_attempt_at ?? null) !== null);
    await service.api.put('/servers/1', { enabled: false });
    const gauges = [
      'pesit_queue_depth{state="due"}',
      'pesit_queue_depth{state="delayed"}',
      'pesit_queue_depth{state="held"}',
      'pesit_queue_oldest_seconds',
    ];
    expect(await values(service, ...gauges)).toEqual([0, 0, 1, 0]);
    await world
      .database()
      .knex('transfers')
      .update({ next_attempt_at: new Date(Date.now() - 3_600_000) });
    expect(await values(service, ...gauges)).toEqual([0, 0, 1, 0]);
    const wait = async () => values(service, ...['count', 'sum'].map((part) => `pesit_queue_wait_seconds_${part}`));
    const [before = 0] = await wait();
    await service.api.put('/servers/1', { enabled: true });
    await until(async () => (await wait())[0] === before + 1);
    // Since its attempt was due.
    expect((await wait())[1]).toBeGreaterThanOrEqual(3600);
  });

  test('what a process left behind when it was killed, and no further attempt follows', async () => {
    const held = deferred();
    const arrived = deferred();
    const partner = await world.partner({ before: { create: () => (arrived.resolve(), held.promise) } });
    const killed = await world.service();
    await world.remote(killed, partner.port);
    await killed.api.post('/transfers/send', { server: 'bank', virtualFile: 'V', fileContent: CONTENT });
    await arrived.promise;
    await world.database().knex('transfers').update({ node: 'pod-1' });
    const next = await world.service({ node: 'pod-1', data: killed.data });
    expect(
      await values(
        next,
        transfers('SEND', 'FAILED'),
        'pesit_peer_transfers_total{direction="SEND",peer="bank",status="FAILED"}',
        'pesit_transfer_errors_total{diagnostic="2-223",direction="SEND"}',
      ),
    ).toEqual([1, 1, 1]);
    held.resolve();
  });
});
