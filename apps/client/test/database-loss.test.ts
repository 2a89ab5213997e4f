import { afterAll, afterEach, expect, test } from '@jest/globals';
import { findDatabase, holdStatement, loseDatabase, withDatabase } from '@pesit-node/service/testing';

import { answerLost } from './support/faults.js';
import { expectNoSecrets } from './support/service.js';
import { CONTENT, deferred, until, useWorld } from './support/world.js';

afterAll(expectNoSecrets);

const SEND = { server: 'bank', virtualFile: 'V', fileContent: CONTENT };

withDatabase((harness) => {
  const world = useWorld(harness);
  afterEach(() => findDatabase(world.database()));

  /** A service whose partner holds the end of each transfer until told. */
  const start = async () => {
    const held = deferred();
    const begun = deferred();
    const partner = await world.partner({
      before: {
        endTransfer: () => {
          begun.resolve();
          return held.promise;
        },
      },
    });
    const service = await world.service({ pollMs: 20, progressMs: 20 });
    await world.remote(service, partner.port);
    return { partner, service, held, begun };
  };

  test('lost while a transfer runs: the transfer ends, and its record when the database is back', async () => {
    const { partner, service, held, begun } = await start();
    const { body } = await service.api.post('/transfers/send', SEND);
    const ended = service.exchange.queue.whenEnded(body.id as string, 60_000, new AbortController().signal);
    await begun.promise;
    loseDatabase(world.database());
    held.resolve();
    await until(() => Promise.resolve(partner.written.length === 1));
    await until(() =>
      Promise.resolve(service.log.lines.some((line) => line.includes('could not write the end of a transfer yet'))),
    );
    findDatabase(world.database());
    expect(await ended).toMatchObject({ status: 'COMPLETED', checksum: expect.stringMatching(/^sha256:/) });
  });

  test('the answer to the end of a transfer is lost: COMPLETED once', async () => {
    const { service, held, begun, partner } = await start();
    const { body } = await service.api.post('/transfers/send', SEND);
    const ended = service.exchange.queue.whenEnded(body.id as string, 60_000, new AbortController().signal);
    await begun.promise;
    const lost = answerLost(world.database(), /update transfers t set\s+status = .*end_time/s);
    held.resolve();
    await lost;
    expect(await ended).toMatchObject({ status: 'COMPLETED' });
    expect(partner.written).toHaveLength(1);
    expect(service.log.lines.join()).not.toContain('ended by another process');
  });

  test('the answer to a take is lost: the transfer is given back, and runs once', async () => {
    const { service, held, partner } = await start();
    held.resolve();
    const lost = answerLost(world.database(), /skip locked/);
    const { body } = await service.api.post('/transfers/send', SEND);
    const ended = service.exchange.queue.whenEnded(body.id as string, 60_000, new AbortController().signal);
    await lost;
    expect(await ended).toMatchObject({ status: 'COMPLETED', attempts: 1 });
    expect(partner.written).toHaveLength(1);
  });

  test('away for longer than a lease: what runs is given up with IDT 4, and goes on when the database is back', async () => {
    const held = deferred();
    const begun = deferred();
    const partner = await world.partner({
      ...{ restarts: true, syncPoints: { intervalKb: 1, window: 1 } },
      before: {
        checkpoint: () => {
          begun.resolve();
          return held.promise;
        },
      },
    });
    const service = await world.service({ pollMs: 20, progressMs: 20, leaseMs: 2400 });
    await world.remote(service, partner.port);
    const { body } = await service.api.post('/transfers/send', {
      ...{ ...SEND, recordLength: 500, fileContent: Buffer.alloc(9000, 1).toString('base64') },
    });
    await begun.promise;
    loseDatabase(world.database());
    await until(() => Promise.resolve(partner.failures.length === 1));
    expect(partner.failures).toEqual([{ diagnostic: '2-223', endCode: 4 }]);
    held.resolve();
    const ended = service.exchange.queue.whenEnded(body.id as string, 60_000, new AbortController().signal);
    findDatabase(world.database());
    expect(await ended).toMatchObject({ status: 'COMPLETED', attempts: 1, fence: 2 });
    expect(partner.creates.map(({ transferId, restarted }) => [transferId, restarted])).toEqual([
      [1, undefined],
      [1, 1],
    ]);
    expect(partner.written.map(({ content }) => content.length)).toEqual([9000]);
  });

  test('lost before a request: 503; back: the same request works', async () => {
    const { service, held } = await start();
    held.resolve();
    loseDatabase(world.database());
    const away = await service.api.post('/transfers/send', SEND);
    expect([away.status, away.body.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect((await service.api.get('/servers')).status).toBe(503);
    findDatabase(world.database());
    expect((await world.send(service)).status).toBe('COMPLETED');
  });

  test('away at start: the service answers its probes, is not ready, and begins when it comes', async () => {
    const { service: first, held } = await start();
    held.resolve();
    loseDatabase(world.database());
    const service = await world.service({ waitForDatabase: false, data: first.data, node: 'late' });
    const base = `http://127.0.0.1:${service.http.port}`;
    expect((await fetch(`${base}/actuator/health/liveness`)).status).toBe(200);
    const ready = await fetch(`${base}/actuator/health/readiness`);
    expect(ready.status).toBe(503);
    // A stranger is not told where the database is.
    expect(await ready.json()).toMatchObject({ components: { database: { status: 'DOWN' } } });
    const refused = await service.api.post('/transfers/send', SEND);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5']);
    findDatabase(world.database());
    await until(async () => (await fetch(`${base}/actuator/health/readiness`)).status === 200);
    expect((await world.send(service)).status).toBe('COMPLETED');
  });

  test('a start of the queue that fails while the database is there is tried again', async () => {
    const partner = await world.partner();
    const lost = answerLost(world.database(), /failures = failures \+ 1/);
    const service = await world.service({ waitForDatabase: false, pollMs: 20 });
    await lost;
    await service.license.refresh();
    await world.remote(service, partner.port);
    expect((await world.send(service)).status).toBe('COMPLETED');
  });

  test('who asks to wait before the queue runs waits for the end all the same', async () => {
    const partner = await world.partner();
    const { held, release } = holdStatement(world.database(), /failures = failures \+ 1/);
    const service = await world.service({ waitForDatabase: false });
    await held;
    await service.license.refresh();
    await world.remote(service, partner.port);
    const asked = service.api.post('/transfers/send?wait=60', SEND);
    const isThere = async () => (await world.database().knex('transfers').where({ status: 'PENDING' })).length > 0;
    await Promise.race([until(isThere), asked]);
    release();
    expect((await asked).body).toMatchObject({ status: 'COMPLETED' });
  });
});
