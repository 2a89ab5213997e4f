/** The circuit breaker of a remote server: what opens it, who tries, and what the transfers that wait lose by it. */
import { randomUUID } from 'node:crypto';

import { afterAll, describe, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { circuitStore } from '../src/remote-servers/circuit-store.js';
import { transferStore } from '../src/transfers/store.js';
import { refusal } from './support/partner.js';
import { AUTHORIZATION, expectNoSecrets } from './support/service.js';
import type { Service } from './support/service.js';
import { CONTENT, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const HOUR = 3_600_000;
/** Nobody listens there. */
const NOBODY = 1;

withDatabase((harness) => {
  const world = useWorld(harness);

  const circuitOf = async (service: Service, id: number) => (await service.api.get(`/servers/${id}`)).body.circuit;
  const post = async (service: Service, server: string) => {
    const request = { server, virtualFile: 'V', fileContent: CONTENT };
    return (await service.api.post('/transfers/send', request)).body;
  };
  const find = async (service: Service, { id }: { readonly id: string }) =>
    (await service.api.get(`/transfers/${id}`)).body;

  describe('in the database', () => {
    const limits = { leaseSeconds: 30, maxPerServer: 5, slots: 8, freely: 8, minQueued: 1, countTo: 100 };
    const policy = { failures: 3, initialDelay: 1000, maxDelay: 3000 };
    const row = async (id = 1) => world.database().knex('remote_servers').where({ id }).first();
    const seconds = async (): Promise<number> => {
      const { knex } = world.database();
      const { rows } = await knex.raw<{ rows: { left: number }[] }>(
        'select extract(epoch from circuit_until - now())::float8 as left from remote_servers where id = 1',
      );
      return rows[0]?.left ?? 0;
    };
    const isTime = () =>
      world.database().knex.raw(`update remote_servers set circuit_until = now() where circuit_until is not null`);

    test('open, one probe at a time over all pods, later each time it fails, closed by one that goes well', async () => {
      const { knex } = world.database();
      const server = { host: 'h', port: 1, server_id: 'S', client_id: 'C', enabled: true, dialect: 'raw' };
      await knex('remote_servers').insert([
        { name: 'dead', ...server },
        { name: 'well', ...server },
      ]);
      const store = transferStore(knex);
      const circuits = circuitStore(knex);
      const none = { partnerId: undefined, remoteFilename: undefined, sourcePath: undefined, sourceVersion: undefined };
      for (let n = 0; n < 6; n++) {
        for (const name of ['dead', 'well']) {
          const more = { id: randomUUID(), type: 'FILE', direction: 'SEND', filename: 'f', settings: {} } as const;
          await store.insert({ ...none, ...more, server: name, virtualFile: 'V', size: 1, hasContent: false }, 100);
        }
      }
      const taken = async (...nodes: readonly string[]) => {
        const all = await Promise.all(nodes.map((node) => store.take({ ...limits, node })));
        return all.flatMap(({ jobs }) => jobs);
      };
      const fail = () => circuits.failed(1, 'nobody there', policy);
      expect([await fail(), await fail()]).toEqual([
        { name: 'dead', changed: false },
        { name: 'dead', changed: false },
      ]);
      expect(await fail()).toEqual({ name: 'dead', changed: true });
      expect(await row()).toMatchObject({ circuit_failures: 3, circuit_reason: 'nobody there' });
      // It is not its time: the other server alone.
      const others = await taken('a', 'b');
      expect(others.every(({ server_name: name }) => name === 'well')).toBe(true);
      expect(others.length).toBeGreaterThan(0);
      await isTime();
      const [probe, ...more] = (await taken('a', 'b', 'c')).filter(({ server_name: name }) => name === 'dead');
      expect(more).toEqual([]);
      expect(probe?.server).toMatchObject({ circuit_failures: 3 });
      expect((await taken('a', 'b')).filter(({ server_name: name }) => name === 'dead')).toEqual([]);
      const end = { status: 'PENDING', counts: 'failed', delay: HOUR, restartable: false } as const;
      for (const longest of [2, 3, 3]) {
        expect(await fail()).toEqual({ name: 'dead', changed: false });
        const left = await seconds();
        expect(left).toBeLessThanOrEqual(longest);
        // A failure of the attempts under way when it opened makes the time no longer.
        await fail();
        expect(await seconds()).toBeLessThanOrEqual(left);
        await isTime();
      }
      await store.end(probe!, end);
      const [next] = (await taken('a', 'b')).filter(({ server_name: name }) => name === 'dead');
      expect(next?.id).not.toBe(probe?.id);
      // It came to nothing that says anything of the server.
      await store.end(next!, end);
      await circuits.probeOver(1);
      expect((await taken('a')).filter(({ server_name: name }) => name === 'dead')).toHaveLength(1);
      expect(await circuits.close(1)).toEqual({ name: 'dead', changed: true });
      expect(await circuits.close(1)).toBeUndefined();
      expect((await taken('a')).filter(({ server_name: name }) => name === 'dead')).toHaveLength(3);
      // None of those that waited has lost an attempt.
      const failures = await knex('transfers').where({ server_id: 1 }).orderBy('position').pluck('failures');
      expect(failures).toEqual([1, 1, 0, 0, 0, 0]);
    });
  });

  test('a server that cannot be reached: its transfers wait, and say so; one that can be is tried, and they go', async () => {
    const partner = await world.partner();
    const retry = { attempts: 100, initialDelay: 1, maxDelay: 1, multiplier: 1, jitter: 0 };
    const circuit = { failures: 4, initialDelay: HOUR, maxDelay: HOUR };
    const service = await world.service({ settings: { retry, circuit } });
    const id = await world.remote(service, NOBODY);
    const other = await world.remote(service, partner.port, { name: 'well' });
    const first = await post(service, 'bank');
    await until(async () => (await circuitOf(service, id)).state === 'OPEN');
    const waiting = [await post(service, 'bank'), await post(service, 'bank')];
    // Another one goes well meanwhile.
    await world.send(service, { server: 'well' });
    expect(await circuitOf(service, id)).toMatchObject({
      ...{ state: 'OPEN', since: expect.any(String), nextTry: expect.any(String) },
      reason: expect.stringContaining('nobody listens there'),
    });
    for (const one of waiting) expect(await find(service, one)).toMatchObject({ status: 'PENDING', attempts: 0 });
    expect(await circuitOf(service, other)).toMatchObject({ state: 'CLOSED', failures: 0, since: null, nextTry: null });
    const headers = { Authorization: AUTHORIZATION };
    const metrics = await fetch(`http://127.0.0.1:${service.http.port}/metrics`, { headers });
    expect(await metrics.text()).toMatch(/^pesit_remote_servers_circuit_open 1$/m);
    // It is somewhere else now.
    await service.api.put(`/servers/${id}`, { port: partner.port, password: 'pz#8kQ!v' });
    for (const one of [first, ...waiting]) {
      await until(async () => (await find(service, one)).status === 'COMPLETED');
    }
    expect(await circuitOf(service, id)).toMatchObject({ state: 'CLOSED', failures: 0 });
    const lines = service.log.lines.filter((line) => line.includes('circuit '));
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg.slice(0, 14))).toEqual([
      'circuit opened',
      'circuit closed',
    ]);
    await until(async () => {
      const { body } = await service.api.get('/audit?action=circuit%20opened');
      return body.content.length === 1;
    });
  });

  test('what waits behind an open circuit takes no place of others: the server has a queue of its own', async () => {
    const partner = await world.partner();
    const retry = { attempts: 100, initialDelay: HOUR, maxDelay: HOUR, multiplier: 1, jitter: 0 };
    const pool = { corePoolSize: 0, maxPoolSize: 0, queueCapacity: 3 };
    const service = await world.service({ settings: { retry, ...pool } });
    const id = await world.remote(service, NOBODY);
    await world.remote(service, partner.port, { name: 'well' });
    const wait = (server: string, fields: object = {}) =>
      service.api.post('/transfers/send', { server, virtualFile: 'V', fileContent: CONTENT, ...fields });
    // As the database has it: until the circuit opens all count together.
    for (const name of ['bank', 'well', 'bank']) expect((await wait(name)).status).toBe(202);
    expect((await wait('well')).status).toBe(503);
    const circuits = circuitStore(world.database().knex);
    await circuits.failed(id, 'nobody there', { failures: 1, initialDelay: HOUR, maxDelay: HOUR });
    expect((await wait('well')).status).toBe(202);
    expect((await wait('well', { ordered: true })).status).toBe(202);
    expect((await wait('bank', { ordered: true })).status).toBe(202);
    const full = await wait('bank');
    expect([full.status, full.headers['retry-after']]).toEqual([503, '5']);
    expect(full.body.message).toMatch(
      /^The queue of remote server "bank", whose circuit is open, is full: 3 transfers wait, 0 of them/,
    );
    const others = await wait('well');
    expect([others.status, others.body.message]).toEqual([
      503,
      expect.stringMatching(/^The queue is full: 3 transfers/),
    ]);
    // It is well again: all count together, and there are too many.
    await circuits.close(id);
    expect((await wait('bank')).body.message).toMatch(/^The queue is full: 6 transfers/);
  });

  test('an operator closes it; nothing that is a file’s own fault, or a wrong password, opens it', async () => {
    const partner = await world.partner({
      before: {
        create: () => Promise.reject(refusal('2-205', 'no such file')),
        connect: (parameters) =>
          parameters?.requester === 'STRANGER' ? Promise.reject(refusal('3-301', 'who?')) : undefined,
      },
    });
    const circuit = { failures: 1, initialDelay: HOUR, maxDelay: HOUR };
    const service = await world.service({ settings: { circuit } });
    const id = await world.remote(service, partner.port);
    expect(await world.send(service)).toMatchObject({ status: 'FAILED', diagnostic: '2-205' });
    const stranger = await world.remote(service, partner.port, { name: 'strange', clientId: 'STRANGER' });
    expect(await world.send(service, { server: 'strange' })).toMatchObject({ status: 'FAILED', diagnostic: '3-301' });
    for (const one of [id, stranger]) expect(await circuitOf(service, one)).toMatchObject({ state: 'CLOSED' });
    const dead = await world.remote(service, NOBODY, { name: 'dead' });
    expect((await service.api.post(`/servers/${dead}/test`)).body.success).toBe(false);
    await until(async () => (await circuitOf(service, dead)).state === 'OPEN');
    const closed = await service.api.post(`/servers/${dead}/close-circuit`);
    expect(closed.body.circuit).toEqual({ state: 'CLOSED', failures: 0, since: null, nextTry: null, reason: null });
    expect((await service.api.post('/servers/99/close-circuit')).status).toBe(404);
  });
});
