/** A partner that takes nothing does not keep a session for ever (`transfer.write-timeout`); one that is limited gets its time (`maxBytesPerSecond`). */
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { GOOD } from './support/raw-server.js';
import { useWorld } from './support/world.js';

/** More than the kernels of both sides hold for one connection. */
const MUCH = 64 * 1024 * 1024;

withDatabase((harness) => {
  const world = useWorld(harness);

  test('a partner that takes nothing for that long is given up, however long it may be silent', async () => {
    const server = await world.rawServer({ ...GOOD, WRITE: [GOOD['WRITE'] as string, 'pause'] });
    const service = await world.service({ settings: { readTimeout: 3_600_000, writeTimeout: 200 } });
    await world.remote(service, server.port);
    await mkdir(join(service.data, 'send'), { recursive: true });
    const file = await open(join(service.data, 'send', 'much'), 'w');
    await file.truncate(MUCH).finally(() => file.close());
    const record = await world.send(service, { fileContent: undefined, filename: 'much' });
    expect(record).toMatchObject({
      status: 'FAILED',
      errorCode: 'TIMEOUT',
      diagnostic: '3-317',
      errorMessage: expect.stringMatching(/the partner took nothing for \d+ s/),
    });
  });

  test('maxBytesPerSecond of a remote server slows what is sent and received, and fewer bytes wait for an acknowledgement', async () => {
    const RATE = 262_144;
    // Of which at most a tenth, and one read of 64 KB, passes at once.
    const content = Buffer.alloc(RATE, 'x');
    const partner = await world.partner({ files: { X: content }, syncPoints: { intervalKb: 4096, window: 8 } });
    const service = await world.service();
    const fields = { maxBytesPerSecond: RATE, syncInterval: 4096, syncWindow: 8 };
    const id = await world.remote(service, partner.port, fields);
    for (const move of [
      () => world.send(service, { fileContent: content.toString('base64') }),
      () => world.receive(service),
    ]) {
      const began = performance.now();
      expect(await move()).toMatchObject({ status: 'COMPLETED', size: content.length });
      expect(performance.now() - began).toBeGreaterThan(400);
    }
    expect(partner.written[0]!.content.equals(content)).toBe(true);
    expect((await service.api.get(`/servers/${id}`)).body).toMatchObject({
      ...{ maxBytesPerSecond: RATE, negotiated: { syncInterval: 2560, syncWindow: 1 } },
    });
  });
});
