import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server } from 'node:net';

import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { withDatabase, freePort } from '@pesit-node/service/testing';

import { faultyFields, useRest } from './support/rest.js';

const SERVERS = '/api/v1/servers';

/** A stopped listener on the pod that answers. */
const ON_POD = {
  ...{ name: 'rest', status: 'STOPPED', statusReason: null, nextAttemptAt: null },
  ...{ activeConnections: 0, refusedConnections: 0, since: null },
};

/** Whether somebody listens. */
const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

withDatabase((harness) => {
  const rest = useRest(harness);

  test('a listener is created with defaults, and stopped with ?start=false', async () => {
    const created = await rest.post(`${SERVERS}?start=false`, { serverId: 'NODE1' });
    expect([created.status, created.headers['location']]).toEqual([201, `${SERVERS}/NODE1`]);
    expect(created.body).toEqual({
      serverId: 'NODE1',
      status: 'STOPPED',
      statusReason: null,
      wanted: false,
      nextAttemptAt: null,
      port: 6502,
      tlsPort: null,
      sslEnabled: false,
      sslClientAuth: 'NONE',
      keystoreName: null,
      truststoreName: null,
      proxyProtocol: 'off',
      trustedProxies: [],
      maxBytesPerSecond: null,
      revocation: 'off',
      activeConnections: 0,
      refusedConnections: 0,
      totalTransfers: 0,
      uptime: 0,
      autoStart: true,
      maxConnections: 100,
      readTimeout: 60000,
      receiveDirectory: null,
      sendDirectory: null,
      strictServerId: false,
      tcpipHeader: 'auto',
      maxEntitySize: null,
      syncInterval: null,
      syncWindow: null,
      pods: [ON_POD],
    });
    expect((await rest.get(SERVERS)).body).toEqual([created.body]);
    expect((await rest.get(`${SERVERS}/NODE1`)).body).toEqual(created.body);
    expect((await rest.get('/api/servers/NODE1')).body).toEqual(created.body);
    expect((await rest.get('/api/servers')).body).toEqual([created.body]);
    expect((await rest.post(SERVERS, { serverId: 'NODE1' })).status).toBe(409);
  });

  test.each([
    [true, 'length-prefixed'],
    [false, 'raw'],
    ['raw', 'raw'],
    ['auto', 'auto'],
  ])('tcpipHeader %j is %s', async (given, shown) => {
    const { body } = await rest.post(SERVERS, { serverId: 'S', tcpipHeader: given });
    expect(body.tcpipHeader).toBe(shown);
  });

  describe('start and stop', () => {
    test('take and give back the port, say so, and may be repeated', async () => {
      const port = await freePort();
      await rest.post(SERVERS, { serverId: 'S', port, autoStart: false });
      const started = await rest.post(`${SERVERS}/S/start`);
      expect([started.status, started.body]).toEqual([
        200,
        {
          serverId: 'S',
          status: 'RUNNING',
          statusReason: null,
          wanted: true,
          nextAttemptAt: null,
          port,
          tlsPort: null,
          maxBytesPerSecond: null,
          activeConnections: 0,
          refusedConnections: 0,
          totalTransfers: 0,
          uptime: 0,
          pods: [{ ...ON_POD, status: 'RUNNING', since: expect.any(String) }],
          message: `Listener S started on port ${port}`,
        },
      ]);
      expect(await answers(port)).toBe(true);
      expect((await rest.post('/api/servers/S/start')).body.message).toBe(
        `Listener S is running already on port ${port}`,
      );
      expect((await rest.get(`${SERVERS}/S/status`)).body).toMatchObject({ status: 'RUNNING', port });
      const stopped = await rest.post(`${SERVERS}/S/stop`);
      expect(stopped.body).toMatchObject({ serverId: 'S', status: 'STOPPED', message: 'Listener S stopped' });
      expect(await answers(port)).toBe(false);
      expect((await rest.post(`${SERVERS}/S/stop`)).body.message).toBe('Listener S is stopped already');
      expect((await rest.post(`${SERVERS}/S/start`)).body.status).toBe('RUNNING');
    });

    test('a port that another process has: 409, FAILED with the reason, until it is free', async () => {
      const foreign = createServer().listen(0, '0.0.0.0');
      await once(foreign, 'listening');
      const { port } = foreign.address() as { port: number };
      await rest.post(SERVERS, { serverId: 'S', port });
      const reason = `port ${port} is in use by another process: stop it, or choose another port`;
      const refused = await rest.post(`${SERVERS}/S/start`);
      expect([refused.status, refused.body.error, refused.body.message]).toEqual([
        409,
        'CONFLICT',
        `Listener S: ${reason}. It is tried again by itself until it is stopped`,
      ]);
      const { body } = await rest.get(`${SERVERS}/S/status`);
      expect(body).toMatchObject({ status: 'FAILED', statusReason: reason, nextAttemptAt: expect.any(String) });
      expect(rest.listenersHere.health()).toEqual({
        status: 'DOWN',
        details: {
          reason: 'no listener that should run has its port',
          running: 0,
          failed: [`S: ${reason}; next attempt at ${body.nextAttemptAt}`],
        },
      });
      foreign.close();
      await once(foreign, 'close');
      expect((await rest.post(`${SERVERS}/S/start`)).body).toMatchObject({ status: 'RUNNING', statusReason: null });
    });

    test('a port that another listener has is named', async () => {
      const port = await freePort();
      await rest.post(SERVERS, { serverId: 'A', port });
      await rest.post(SERVERS, { serverId: 'B', port });
      await rest.post(`${SERVERS}/A/start`);
      const { status, body } = await rest.post(`${SERVERS}/B/start`);
      expect([status, body.message]).toEqual([
        409,
        `Listener B: port ${port} is in use by the listener A: stop it, or choose another port. It is tried again by itself until it is stopped`,
      ]);
      expect(rest.listenersHere.health()).toMatchObject({ status: 'UP', details: { running: 1 } });
      expect((await rest.post(`${SERVERS}/B/stop`)).body).toMatchObject({ status: 'STOPPED', statusReason: null });
    });

    test.each([
      ['', {}, 'RUNNING'],
      ['?start=true', {}, 'RUNNING'],
      ['?start=false', {}, 'STOPPED'],
      ['', { autoStart: false }, 'STOPPED'],
      ['?start=true', { autoStart: false }, 'STOPPED'],
    ])('created with %j and %j it is %s, and stays so', async (query, fields, status) => {
      const port = await freePort();
      const created = await rest.post(`${SERVERS}${query}`, { serverId: 'S', port, ...fields });
      expect([created.status, created.body.status]).toEqual([201, status]);
      await rest.listeners.look();
      expect(await answers(port)).toBe(status === 'RUNNING');
    });

    test('a listener that was stopped stays stopped, and one that was started runs, whatever its autoStart', async () => {
      const [one, two] = [await freePort(), await freePort()];
      await rest.post(SERVERS, { serverId: 'A', port: one });
      await rest.post(`${SERVERS}/A/stop`);
      await rest.post(SERVERS, { serverId: 'B', port: two, autoStart: false });
      await rest.post(`${SERVERS}/B/start`);
      await rest.listeners.look();
      expect([await answers(one), await answers(two)]).toEqual([false, true]);
    });

    test('restart takes the port again; of a stopped one it is 409', async () => {
      const port = await freePort();
      await rest.post(SERVERS, { serverId: 'S', port });
      rest.pass(5000);
      const restarted = await rest.post(`${SERVERS}/S/restart`);
      expect([restarted.status, restarted.body]).toEqual([
        200,
        expect.objectContaining({ status: 'RUNNING', uptime: 0, message: `Listener S restarted on port ${port}` }),
      ]);
      expect(await answers(port)).toBe(true);
      await rest.post(`${SERVERS}/S/stop`);
      const refused = await rest.post(`${SERVERS}/S/restart`);
      expect([refused.status, refused.body.message]).toEqual([409, 'Listener S is stopped: start it instead']);
    });

    test('a listener whose port another one gives up takes it at the next look at those that failed', async () => {
      const port = await freePort();
      await rest.post(SERVERS, { serverId: 'A', port });
      expect((await rest.post(SERVERS, { serverId: 'B', port })).body).toMatchObject({
        status: 'FAILED',
        statusReason: `port ${port} is in use by the listener A: stop it, or choose another port`,
      });
      await rest.delete(`${SERVERS}/A?force=true`);
      await rest.listenersHere.retryFailed();
      expect((await rest.get(`${SERVERS}/B/status`)).body).toMatchObject({ status: 'RUNNING' });
    });

    test('many at once end in one state', async () => {
      await rest.post(SERVERS, { serverId: 'S', port: await freePort() });
      await Promise.all(
        Array.from({ length: 10 }, (_, i) => rest.post(`${SERVERS}/S/${i % 2 === 0 ? 'start' : 'stop'}`)),
      );
      expect((await rest.post(`${SERVERS}/S/start`)).body.status).toBe('RUNNING');
    });

    test('autoStart listeners start with the service, one that fails does not keep the others', async () => {
      const [one, two] = [await freePort(), await freePort()];
      await rest.post(SERVERS, { serverId: 'A', port: one });
      await rest.post(SERVERS, { serverId: 'B', port: one });
      await rest.post(SERVERS, { serverId: 'C', port: two });
      await rest.post(SERVERS, { serverId: 'D', port: two, autoStart: false });
      await rest.listeners.look();
      const statuses = (await rest.get(SERVERS)).body.map(({ status }: { status: string }) => status);
      expect(statuses.slice(0, 2).sort()).toEqual(['FAILED', 'RUNNING']);
      expect(statuses.slice(2)).toEqual(['RUNNING', 'STOPPED']);
    });
  });

  describe('a listener whose port was taken', () => {
    let foreign: Server;
    let port: number;

    beforeEach(async () => {
      foreign = createServer().listen(0, '0.0.0.0');
      await once(foreign, 'listening');
      ({ port } = foreign.address() as { port: number });
      await rest.post(SERVERS, { serverId: 'S', port });
      await rest.listeners.look();
    });
    afterEach(() => {
      foreign.close();
    });

    const status = async () => (await rest.get(`${SERVERS}/S/status`)).body as Record<string, unknown>;
    const free = async (): Promise<void> => {
      foreign.close();
      await once(foreign, 'close');
    };

    test('is tried again until it has it', async () => {
      expect(await status()).toMatchObject({ status: 'FAILED', nextAttemptAt: expect.any(String) });
      await free();
      await rest.listenersHere.retryFailed();
      expect(await status()).toMatchObject({ status: 'FAILED' });
      rest.pass(1000);
      await rest.listenersHere.retryFailed();
      expect(await status()).toMatchObject({ status: 'RUNNING', statusReason: null, nextAttemptAt: null });
      expect(await answers(port)).toBe(true);
      expect(rest.listenersHere.health()).toEqual({ status: 'UP', details: { running: 1 } });
    });

    test('is tried after 1, 2, 4 … at most 60 seconds, and says the same reason once', async () => {
      const waits: number[] = [];
      for (let attempt = 0; attempt < 9; attempt++) {
        let seconds = 0;
        const { nextAttemptAt } = await status();
        while ((await status())['nextAttemptAt'] === nextAttemptAt) {
          rest.pass(1000);
          seconds += 1;
          await rest.listenersHere.retryFailed();
        }
        waits.push(seconds);
      }
      expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
      const lines = rest.log.entries().filter(({ listener, level }) => listener === 'S' && level === 'error');
      expect(lines.filter(({ port: said }) => said === port)).toHaveLength(1);
    });

    test('is not tried any more when it was stopped, and nothing is missing then', async () => {
      await rest.post(`${SERVERS}/S/stop`);
      await free();
      rest.pass(3_600_000);
      await rest.listenersHere.retryFailed();
      expect(await status()).toMatchObject({ status: 'STOPPED', statusReason: null, nextAttemptAt: null });
      expect(rest.listenersHere.health()).toEqual({ status: 'UP', details: { running: 0 } });
    });

    test('is tried no more when it was deleted here, or on another pod', async () => {
      await rest.database.knex('listeners').delete();
      await free();
      rest.pass(1000);
      await rest.listenersHere.retryFailed();
      expect(rest.listenersHere.health()).toEqual({ status: 'UP', details: { running: 0 } });
      expect(await answers(port)).toBe(false);
    });

    test('starts at once when its port is changed to one that is free', async () => {
      const other = await freePort();
      const { body } = await rest.put(`${SERVERS}/S`, { port: other });
      expect(body).toMatchObject({ status: 'RUNNING', port: other, statusReason: null });
      expect(await answers(other)).toBe(true);
    });
  });

  describe('a running listener', () => {
    test('moves to another port', async () => {
      const [from, to] = [await freePort(), await freePort()];
      await rest.post(SERVERS, { serverId: 'S', port: from });
      await rest.post(`${SERVERS}/S/start`);
      const { body } = await rest.put(`${SERVERS}/S`, { port: to, maxConnections: 7 });
      expect(body).toMatchObject({ port: to, maxConnections: 7, status: 'RUNNING' });
      expect([await answers(from), await answers(to)]).toEqual([false, true]);
    });

    test('stays as it is when the other port cannot be had', async () => {
      const port = await freePort();
      const foreign = createServer().listen(0, '0.0.0.0');
      await once(foreign, 'listening');
      const taken = (foreign.address() as { port: number }).port;
      await rest.post(SERVERS, { serverId: 'S', port });
      await rest.post(`${SERVERS}/S/start`);
      const refused = await rest.put(`${SERVERS}/S`, { port: taken, maxConnections: 7 });
      expect(refused.status).toBe(409);
      expect((await rest.get(`${SERVERS}/S`)).body).toMatchObject({ port, maxConnections: 100, status: 'RUNNING' });
      expect(await answers(port)).toBe(true);
      foreign.close();
    });

    test('is stopped when it is deleted by force, and not deleted otherwise', async () => {
      const port = await freePort();
      await rest.post(SERVERS, { serverId: 'S', port });
      await rest.post(`${SERVERS}/S/start`);
      const refused = await rest.delete(`${SERVERS}/S`);
      expect([refused.status, refused.body.message]).toEqual([
        409,
        'Listener "S" is in use: it is to run: stop it. Let that end first, or ask with force=true: it is stopped on every pod, and files that are running come to their end, within `shutdown.drain-timeout`; lists that name it stay as they are.',
      ]);
      expect(await answers(port)).toBe(true);
      expect((await rest.delete(`${SERVERS}/S?force=true`)).status).toBe(204);
      expect(await answers(port)).toBe(false);
      expect((await rest.get(`${SERVERS}/S/status`)).status).toBe(404);
      expect((await rest.post(`${SERVERS}?start=false`, { serverId: 'S', port })).body.status).toBe('STOPPED');
    });
  });

  test('one that does not exist: 404 for every verb', async () => {
    const answers = [
      await rest.get(`${SERVERS}/X`),
      await rest.put(`${SERVERS}/X`, { port: 1 }),
      await rest.delete(`${SERVERS}/X`),
      await rest.post(`${SERVERS}/X/start`),
      await rest.post(`${SERVERS}/X/stop`),
      await rest.post(`${SERVERS}/X/restart`),
      await rest.get(`${SERVERS}/X/status`),
    ];
    expect(answers.map(({ status }) => status)).toEqual(Array(7).fill(404));
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['no identifier', { serverId: undefined }, 'serverId'],
    ['a long identifier', { serverId: 'x'.repeat(25) }, 'serverId'],
    ['a path as identifier', { serverId: 'a/b' }, 'serverId'],
    ['port 0', { port: 0 }, 'port'],
    ['port 65536', { port: 65536 }, 'port'],
    ['a port in text', { port: '6502' }, 'port'],
    ['no connections', { maxConnections: 0 }, 'maxConnections'],
    ['a timeout below a second', { readTimeout: 999 }, 'readTimeout'],
    ['an unknown header', { tcpipHeader: 'nsdu' }, 'tcpipHeader'],
    ['a small entity', { maxEntitySize: 255 }, 'maxEntitySize'],
    ['a wide window', { syncWindow: 256 }, 'syncWindow'],
    ['a keystore with NUL', { keystoreName: 'a\0b' }, 'keystoreName'],
    ['a truststore that none can be called', { truststoreName: 'banks ' }, 'truststoreName'],
    ['a directory outside', { receiveDirectory: '/etc' }, 'receiveDirectory'],
    ['a status', { status: 'RUNNING' }, 'status'],
    ['a figure that is read-only', { refusedConnections: 1 }, 'refusedConnections'],
    ['an unknown field', { host: 'x' }, 'host'],
  ])('bad input is named: %s', async (_, change, field) => {
    const response = await rest.post(SERVERS, { serverId: 'S', ...change });
    expect(response.status).toBe(400);
    expect(faultyFields(response)).toContain(field);
  });

  test.each([
    [false, 'NONE'],
    ['false', 'NONE'],
    ['WANT', 'WANT'],
    [true, 'NEED'],
    ['true', 'NEED'],
  ])('sslClientAuth %j is %s', async (given, shown) => {
    const { status, body } = await rest.post(SERVERS, { serverId: 'S', sslClientAuth: given, autoStart: false });
    expect([status, body.sslClientAuth]).toEqual([201, shown]);
  });

  test.each([
    [{ port: null }, 'port'],
    [{ port: 5001, sslEnabled: true }, 'tlsPort'],
    [{ sslClientAuth: 'required' }, 'sslClientAuth'],
    [{ proxyProtocol: 'on' }, 'proxyProtocol'],
    [{ proxyProtocol: 'required' }, 'trustedProxies'],
    [{ trustedProxies: ['10.0.0.0/8', '10.0.0.0/33'] }, 'trustedProxies[1]'],
  ])('ports that make no listener: %j', async (change, field) => {
    const created = await rest.post(SERVERS, { serverId: 'S', ...change });
    expect([created.status, faultyFields(created)]).toEqual([400, [field]]);
    await rest.post(SERVERS, { serverId: 'S', autoStart: false });
    const changed = await rest.put(`${SERVERS}/S`, change);
    expect([changed.status, faultyFields(changed)]).toEqual([400, [field]]);
  });
});
