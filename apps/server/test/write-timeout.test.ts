/** `transfer.write-timeout`: a partner that takes nothing does not keep a session for ever. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { withDatabase } from '@pesit-node/service/testing';

import { useNode } from './support/node.js';
import { RawPeer } from './support/raw-peer.js';
import { CONNECT, ORF, READ, select } from './support/steps.js';

/** More than the kernels of both sides hold for one connection. */
const MUCH = 64 * 1024 * 1024;

withDatabase((harness) => {
  const node = useNode(harness, {
    listener: { readTimeout: 3_600_000 },
    // With sync points it would be the window that holds the data back.
    settings: { 'transfer.write-timeout': 200, 'transfer.sync-points-enabled': false },
  });

  test('a partner that takes nothing for that long is given up, however long it may be silent', async () => {
    const file = await open(join(node().data, 'OUT/out/much'), 'w');
    await file.truncate(MUCH).finally(() => file.close());
    const peer = await RawPeer.open(node().port, CONNECT, select('OUT'), ORF, READ);
    peer.socket.pause();
    expect(await node().ended()).toMatchObject({
      status: 'FAILED',
      diagnostic: '3-317',
      errorMessage: expect.stringMatching(/the partner took nothing for \d+ s/),
    });
    peer.socket.destroy();
  });
});
