import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server } from 'node:net';

import { expect, test } from '@jest/globals';
import { freePort, holdStatement, withDatabase } from '@pesit-node/service/testing';

import { bytes, until, useNode } from './support/node.js';

withDatabase((harness) => {
  const node = useNode(harness, { listenerRetryMs: 20 });

  const autoStart = (): Promise<unknown> => node().call('put', '/api/v1/servers/NODE1', { autoStart: true });

  /** Another process has the port of NODE1. */
  const takePort = async (): Promise<Server> => {
    const foreign = createServer().listen(node().port, '127.0.0.1');
    await once(foreign, 'listening');
    return foreign;
  };

  test.each([
    ['recovery', /insert into instances/],
    ['listeners', /from "listeners" order by/],
  ])(
    'a start that waits for %s is not ready and says so; when it is ready, the first partner is served',
    async (step, statement) => {
      await autoStart();
      await node().stop();
      const { held, release } = holdStatement(node().database, statement);
      const restarted = node().restart();
      await held;
      const { code, components } = await node().readiness();
      expect([code, components['startup']]).toEqual([503, { status: 'DOWN', details: { waitsFor: step } }]);
      release();
      await until(async () => (await node().readiness()).code === 200 || undefined);
      await node().send(await node().connect(), 'IN', bytes(10));
      expect((await node().readiness()).components['startup']).toEqual({ status: 'UP' });
      await restarted;
    },
  );

  test('a node none of whose listeners has its port is not ready and says why, until one has', async () => {
    await autoStart();
    await node().stop();
    const foreign = await takePort();
    await node().restart();
    const { code, components } = await node().readiness();
    const reason = `NODE1: port ${node().port} is in use by another process: stop it, or choose another port`;
    expect([code, components['startup'], components['listeners']]).toEqual([
      503,
      { status: 'UP' },
      {
        status: 'DOWN',
        details: {
          reason: 'no listener that should run has its port',
          running: 0,
          failed: [expect.stringContaining(reason)],
        },
      },
    ]);
    foreign.close();
    await until(async () => (await node().readiness()).code === 200 || undefined);
    await node().send(await node().connect(), 'IN', bytes(10));
  });

  test('a node of which one listener runs is ready; one whose listeners were stopped is, too', async () => {
    await autoStart();
    await node().call('post', '/api/v1/servers', { serverId: 'NODE2', port: await freePort() });
    await node().stop();
    const foreign = await takePort();
    await node().restart();
    expect(await node().readiness()).toMatchObject({
      code: 200,
      components: { listeners: { status: 'UP', details: { running: 1, failed: [expect.stringMatching(/^NODE1: /)] } } },
    });
    for (const id of ['NODE1', 'NODE2']) await node().call('post', `/api/v1/servers/${id}/stop`);
    expect((await node().readiness()).code).toBe(200);
    foreign.close();
  });
});
