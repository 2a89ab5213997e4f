/** A volume that one pod cannot use: it takes nothing from the queue, gives back what it runs, and says so. */
import { afterAll, expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';
import { nodeFiles } from '@pesit-node/storage';
import type { FileOperations } from '@pesit-node/storage';

import { expectNoSecrets } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

withDatabase((harness) => {
  const world = useWorld(harness);

  test('its transfer continues on another pod, and once; an upload is a 503; it comes back by itself', async () => {
    let fails = false;
    const volumeFiles: FileOperations = {
      ...nodeFiles,
      open: (path, flags, mode) =>
        fails
          ? Promise.reject(Object.assign(new Error('stale'), { code: 'ESTALE' }))
          : nodeFiles.open(path, flags, mode),
    };
    const [begun, held] = [deferred(), deferred()];
    let creates = 0;
    const partner = await world.partner({
      before: {
        create: async () => {
          creates += 1;
          if (creates > 1) return;
          begun.resolve();
          await held.promise;
        },
      },
    });
    const one = await world.service({ node: 'pod-1', volumeFiles, volumeLookMs: 20, pollMs: 20 });
    await world.remote(one, partner.port);
    const sending = { server: 'bank', virtualFile: 'F', remoteFilename: 'f', fileContent: CONTENT };
    const { body: sent } = await one.api.post('/transfers/send', sending);
    await begun.promise;
    fails = true;
    await until(async () => (await one.health.readiness()).status === 'DOWN');
    expect((await one.health.readiness()).components['volumes']).toMatchObject({
      details: {
        kind: 'failed',
        reason: expect.stringMatching(/the network volume has lost it; mount the volume again/),
      },
    });
    expect((await one.api.get('/cluster/status')).body.members).toMatchObject([
      { ready: false, notReadyReason: expect.stringMatching(/^volumes: /) },
    ]);
    const refused = await one.api.post('/transfers/send', sending);
    expect([refused.status, refused.body.message]).toEqual([
      503,
      'The content cannot be stored: the storage of this node is not available for now: try again later',
    ]);
    held.resolve();
    await until(() => Promise.resolve(one.exchange.queue.running === 0));
    const waiting = (await one.api.get(`/transfers/${sent.id}`)).body;
    expect(waiting).toMatchObject({ status: 'PENDING' });
    const two = await world.service({ node: 'pod-2', data: one.data, pollMs: 20 });
    const record = async () => (await two.api.get(`/transfers/${sent.id}`)).body;
    await until(async () => (await record()).status === 'COMPLETED');
    expect(await record()).toMatchObject({ node: 'pod-2' });
    expect(partner.written.map(({ content }) => content.toString())).toEqual(['hello world']);
    fails = false;
    await until(async () => (await one.health.readiness()).status === 'UP');
    await two.stop();
    expect(await world.send(one)).toMatchObject({ status: 'COMPLETED', node: 'pod-1' });
  });
});
