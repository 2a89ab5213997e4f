import { EventEmitter } from 'node:events';

import { afterAll, describe, expect, test } from '@jest/globals';
import { PesitError } from '@pesit-node/protocol';
import { withDatabase } from '@pesit-node/service/testing';

import { refusal } from './support/partner.js';
import { expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

interface Session {
  readonly session: string;
  readonly outcome: string | null;
  readonly transfers: readonly string[];
  readonly [field: string]: unknown;
}

withDatabase((harness) => {
  const world = useWorld(harness);

  const traced = async (service: Service, id: number): Promise<void> => {
    const { status, body } = await service.api.put(`/servers/${id}/trace`, { minutes: 10 });
    expect([status, body]).toEqual([200, { active: true, until: expect.any(String) }]);
  };
  const sessions = async (service: Service, id: number): Promise<readonly Session[]> =>
    (await service.api.get(`/servers/${id}/trace`)).body.content;
  /** Without time and session. */
  const lines = async (service: Service, id: number, session: string): Promise<readonly string[]> =>
    (await service.api.get(`/servers/${id}/trace/${session}`)).text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => line.replace(/^\S+Z [0-9a-f-]{36} /, ''));
  const story = async (service: Service, id: number, session: string): Promise<readonly string[]> =>
    (await lines(service, id, session)).map((line) =>
      line.replace(/^\S+ /, '').replace(/^(-->|<--) (.*?) (to|from) \d.*/, '$1 $2'),
    );

  test('a transfer with a traced server is there, line by line, with its id', async () => {
    const partner = await world.partner();
    const service = await world.service({ settings: { idleTimeout: 60_000 } });
    const id = await world.remote(service, partner.port);
    const before = await world.send(service);
    expect((await service.api.get(`/servers/${id}/trace`)).body).toMatchObject({ active: false, content: [] });
    await traced(service, id);
    const record = await world.send(service);
    expect([before.status, record.status]).toEqual(['COMPLETED', 'COMPLETED']);
    // The idle session from before is not used: it has no CONNECT to show.
    const [session] = await sessions(service, id);
    expect(session).toMatchObject({
      ...{ address: `127.0.0.1:${partner.port}`, requester: 'NODE1', dialect: 'length-prefixed' },
      ...{ outcome: null, endTime: null, transfers: [record.id], node: 'test-node' },
    });
    const said = await lines(service, id, session!.session);
    expect(await story(service, id, session!.session)).toEqual([
      `--- connecting to 127.0.0.1:${partner.port}`,
      ...['--> CONNECT', '<-- ACONNECT'],
      ...['CREATE', 'ORF', 'WRITE'].flatMap((name) => [`--> ${name}`, `<-- ACK(${name})`]),
      '--> data: 1 FPDU, 11 bytes',
      '--> DTF.END',
      ...['TRANS.END', 'CRF', 'DESELECT'].flatMap((name) => [`--> ${name}`, `<-- ACK(${name})`]),
    ]);
    expect(said[1]).toContain('PI 5 (access control) ********');
    expect(said.slice(0, 3).every((line) => line.startsWith('- '))).toBe(true);
    expect(said.slice(3).every((line) => line.startsWith(`${record.id} `))).toBe(true);

    const next = await world.send(service);
    expect((await sessions(service, id))[0]).toMatchObject({ transfers: [record.id, next.id] });
    expect((await service.api.delete(`/servers/${id}/trace`)).status).toBe(204);
    await world.send(service);
    expect(await sessions(service, id)).toHaveLength(1);
    expect((await service.api.get(`/servers/${id}`)).body).toMatchObject({ traceUntil: null });
  });

  test('is answered without more listeners than an emitter may have', async () => {
    const partner = await world.partner();
    const service = await world.service();
    const id = await world.remote(service, partner.port);
    await traced(service, id);
    await world.send(service);
    const [session] = await sessions(service, id);
    let most = 0;
    service.http.server.on('request', (_req, res) => {
      res.on('newListener', (event) => {
        if (event === 'close') most = Math.max(most, res.listenerCount('close') + 1);
      });
    });
    expect(await lines(service, id, session!.session)).not.toEqual([]);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(EventEmitter.defaultMaxListeners);
  });

  test('a session whose recording has ended does not serve a transfer that shall be recorded', async () => {
    const partner = await world.partner();
    const service = await world.service({ settings: { idleTimeout: 60_000 } });
    const id = await world.remote(service, partner.port);
    await traced(service, id);
    await world.send(service);
    const [first] = await sessions(service, id);
    expect((await service.api.delete(`/servers/${id}/trace/${first!.session}`)).status).toBe(204);
    await world.send(service);
    expect(await sessions(service, id)).toEqual([]);
    const record = await world.send(service);
    expect(await sessions(service, id)).toMatchObject([{ transfers: [record.id] }]);
  });

  test('a test of the connection is recorded', async () => {
    const partner = await world.partner();
    const service = await world.service();
    const id = await world.remote(service, partner.port);
    await traced(service, id);
    expect((await service.api.post(`/servers/${id}/test`)).body).toMatchObject({ success: true });
    const [session] = await sessions(service, id);
    expect(session).toMatchObject({ outcome: 'released', transfers: [] });
    expect(await story(service, id, session!.session)).toEqual([
      `--- connecting to 127.0.0.1:${partner.port}`,
      ...['--> CONNECT', '<-- ACONNECT', '--> RELEASE', '<-- RELCONF', '--- released'],
    ]);
  });

  describe('what does not come to a session', () => {
    test('a partner that is not there', async () => {
      const partner = await world.partner();
      await partner.close();
      const service = await world.service();
      const id = await world.remote(service, partner.port);
      await traced(service, id);
      await service.api.post(`/servers/${id}/test`);
      const [session] = await sessions(service, id);
      expect(await story(service, id, session!.session)).toEqual([
        `--- connecting to 127.0.0.1:${partner.port}`,
        expect.stringMatching(/^--- no session: 3-310 .*: no connection to 127\.0\.0\.1:\d+: nobody listens there/),
      ]);
    });

    test('a pre-connection that is refused', async () => {
      const partner = await world.partner({
        preconnect: () => Promise.reject(new PesitError('no', { fault: 'local', diagnostic: '3-304' })),
      });
      const service = await world.service();
      const preconnectPassword = 'pr3C0N#9';
      const id = await world.remote(service, partner.port, { preconnectId: 'PREID', preconnectPassword });
      await traced(service, id);
      await service.api.post(`/servers/${id}/test`);
      const [session] = await sessions(service, id);
      const said = await lines(service, id, session!.session);
      expect(said).toEqual([
        `- --- connecting to 127.0.0.1:${partner.port}`,
        '- --> pre-connection PESIT: identifier "PREID", password ********',
        expect.stringMatching(/^- --- no session: 3-304 .*NAK0/),
      ]);
      expect(JSON.stringify(said)).not.toContain(preconnectPassword);
    });

    test('a transfer that the partner refuses', async () => {
      const partner = await world.partner({
        before: { create: () => Promise.reject(refusal('2-226', 'not on Sundays')) },
      });
      const service = await world.service();
      const id = await world.remote(service, partner.port);
      await traced(service, id);
      const record = await world.send(service);
      expect(record).toMatchObject({ status: 'FAILED', diagnostic: '2-226' });
      const [session] = await sessions(service, id);
      const said = await lines(service, id, session!.session);
      expect(said.filter((line) => line.includes('2-226'))).toEqual([
        expect.stringMatching(new RegExp(`^${record.id} <-- ACK\\(CREATE\\) .*"not on Sundays"`)),
        expect.stringMatching(new RegExp(`^${record.id} --- transfer failed: 2-226 .*not on Sundays`)),
      ]);
    });
  });

  test('a trace is there after a restart; it goes with its server', async () => {
    const partner = await world.partner();
    const first = await world.service();
    const id = await world.remote(first, partner.port);
    await traced(first, id);
    await world.send(first);
    await first.stop();
    const second = await world.service();
    await until(async () => (await sessions(second, id))[0]?.outcome === 'released');
    const { text, headers } = await second.api.get(`/servers/${id}/trace/content`);
    expect(headers['content-disposition']).toBe(`attachment; filename=trace-server-${id}.txt`);
    expect(text).toContain('--> RELEASE');
    expect((await second.api.put(`/servers/${id}/trace`, { minutes: 2000 })).status).toBe(400);
    await second.api.delete(`/servers/${id}`);
    expect((await second.api.get(`/servers/${id}/trace`)).body).toMatchObject({ error: 'SERVER_NOT_FOUND' });
    expect(await world.database().knex('session_traces')).toEqual([]);
  });
});
