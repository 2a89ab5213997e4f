/** `transfer.write-timeout`: a partner that takes nothing does not keep a session for ever. */
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
});
